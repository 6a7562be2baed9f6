//! The operator's logins: codes that are valid once, and the logins that they are exchanged for.
//! Codes and both halves of a login are random, and only digests are kept.

use super::login_halves::Halves;
use super::random::random;
use super::settings::Token;
use super::stored_logins::{LoginKey, StoredLogin, StoredTime};
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// The time for which a code can be used.
const CODE_TIME: Duration = Duration::from_secs(10 * 60);
/// The maximum number of unused codes. A further one replaces the oldest.
const MOST_CODES: usize = 16;
/// The time for which a login counts.
pub(super) const LOGIN_TIME: Duration = Duration::from_secs(24 * 60 * 60);
/// The maximum number of logins: browsers of one operator. A further one replaces the oldest.
const MOST_LOGINS: usize = 32;

/// The random bytes of a code, which a person may have to type.
const CODE_BYTES: usize = 16;

/// The logins of the operator of one server. A code of [`issue`](Self::issue) is sent once to
/// `POST /login`, and gives the browser a cookie and a page key, which together count as the
/// operator's token. Clones share the logins.
#[derive(Clone)]
pub struct Logins(Arc<Mutex<State>>);

struct State {
    codes: Secrets,
    logins: Secrets,
    keep: Option<Keep>,
}

/// Stores the logins.
#[derive(Clone)]
struct Keep {
    key: LoginKey,
    store: Arc<dyn Fn(&str) + Send + Sync>,
    /// Held while a text is made and stored.
    turn: Arc<Mutex<()>>,
}

impl Default for Logins {
    fn default() -> Self {
        let codes = Secrets::new(MOST_CODES, CODE_TIME);
        let logins = Secrets::new(MOST_LOGINS, LOGIN_TIME);
        Self(Arc::new(Mutex::new(State { codes, logins, keep: None })))
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
        self.state().codes.add(digest(&code), Instant::now());
        Ok(code)
    }

    /// Lets browsers stay logged in when the server runs again. `kept` is the text that an earlier
    /// run has stored by `store`, which gets it whole at each change. It contains the digests of
    /// logins with their ends, and is authenticated by a key of the operator's token and of the
    /// place, such as the path of the workspace: a login counts for these only, and ends when it
    /// would have ended in the run that it was made in.
    pub fn restore(
        &self,
        operator: &Token,
        place: &[u8],
        kept: &str,
        store: impl Fn(&str) + Send + Sync + 'static,
    ) {
        let key = LoginKey::new(operator, place);
        let mut state = self.state();
        let now = Instant::now();
        for StoredLogin { digest, end, left } in key.read(kept, SystemTime::now()) {
            // By a clock that was set back, a login would last longer than any other.
            state.logins.insert(Secret::new(digest, now + left.min(LOGIN_TIME), end), now);
        }
        state.keep = Some(Keep { key, store: Arc::new(store), turn: Arc::default() });
    }

    /// Stores the logins after a change, outside of the lock of the state. One text is stored
    /// after the other, so that an older text never replaces a newer one.
    fn store(&self) {
        let Some(keep) = self.state().keep.clone() else { return };
        let _turn = keep.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let state = self.state();
        let lines = state.logins.kept.iter().map(|it| keep.key.line(&it.digest, it.stored_end));
        let text: String = lines.collect();
        drop(state);
        (keep.store)(&text);
    }

    /// Exchanges a code for a login. `None` for a code that is unknown, used or too old.
    ///
    /// # Errors
    ///
    /// Fails if the system provides no random numbers. The code can be used again.
    pub(super) fn redeem(&self, code: &str) -> io::Result<Option<Halves<String>>> {
        let halves = Halves::random()?;
        let now = Instant::now();
        let mut state = self.state();
        if !state.codes.take(&digest(code), now) {
            return Ok(None);
        }
        state.logins.add(halves.digest(), now);
        drop(state);
        self.store();
        Ok(Some(halves))
    }

    /// Returns the digest of the login with these halves, if there is one.
    pub(super) fn find<T: AsRef<str>>(&self, halves: &Halves<T>) -> Option<blake3::Hash> {
        let digest = halves.digest();
        self.state().logins.contains(&digest, Instant::now()).then_some(digest)
    }

    /// Completes when the login with this digest has ended: by a logout, by its time, or for a
    /// newer one.
    pub(super) fn over(&self, digest: &blake3::Hash) -> impl Future<Output = ()> + Send + use<> {
        let login = self.state().logins.find(digest, Instant::now());
        async move {
            let Some((end, ended)) = login else { return };
            tokio::select! {
                () = ended.cancelled() => {}
                () = sleep_until(end) => {}
            }
        }
    }

    /// Ends the login with these halves, if there is one.
    pub(super) fn end<T: AsRef<str>>(&self, halves: &Halves<T>) {
        self.state().logins.take(&halves.digest(), Instant::now());
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
            .field("logins", &state.logins.kept.len())
            .finish()
    }
}

/// Secrets of one kind, the oldest first. Comparisons of digests take constant time.
struct Secrets {
    most: usize,
    time: Duration,
    kept: VecDeque<Secret>,
}

/// A secret that counts. Dropping it ends what it has begun.
struct Secret {
    digest: blake3::Hash,
    end: Instant,
    /// The end by the clock of the machine, which other runs share.
    stored_end: StoredTime,
    ended: CancellationToken,
}

impl Secret {
    fn new(digest: blake3::Hash, end: Instant, stored_end: StoredTime) -> Self {
        Self { digest, end, stored_end, ended: CancellationToken::new() }
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.ended.cancel();
    }
}

impl Secrets {
    fn new(most: usize, time: Duration) -> Self {
        Self { most, time, kept: VecDeque::new() }
    }

    /// Adds a secret that counts from now on.
    fn add(&mut self, digest: blake3::Hash, now: Instant) {
        let stored_end = StoredTime::after(SystemTime::now(), self.time);
        self.insert(Secret::new(digest, now + self.time, stored_end), now);
    }

    fn insert(&mut self, secret: Secret, now: Instant) {
        self.remove_old(now);
        if self.kept.len() >= self.most {
            self.kept.pop_front();
        }
        self.kept.push_back(secret);
    }

    fn contains(&mut self, digest: &blake3::Hash, now: Instant) -> bool {
        self.find(digest, now).is_some()
    }

    /// Returns the end of a secret that counts, and the token that is cancelled if it ends earlier.
    fn find(
        &mut self,
        digest: &blake3::Hash,
        now: Instant,
    ) -> Option<(Instant, CancellationToken)> {
        self.remove_old(now);
        let found = self.kept.iter().find(|kept| kept.digest == *digest)?;
        Some((found.end, found.ended.clone()))
    }

    /// Removes a secret. Returns false if it does not count.
    fn take(&mut self, digest: &blake3::Hash, now: Instant) -> bool {
        self.remove_old(now);
        let before = self.kept.len();
        self.kept.retain(|kept| kept.digest != *digest);
        self.kept.len() < before
    }

    fn remove_old(&mut self, now: Instant) {
        self.kept.retain(|kept| kept.end > now);
    }
}

fn digest(secret: &str) -> blake3::Hash {
    blake3::hash(secret.as_bytes())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use tokio::time::{advance, timeout};

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn code_is_valid_once() {
        let logins = Logins::default();
        let (one, other) = (logins.issue().unwrap(), logins.issue().unwrap());
        assert_ne!(one, other);
        assert_eq!(one.len(), 2 * CODE_BYTES);
        let first = logins.redeem(&one).unwrap().unwrap();
        assert!(logins.redeem(&one).unwrap().is_none(), "a replayed code");
        for half in [&first.cookie, &first.page_key] {
            assert!(logins.redeem(half).unwrap().is_none(), "a half of a login is no code");
        }
        let second = logins.redeem(&other).unwrap().unwrap();
        assert!(logins.find(&first).is_some() && logins.find(&second).is_some());
        let code = Halves { cookie: one.as_str(), page_key: &one };
        assert!(logins.find(&code).is_none(), "a code is no login");
    }

    #[tokio::test(start_paused = true)]
    async fn half_of_a_login_neither_counts_nor_ends_it() {
        let logins = Logins::default();
        let (one, other) = (log_in(&logins), log_in(&logins));
        for wrong in [
            Halves { cookie: one.cookie.as_str(), page_key: "" },
            Halves { cookie: &one.cookie, page_key: &other.page_key },
            Halves { cookie: &one.cookie, page_key: &one.cookie },
            Halves { cookie: "", page_key: &one.page_key },
            Halves { cookie: &other.cookie, page_key: &one.page_key },
        ] {
            assert!(logins.find(&wrong).is_none());
            logins.end(&wrong);
        }
        assert!(logins.find(&one).is_some() && logins.find(&other).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn code_is_valid_for_ten_minutes() {
        let logins = Logins::default();
        let (early, late) = (logins.issue().unwrap(), logins.issue().unwrap());
        advance(CODE_TIME - SECOND).await;
        assert!(logins.redeem(&early).unwrap().is_some());
        advance(SECOND).await;
        assert!(logins.redeem(&late).unwrap().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn login_counts_for_a_day_or_until_its_logout() {
        let logins = Logins::default();
        let (kept, ended) = (log_in(&logins), log_in(&logins));
        logins.end(&ended);
        advance(LOGIN_TIME - SECOND).await;
        assert!(logins.find(&kept).is_some() && logins.find(&ended).is_none());
        advance(SECOND).await;
        assert!(logins.find(&kept).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn codes_and_logins_are_bounded() {
        let logins = Logins::default();
        let codes: Vec<_> = (0..=MOST_CODES).map(|_| logins.issue().unwrap()).collect();
        assert!(logins.redeem(&codes[0]).unwrap().is_none());
        assert!(logins.redeem(&codes[1]).unwrap().is_some());
        let all: Vec<_> = (0..=MOST_LOGINS).map(|_| log_in(&logins)).collect();
        assert!(logins.find(&all[0]).is_none() && logins.find(&all[1]).is_some());
        let shown = format!("{logins:?}");
        assert!(shown.ends_with(&format!("logins: {MOST_LOGINS} }}")), "{shown}");
    }

    /// A place where logins are stored, as a file.
    #[derive(Clone, Default)]
    struct Stored(Arc<Mutex<String>>);

    impl Stored {
        fn text(&self) -> String {
            self.0.lock().unwrap().clone()
        }

        /// Returns the logins of a server that runs with this token and place.
        fn server(&self, token: &str, place: &str) -> Logins {
            let (logins, stored) = (Logins::default(), self.clone());
            let store = move |text: &str| *stored.0.lock().unwrap() = text.to_owned();
            logins.restore(&Token::new(token).unwrap(), place.as_bytes(), &self.text(), store);
            logins
        }
    }

    const TOKEN: &str = "0123456789abcdef";

    fn log_in(logins: &Logins) -> Halves<String> {
        logins.redeem(&logins.issue().unwrap()).unwrap().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn login_outlives_its_server_and_ends_by_logout() {
        let stored = Stored::default();
        let first = stored.server(TOKEN, "/project");
        let login = log_in(&first);
        for half in [&login.cookie, &login.page_key] {
            assert!(!stored.text().contains(half), "only their digest is stored");
        }
        let second = stored.server(TOKEN, "/project");
        assert!(second.find(&login).is_some());
        let half = Halves { cookie: login.cookie.as_str(), page_key: "" };
        assert!(second.find(&half).is_none());
        second.end(&login);
        assert!(stored.server(TOKEN, "/project").find(&login).is_none());
        advance(LOGIN_TIME).await;
        assert!(first.find(&login).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn login_outlives_neither_a_new_token_nor_its_place() {
        let stored = Stored::default();
        let login = log_in(&stored.server(TOKEN, "/project"));
        for (token, place) in [("fedcba9876543210", "/project"), (TOKEN, "/another")] {
            assert!(stored.server(token, place).find(&login).is_none(), "{token} {place}");
        }
        assert!(stored.server(TOKEN, "/project").find(&login).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn restart_does_not_prolong_a_login() {
        let stored = Stored::default();
        let first = log_in(&stored.server(TOKEN, "/project"));
        let before = stored.text();
        // A further login stores all of them again.
        let second = stored.server(TOKEN, "/project");
        let later = log_in(&second);
        assert!(stored.text().starts_with(&before), "{}", stored.text());
        advance(LOGIN_TIME + SECOND).await;
        assert!(second.find(&first).is_none() && second.find(&later).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn end_of_a_login_is_noticed() {
        let logins = Logins::default();
        let (left, late) = (log_in(&logins), log_in(&logins));
        let mut of_left = Box::pin(logins.over(&left.digest()));
        let mut of_late = Box::pin(logins.over(&late.digest()));
        assert!(timeout(SECOND, of_left.as_mut()).await.is_err());
        logins.end(&left);
        assert!(timeout(SECOND, of_left).await.is_ok());
        assert!(timeout(LOGIN_TIME - 3 * SECOND, of_late.as_mut()).await.is_err());
        assert!(timeout(3 * SECOND, of_late).await.is_ok());
        assert!(timeout(SECOND, logins.over(&digest("unknown"))).await.is_ok());
    }
}
