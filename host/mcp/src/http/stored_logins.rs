//! Logins as they are stored between two runs of a server: each with its end, and with a MAC by a
//! key of the operator's token and of the server's place. So a login counts for no other token and
//! at no other place, and nobody without the token can make one or prolong it.

use super::settings::Token;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The context of the key, as BLAKE3 wants it: unique in the world.
const CONTEXT: &str = "palisade 2026 stored logins of an operator";

/// A time as it is stored: whole seconds since 1970, by the clock of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StoredTime(u64);

impl StoredTime {
    /// Returns the time that is this far from now.
    pub(super) fn after(now: SystemTime, time: Duration) -> Self {
        let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(since.saturating_add(time).as_secs())
    }

    /// Returns the time that is left. `None` for the past.
    fn left(self, now: SystemTime) -> Option<Duration> {
        let end = UNIX_EPOCH.checked_add(Duration::from_secs(self.0))?;
        end.duration_since(now).ok().filter(|left| !left.is_zero())
    }
}

/// The key of stored logins.
#[derive(Clone)]
pub(super) struct LoginKey([u8; blake3::KEY_LEN]);

/// A stored login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StoredLogin {
    /// The digest of both halves.
    pub(super) digest: blake3::Hash,
    /// The end of the login.
    pub(super) end: StoredTime,
    /// The time until then.
    pub(super) left: Duration,
}

impl LoginKey {
    /// Creates the key of this operator's token and this place.
    pub(super) fn new(operator: &Token, place: &[u8]) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key(CONTEXT);
        hasher.update(operator.digest().as_bytes()).update(place);
        Self(*hasher.finalize().as_bytes())
    }

    /// Returns the line of a login.
    pub(super) fn line(&self, digest: &blake3::Hash, end: StoredTime) -> String {
        format!("{digest} {} {}\n", end.0, self.mac(digest, end))
    }

    /// Reads the logins of this key that have not ended. All other lines are left out.
    pub(super) fn read(&self, text: &str, now: SystemTime) -> Vec<StoredLogin> {
        text.lines().filter_map(|line| self.login(line, now)).collect()
    }

    fn login(&self, line: &str, now: SystemTime) -> Option<StoredLogin> {
        let mut parts = line.split(' ');
        let (digest, end, mac) = (parts.next()?, parts.next()?, parts.next()?);
        let digest = blake3::Hash::from_hex(digest).ok()?;
        let end = StoredTime(end.parse().ok()?);
        // The comparison takes constant time.
        let is_own = blake3::Hash::from_hex(mac).ok()? == self.mac(&digest, end);
        let left = end.left(now).filter(|_| is_own && parts.next().is_none())?;
        Some(StoredLogin { digest, end, left })
    }

    fn mac(&self, digest: &blake3::Hash, end: StoredTime) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(digest.as_bytes()).update(&end.0.to_le_bytes()).finalize()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);
    const DAY: Duration = Duration::from_secs(24 * 3600);

    fn key(token: &str, place: &str) -> LoginKey {
        LoginKey::new(&Token::new(token).unwrap(), place.as_bytes())
    }

    fn own() -> LoginKey {
        key("0123456789abcdef", "/project")
    }

    #[test]
    fn login_keeps_its_end() {
        let begun = UNIX_EPOCH + 365 * DAY;
        let end = StoredTime::after(begun, DAY);
        let line = own().line(&blake3::hash(b"login"), end);
        let read = |now| own().read(&line, now).first().map(|login| (login.end, login.left));
        assert_eq!(read(begun), Some((end, DAY)));
        assert_eq!(read(begun + 23 * HOUR), Some((end, HOUR)));
        assert_eq!((read(begun + DAY), read(begun + 2 * DAY)), (None, None));
    }

    #[test]
    fn login_counts_for_its_token_and_place_only() {
        let now = UNIX_EPOCH + 365 * DAY;
        let line = own().line(&blake3::hash(b"login"), StoredTime::after(now, DAY));
        for other in [
            key("0123456789abcdeg", "/project"),
            key("0123456789abcdef", "/project2"),
            key("0123456789abcdef", ""),
        ] {
            assert_eq!(other.read(&line, now), []);
        }
        assert_eq!(own().read(&line, now).len(), 1);
    }

    #[test]
    fn forged_and_malformed_lines_are_left_out() {
        let now = UNIX_EPOCH + 365 * DAY;
        let digest = blake3::hash(b"login");
        let line = own().line(&digest, StoredTime::after(now, DAY));
        let later = StoredTime::after(now, 2 * DAY);
        let [_, end, mac] = line.trim().split(' ').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        for forged in [
            format!("{digest} {} {mac}", later.0),
            format!("{} {end} {mac}", blake3::hash(b"other")),
            format!("{digest} {end} {}", blake3::hash(b"no key")),
            format!("{digest} {end}"),
            format!("{digest} {end} {mac} more"),
            format!("{digest}\t{end}\t{mac}"),
            format!("{digest} {} {mac}", u64::MAX),
            format!("{digest} -1 {mac}"),
            digest.to_string(),
            String::new(),
        ] {
            let text = format!("{forged}\n{line}");
            assert_eq!(own().read(&text, now).len(), 1, "{forged}");
        }
    }
}
