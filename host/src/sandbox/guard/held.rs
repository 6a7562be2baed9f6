//! The descriptors that guests hold, counted over the whole process: at least half of what there is stays with the host.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::ledger::Exhausted;

/// What the host keeps beyond its half: for its runtimes, for the paths that it walks, and for the calls that begin.
const MARGIN: u64 = 64;

/// How many descriptors are held, of how many.
#[derive(Debug)]
struct Account {
    held: AtomicU64,
    limit: u64,
}

/// One descriptor that a guest holds, given back when it is dropped.
#[derive(Debug)]
pub(super) struct Held(&'static Account);

impl Held {
    /// Books one, before it is opened.
    pub(super) fn one() -> Result<Self, Exhausted> {
        /// Looked up once: nobody changes it in a process that runs.
        static PROCESS: OnceLock<Account> = OnceLock::new();
        Self::of(PROCESS.get_or_init(|| Account { held: AtomicU64::new(0), limit: share(allowed()) }))
    }

    fn of(account: &'static Account) -> Result<Self, Exhausted> {
        let add = |held: u64| held.checked_add(1).filter(|sum| *sum <= account.limit);
        match account.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add) {
            Ok(_) => Ok(Self(account)),
            Err(_) => Err(Exhausted::OpenFiles(account.limit)),
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.held.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The part of a process's descriptors that guests may hold.
fn share(all: u64) -> u64 {
    (all / 2).saturating_sub(MARGIN).max(all / 4)
}

#[cfg(unix)]
fn allowed() -> u64 {
    use rustix::process::{Resource, getrlimit};
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

#[cfg(not(unix))]
fn allowed() -> u64 {
    u64::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_is_bounded_together_and_comes_back() {
        let account: &'static Account = Box::leak(Box::new(Account { held: AtomicU64::new(0), limit: 2 }));
        let (first, second) = (Held::of(account), Held::of(account));
        assert!(first.is_ok() && second.is_ok());
        assert_eq!(Held::of(account).map(drop), Err(Exhausted::OpenFiles(2)));
        drop(first);
        assert_eq!(Held::of(account).map(drop), Ok(()));
    }

    #[test]
    fn at_least_half_of_the_descriptors_stay_with_the_host() {
        for all in [64, 256, 1024, 20_000, u64::MAX] {
            assert!(share(all) > 0 && share(all) <= all / 2, "{all}: {}", share(all));
        }
        assert_eq!(share(1024), 448);
    }
}
