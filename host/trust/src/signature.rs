//! Signatures over the bytes of a plugin, in the format of minisign.
//!
//! A signature says something only if the operator has configured a key for the plugin's source:
//! [`Verified::NoKey`] is not [`Verified::By`], and no other value of this module can be mistaken
//! for a valid signature.

mod source;

use minisign_verify::{PublicKey, Signature};
use palisade::tool::text::elided;
use serde::{Deserialize, Serialize};
use source::{covers, is_url};
use std::fmt;
use std::path::{Path, PathBuf};

/// The longest signature file, in bytes. Those of minisign have some 300.
pub(crate) const MAX_FILE: usize = 4 << 10;
/// The lines of a signature: a comment, the signature, a trusted comment, and its signature.
const LINES: usize = 4;
/// The length of a public key in base64: an algorithm, a key number and 32 bytes.
const KEY: usize = 56;

/// The public key of a signer, in base64, as in the second line of minisign's `.pub` file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Signer(String);

impl Signer {
    /// Parses a public key, with or without the comment line of a `.pub` file.
    ///
    /// # Errors
    ///
    /// [`SignatureError::Key`] if the text is no public key.
    pub fn parse(text: &str) -> Result<Self, SignatureError> {
        let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty());
        let line = line.unwrap_or_default();
        let invalid = || SignatureError::Key { text: elided(line, 80) };
        if line.len() != KEY || PublicKey::from_base64(line).is_err() {
            return Err(invalid());
        }
        Ok(Self(line.to_owned()))
    }

    fn key(&self) -> Result<PublicKey, SignatureError> {
        PublicKey::from_base64(&self.0).map_err(|_| SignatureError::Key { text: self.0.clone() })
    }
}

impl fmt::Display for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for Signer {
    type Error = SignatureError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text)
    }
}

impl From<Signer> for String {
    fn from(signer: Signer) -> Self {
        signer.0
    }
}

/// A key that the operator trusts.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TrustedKey {
    /// The key.
    pub signer: Signer,
    /// The only source whose plugins it may sign; any without one. It is a directory, compared as
    /// the one that it leads to and not as a text, or the beginning of a URL up to a `/`, `:`, `@`,
    /// or its end.
    pub source: Option<String>,
}

impl TrustedKey {
    /// Trusts a key for one source, or for all.
    #[must_use]
    pub fn new(signer: Signer, source: Option<String>) -> Self {
        Self { signer, source }
    }
}

/// The keys that the operator trusts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Keys(Vec<TrustedKey>);

/// The result of a verification that found nothing wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verified {
    /// The operator has configured no key for the source: nothing was verified.
    NoKey,
    /// The bytes are signed with this key, which the operator trusts for the source.
    By(Signer),
}

/// The reason why a signature is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SignatureError {
    /// A text is no public key.
    #[error(
        "`{text}` is no public key of minisign; give the second line of its `.pub` file, which has \
         56 characters"
    )]
    Key {
        /// The text, cut.
        text: String,
    },
    /// A key is configured for the source, and the plugin has no signature.
    #[error("there is no signature, and a key is configured for its source; {remedy}")]
    Missing {
        /// The advice for the author or the operator.
        remedy: String,
    },
    /// The signature's file cannot be read as one of minisign.
    #[error("the signature is none of minisign: {reason}; get the author's file again")]
    Malformed {
        /// The problem.
        reason: String,
    },
    /// The signature was made with a key that is not configured for the source.
    #[error(
        "the signature was made with a key that is not configured for this source; if you trust its \
         author, add the key to `[[plugins.keys]]`"
    )]
    UnknownKey,
    /// No key is configured for the source, and one is for a directory that does not exist.
    #[error(
        "a key is configured for `{place}`, which is no directory, so that it is not known whose \
         plugins it guards; correct `source` of that key in `[[plugins.keys]]` (`plugins.keys.source`)"
    )]
    NoSource {
        /// The source of the key, cut.
        place: String,
    },
    /// The bytes are not those that were signed.
    #[error("the signature is not valid for these bytes; they or the signature were changed")]
    Invalid,
}

impl Keys {
    /// Trusts these keys.
    #[must_use]
    pub fn new(keys: Vec<TrustedKey>) -> Self {
        Self(keys)
    }

    /// Returns the keys for the plugins of a source. Two spellings of one directory are one source.
    pub fn of_source(&self, source: &str) -> impl Iterator<Item = &Signer> {
        let is_for =
            move |key: &&TrustedKey| key.source.as_deref().is_none_or(|it| covers(it, source));
        self.0.iter().filter(is_for).map(|key| &key.signer)
    }

    /// Returns the sources that keys are bound to.
    pub fn sources(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|key| key.source.as_deref())
    }

    /// Returns the sources that keys are bound to and that none of these plugins comes from.
    #[must_use]
    pub fn idle_sources(&self, plugins: &[String]) -> Vec<&str> {
        let is_idle = |source: &&str| !plugins.iter().any(|plugin| covers(source, plugin));
        self.sources().filter(is_idle).collect()
    }

    /// Verifies the signature over a plugin's bytes. `signature` is the content of `file`, if that
    /// exists.
    ///
    /// # Errors
    ///
    /// [`SignatureError`] if a key is configured for the source, and none of the keys has signed
    /// the bytes.
    pub fn verify(
        &self,
        source: &str,
        bytes: &[u8],
        signature: Option<&str>,
        file: &Path,
    ) -> Result<Verified, SignatureError> {
        if self.of_source(source).next().is_none() {
            // A misspelled source must not pass for a source without a key.
            let is_wrong = |source: &&str| !is_url(source) && !Path::new(source).is_dir();
            return match self.sources().find(is_wrong) {
                Some(wrong) => Err(SignatureError::NoSource { place: elided(wrong, 512) }),
                None => Ok(Verified::NoKey),
            };
        }
        let Some(text) = signature else {
            return Err(SignatureError::Missing { remedy: how_to_sign(source, file) });
        };
        let signature = parse(text)?;
        let mut refusal = SignatureError::UnknownKey;
        for signer in self.of_source(source) {
            // Signatures of the old kind are refused: only old versions of minisign make them.
            match signer.key()?.verify(bytes, &signature, false) {
                Ok(()) => return Ok(Verified::By(signer.clone())),
                Err(minisign_verify::Error::UnexpectedKeyId) => {}
                Err(minisign_verify::Error::UnsupportedLegacyMode) => {
                    refusal = malformed("it is of the old kind, without a hash");
                }
                Err(_) => refusal = SignatureError::Invalid,
            }
        }
        Err(refusal)
    }
}

/// Checks that a text is a signature of minisign, of any bytes.
///
/// # Errors
///
/// [`SignatureError::Malformed`].
pub fn check_form(text: &str) -> Result<(), SignatureError> {
    parse(text).map(drop)
}

fn parse(text: &str) -> Result<Signature, SignatureError> {
    if text.len() > MAX_FILE {
        return Err(malformed(format!("it has more than {MAX_FILE} bytes")));
    }
    if text.trim_end().lines().count() > LINES {
        return Err(malformed("there is text after the signature"));
    }
    Signature::decode(text).map_err(|error| malformed(error.to_string()))
}

fn malformed(reason: impl Into<String>) -> SignatureError {
    SignatureError::Malformed { reason: reason.into() }
}

/// Returns where the signature of a plugin of this source has to be.
fn how_to_sign(source: &str, file: &Path) -> String {
    match source.split_once("://") {
        Some(("oci", _)) => {
            "its author publishes it with the signature beside its file (`palisade publish`)"
                .to_owned()
        }
        Some(("https" | "http", _)) => {
            let (url, query) = source.split_once('?').unwrap_or((source, ""));
            let query = if query.is_empty() { String::new() } else { format!("?{query}") };
            format!("its author puts it at `{}`", elided(&format!("{url}.minisig{query}"), 300))
        }
        _ => {
            // The file of a source that was added is a copy under a name of the store.
            let own = source.strip_prefix("file://").map(|path| format!("{path}.minisig"));
            let file = own.as_deref().map_or(file, Path::new);
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            format!("put the author's file `{}` beside it", elided(&name, 160))
        }
    }
}

/// Returns the file of a plugin's signature: `git.wasm.minisig` for `git.wasm`.
#[must_use]
pub fn signature_file(plugin: &Path) -> PathBuf {
    let mut name = plugin.as_os_str().to_owned();
    name.push(".minisig");
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;
    use minisign::KeyPair;

    const BYTES: &[u8] = b"a plugin";

    fn pair() -> (KeyPair, Signer) {
        let pair = KeyPair::generate_unencrypted_keypair().unwrap();
        let signer = Signer::parse(&pair.pk.to_base64()).unwrap();
        (pair, signer)
    }

    fn signature(pair: &KeyPair) -> String {
        minisign::sign(Some(&pair.pk), &pair.sk, BYTES, None, None).unwrap().into_string()
    }

    fn verify(keys: &Keys, bytes: &[u8], text: Option<&str>) -> Result<Verified, SignatureError> {
        keys.verify("/p", bytes, text, Path::new("/p/git.wasm.minisig"))
    }

    #[test]
    fn key_for_a_url_says_nothing_of_a_directory() {
        let (_, signer) = pair();
        let source = Some("https://example.org/".to_owned());
        let keys = Keys::new(vec![TrustedKey { signer, source }]);
        let verified =
            |source: &str| keys.verify(source, BYTES, None, Path::new("git.wasm.minisig"));
        assert!(matches!(verified("/plugins"), Ok(Verified::NoKey)));
        let missing = verified("https://example.org/git.wasm");
        assert!(matches!(missing, Err(SignatureError::Missing { .. })), "{missing:?}");
    }

    #[test]
    fn no_key_is_never_valid() {
        let (pair, signer) = pair();
        let none = Keys::default();
        for text in [None, Some(signature(&pair)), Some("nonsense".to_owned())] {
            assert_eq!(verify(&none, BYTES, text.as_deref()), Ok(Verified::NoKey));
        }
        let of = |source: &str| {
            Keys::new(vec![TrustedKey::new(signer.clone(), Some(source.to_owned()))])
        };
        assert_eq!(verify(&of("/"), BYTES, Some(&signature(&pair))), Ok(Verified::NoKey));
        let wrong = verify(&of("/no such directory"), BYTES, Some(&signature(&pair)));
        assert!(matches!(wrong, Err(SignatureError::NoSource { .. })), "{wrong:?}");
    }

    #[test]
    fn only_the_signed_bytes_and_a_trusted_key_are_valid() {
        let (pair, signer) = pair();
        let (other, other_signer) = self::pair();
        let keys = Keys::new(vec![
            TrustedKey::new(other_signer.clone(), Some("/elsewhere".to_owned())),
            TrustedKey::new(signer.clone(), Some("/p".to_owned())),
        ]);
        let text = signature(&pair);
        assert_eq!(verify(&keys, BYTES, Some(&text)), Ok(Verified::By(signer)));
        assert_eq!(verify(&keys, b"b plugin", Some(&text)), Err(SignatureError::Invalid));
        let foreign = signature(&other);
        assert_eq!(verify(&keys, BYTES, Some(&foreign)), Err(SignatureError::UnknownKey));
        assert!(matches!(verify(&keys, BYTES, None), Err(SignatureError::Missing { .. })));
        let more = format!("{text}\nand more");
        for broken in ["", "x\ny\nz\nw", &text[..text.len() / 2], &"x".repeat(5_000), &more] {
            let refused = verify(&keys, BYTES, Some(broken));
            assert!(matches!(refused, Err(SignatureError::Malformed { .. })), "{refused:?}");
        }
        let comment = text.replace("trusted comment: ", "trusted comment: forged ");
        assert_eq!(verify(&keys, BYTES, Some(&comment)), Err(SignatureError::Invalid));
    }

    #[test]
    fn configured_source_covers_whole_parts_of_a_url() {
        for (configured, source) in [
            ("oci://ghcr.io/me/", "oci://ghcr.io/me/git:1"),
            ("oci://ghcr.io/me", "oci://ghcr.io/me/git:1"),
            ("oci://ghcr.io/me/git", "oci://ghcr.io/me/git:2"),
            ("https://a.org/git.wasm", "https://a.org/git.wasm"),
            ("https://a.org/git.wasm", "https://a.org/git.wasm?version=1"),
            ("/plugins", "/plugins"),
            ("/plugins", "file:///plugins/git.wasm"),
        ] {
            assert!(covers(configured, source), "{configured} {source}");
        }
        for (configured, source) in [
            ("oci://ghcr.io/me", "oci://ghcr.io/meow/git:1"),
            ("https://a.org", "https://a.org.evil/git.wasm"),
            ("https://a.org/git", "https://a.org/git.wasm"),
            ("/plugins", "/plugins/below"),
            ("/plugins", "file:///plugins/below/git.wasm"),
            ("/plugins", "file:///plugins2/git.wasm"),
        ] {
            assert!(!covers(configured, source), "{configured} {source}");
        }
    }

    #[test]
    fn key_is_read_from_a_line_or_a_public_file() {
        let (pair, signer) = pair();
        let file = pair.pk.to_box().unwrap().into_string();
        assert_eq!(Signer::parse(&file), Ok(signer));
        let hostile = "RW\u{1b}[2J".repeat(100);
        let hostile = hostile.as_str();
        for wrong in ["", "RWQ", "# comment", hostile] {
            let refused = Signer::parse(wrong).unwrap_err().to_string();
            assert!(!refused.contains('\u{1b}') && refused.len() < 400, "{refused}");
        }
    }
}
