//! The two secrets of a browser's login, which count together only: a cookie and a page key.
//!
//! A browser sends the cookies of a host to each port of the host, so that another server there
//! knows them. The page key is in the storage of an origin, which has a port, and is sent by the
//! pages of that origin only, in a header. The cookie is hidden from these pages.

use super::random::random;
use hyper::header::HeaderName;
use std::io;

/// The header of a request that has the page key.
pub(super) const PAGE_KEY: HeaderName = HeaderName::from_static("palisade-page-key");
/// The context of the digest, as BLAKE3 wants it: unique in the world.
const CONTEXT: &str = "palisade 2026 both halves of a login";
/// The random bytes of each half.
const BYTES: usize = 32;

/// The halves of a login, or those that a request has.
pub(super) struct Halves<T> {
    /// The value of the cookie.
    pub(super) cookie: T,
    /// The page key.
    pub(super) page_key: T,
}

impl Halves<String> {
    /// Creates the halves of a new login, of 256 random bits each. Fails if the system provides no
    /// random numbers.
    pub(super) fn random() -> io::Result<Self> {
        Ok(Self { cookie: random::<BYTES>()?, page_key: random::<BYTES>()? })
    }
}

impl<T: AsRef<str>> Halves<T> {
    /// Returns the digest of both halves. Two logins with an equal half have different ones.
    pub(super) fn digest(&self) -> blake3::Hash {
        let halves = [&self.cookie, &self.page_key];
        let mut hasher = blake3::Hasher::new_derive_key(CONTEXT);
        for half in halves {
            // Digests have one length, so that no end of a half can be the begin of the other.
            hasher.update(blake3::hash(half.as_ref().as_bytes()).as_bytes());
        }
        hasher.finalize()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;

    #[test]
    fn digest_needs_each_half_in_its_place() {
        let of = |cookie: &str, page_key: &str| Halves { cookie, page_key }.digest();
        let (one, other) = (Halves::random().unwrap(), Halves::random().unwrap());
        assert_eq!(one.digest(), of(&one.cookie, &one.page_key));
        for wrong in [
            of(&one.cookie, &other.page_key),
            of(&other.cookie, &one.page_key),
            of(&one.page_key, &one.cookie),
            of(&one.cookie, &one.cookie),
            of(&one.cookie, ""),
            of("", &one.page_key),
            of(&format!("{}{}", one.cookie, one.page_key), ""),
            blake3::hash(one.cookie.as_bytes()),
        ] {
            assert_ne!(one.digest(), wrong);
        }
        assert_ne!(of("ab", "c"), of("a", "bc"));
    }
}
