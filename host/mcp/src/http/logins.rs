//! The operator's logins: codes that are valid once, and the cookies that they are exchanged for.
//! Both are random, and only their digests are kept.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// The time for which a code can be used.
const CODE_TIME: Duration = Duration::from_secs(10 * 60);
/// The maximum number of unused codes. A further one replaces the oldest.
const MOST_CODES: usize = 16;
/// The time for which a cookie counts.
pub(super) const COOKIE_TIME: Duration = Duration::from_secs(24 * 60 * 60);
/// The maximum number of cookies: browsers of one operator. A further one replaces the oldest.
const MOST_COOKIES: usize = 32;

/// The random bytes of a code, which a person may have to type.
const CODE_BYTES: usize = 16;
/// The random bytes of a cookie.
const COOKIE_BYTES: usize = 32;

/// The logins of the operator of one server. A code of [`issue`](Self::issue) is sent once to
/// `POST /login`, and gives the browser a cookie that counts as the operator's token. Clones share
/// the logins.
#[derive(Clone)]
pub struct Logins(Arc<Mutex<State>>);

struct State {
    codes: Secrets,
    cookies: Secrets,
    keep: Option<Keep>,
}

/// Stores the digests of the cookies, one a line.
type Keep = Arc<dyn Fn(&str) + Send + Sync>;

impl Default for Logins {
    fn default() -> Self {
        let codes = Secrets::new(MOST_CODES, CODE_TIME);
        let cookies = Secrets::new(MOST_COOKIES, COOKIE_TIME);
        Self(Arc::new(Mutex::new(State { codes, cookies, keep: None })))
    }
}

impl Logins {
    /// Creates a code of 128 random bits, for one login within ten minutes. At most 16 codes are
    /// unused: a further one ends the oldest.
    ///
    /// # Errors
    ///
    /// Fails if the system provides no random numbers.
    pub fn issue(&self) -> io::Result<String> {
        let code = random::<CODE_BYTES>()?;
        self.state().codes.insert(digest(&code), Instant::now());
        Ok(code)
    }

    /// Lets browsers stay logged in when the server runs again: `kept` is what an earlier server at
    /// this address has stored, and `keep` stores the digests of all cookies at each change, one a
    /// line. Only their owner may be able to write what is stored. A restored cookie counts for
    /// another 24 hours.
    pub fn restore(&self, kept: &str, keep: impl Fn(&str) + Send + Sync + 'static) {
        let mut state = self.state();
        let now = Instant::now();
        for digest in kept.lines().filter_map(|line| blake3::Hash::from_hex(line).ok()) {
            state.cookies.insert(digest, now);
        }
        state.keep = Some(Arc::new(keep));
    }

    /// Stores the cookies after a change, outside of the lock.
    fn store(&self) {
        let state = self.state();
        let Some(keep) = state.keep.clone() else { return };
        let lines = state.cookies.kept.iter().map(|(digest, _)| format!("{}\n", digest.to_hex()));
        let text: String = lines.collect();
        drop(state);
        keep(&text);
    }

    /// Exchanges a code for the value of a cookie. `None` for a code that is unknown, used or too
    /// old.
    ///
    /// # Errors
    ///
    /// Fails if the system provides no random numbers. The code can be used again.
    pub(super) fn redeem(&self, code: &str) -> io::Result<Option<String>> {
        let cookie = random::<COOKIE_BYTES>()?;
        let now = Instant::now();
        let mut state = self.state();
        if !state.codes.take(&digest(code), now) {
            return Ok(None);
        }
        state.cookies.insert(digest(&cookie), now);
        drop(state);
        self.store();
        Ok(Some(cookie))
    }

    /// Returns the digest of a cookie's value, if it counts.
    pub(super) fn find(&self, cookie: &str) -> Option<blake3::Hash> {
        let digest = digest(cookie);
        self.state().cookies.contains(&digest, Instant::now()).then_some(digest)
    }

    /// Ends the login of a cookie.
    pub(super) fn end(&self, cookie: &str) {
        self.state().cookies.take(&digest(cookie), Instant::now());
        self.store();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Logins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("Logins")
            .field("codes", &state.codes.kept.len())
            .field("cookies", &state.cookies.kept.len())
            .finish()
    }
}

/// Secrets of one kind with their ends, the oldest first. Comparisons of digests take constant
/// time.
struct Secrets {
    most: usize,
    time: Duration,
    kept: VecDeque<(blake3::Hash, Instant)>,
}

impl Secrets {
    fn new(most: usize, time: Duration) -> Self {
        Self { most, time, kept: VecDeque::new() }
    }

    fn insert(&mut self, digest: blake3::Hash, now: Instant) {
        self.remove_old(now);
        if self.kept.len() >= self.most {
            self.kept.pop_front();
        }
        self.kept.push_back((digest, now + self.time));
    }

    fn contains(&mut self, digest: &blake3::Hash, now: Instant) -> bool {
        self.remove_old(now);
        self.kept.iter().any(|(kept, _)| kept == digest)
    }

    /// Removes a secret. Returns false if it does not count.
    fn take(&mut self, digest: &blake3::Hash, now: Instant) -> bool {
        self.remove_old(now);
        let before = self.kept.len();
        self.kept.retain(|(kept, _)| kept != digest);
        self.kept.len() < before
    }

    fn remove_old(&mut self, now: Instant) {
        while self.kept.front().is_some_and(|(_, end)| *end <= now) {
            self.kept.pop_front();
        }
    }
}

fn digest(secret: &str) -> blake3::Hash {
    blake3::hash(secret.as_bytes())
}

/// Returns random bytes as hexadecimal digits.
fn random<const BYTES: usize>() -> io::Result<String> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes).map_err(io::Error::from)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use tokio::time::advance;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn code_is_valid_once() {
        let logins = Logins::default();
        let (one, other) = (logins.issue().unwrap(), logins.issue().unwrap());
        assert_ne!(one, other);
        assert_eq!(one.len(), 2 * CODE_BYTES);
        let first = logins.redeem(&one).unwrap().unwrap();
        assert_eq!(logins.redeem(&one).unwrap(), None, "a replayed code");
        assert_eq!(logins.redeem(&first).unwrap(), None, "a cookie is no code");
        let second = logins.redeem(&other).unwrap().unwrap();
        assert!(logins.find(&first).is_some() && logins.find(&second).is_some());
        assert!(logins.find(&one).is_none(), "a code is no cookie");
    }

    #[tokio::test(start_paused = true)]
    async fn code_is_valid_for_ten_minutes() {
        let logins = Logins::default();
        let (early, late) = (logins.issue().unwrap(), logins.issue().unwrap());
        advance(CODE_TIME - SECOND).await;
        assert!(logins.redeem(&early).unwrap().is_some());
        advance(SECOND).await;
        assert_eq!(logins.redeem(&late).unwrap(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn cookie_counts_for_a_day_or_until_its_logout() {
        let logins = Logins::default();
        let login = || logins.redeem(&logins.issue().unwrap()).unwrap().unwrap();
        let (kept, ended) = (login(), login());
        logins.end(&ended);
        advance(COOKIE_TIME - SECOND).await;
        assert!(logins.find(&kept).is_some() && logins.find(&ended).is_none());
        advance(SECOND).await;
        assert!(logins.find(&kept).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn codes_and_cookies_are_bounded() {
        let logins = Logins::default();
        let codes: Vec<_> = (0..=MOST_CODES).map(|_| logins.issue().unwrap()).collect();
        assert_eq!(logins.redeem(&codes[0]).unwrap(), None);
        assert!(logins.redeem(&codes[1]).unwrap().is_some());
        let login = || logins.redeem(&logins.issue().unwrap()).unwrap().unwrap();
        let cookies: Vec<_> = (0..=MOST_COOKIES).map(|_| login()).collect();
        assert!(logins.find(&cookies[0]).is_none() && logins.find(&cookies[1]).is_some());
        let shown = format!("{logins:?}");
        assert!(shown.ends_with(&format!("cookies: {MOST_COOKIES} }}")), "{shown}");
    }

    #[tokio::test(start_paused = true)]
    async fn login_outlives_its_server_and_ends_by_logout() {
        let stored = Arc::new(Mutex::new(String::new()));
        let server = || {
            let (logins, kept) = (Logins::default(), stored.lock().unwrap().clone());
            let stored = stored.clone();
            logins.restore(&kept, move |text| *stored.lock().unwrap() = text.to_owned());
            logins
        };
        let first = server();
        let cookie = first.redeem(&first.issue().unwrap()).unwrap().unwrap();
        assert!(!stored.lock().unwrap().contains(&cookie), "only its digest is stored");
        let second = server();
        assert!(second.find(&cookie).is_some());
        second.end(&cookie);
        assert!(server().find(&cookie).is_none());
        advance(COOKIE_TIME).await;
        assert!(first.find(&cookie).is_none());
    }
}
