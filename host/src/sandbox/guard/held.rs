//! The descriptors that guests hold, counted over the whole process, of which at least half stay with the host, and over the calls of one plugin, which leave half
//! of what guests may hold to the other plugins.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use super::ledger::Exhausted;

/// What the host keeps beyond its half: for its runtimes, for the paths that it walks, and for the calls that begin.
const MARGIN: u64 = 64;

/// How many descriptors are held, of how many.
#[derive(Debug)]
struct Account {
    held: AtomicU64,
    limit: u64,
}

/// The descriptors that all calls of one plugin hold together.
#[derive(Clone, Debug)]
pub(crate) struct PluginFiles(Arc<Account>);

/// One descriptor that a guest holds, given back when it is dropped.
#[derive(Debug)]
pub(super) struct Held {
    _of_plugin: OneOf<Arc<Account>>,
    _of_process: OneOf<&'static Account>,
}

/// One that is booked on an account.
#[derive(Debug)]
struct OneOf<A: AsRef<Account>>(A);

impl Held {
    /// Books one, before it is opened.
    pub(super) fn one(plugin: &PluginFiles) -> Result<Self, Exhausted> {
        Self::of(plugin, process())
    }

    fn of(plugin: &PluginFiles, process: &'static Account) -> Result<Self, Exhausted> {
        let of_plugin = OneOf::book(Arc::clone(&plugin.0)).ok_or(Exhausted::PluginFiles(plugin.0.limit))?;
        let of_process = OneOf::book(process).ok_or(Exhausted::OpenFiles(process.limit))?;
        Ok(Self { _of_plugin: of_plugin, _of_process: of_process })
    }
}

impl Default for PluginFiles {
    fn default() -> Self {
        Self(Arc::new(Account::of((process().limit / 2).max(1))))
    }
}

impl Account {
    fn of(limit: u64) -> Self {
        Self { held: AtomicU64::new(0), limit }
    }
}

impl AsRef<Self> for Account {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl<A: AsRef<Account>> OneOf<A> {
    fn book(on: A) -> Option<Self> {
        let account = on.as_ref();
        let add = |held: u64| held.checked_add(1).filter(|sum| *sum <= account.limit);
        account.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).ok()?;
        Some(Self(on))
    }
}

impl<A: AsRef<Account>> Drop for OneOf<A> {
    fn drop(&mut self) {
        self.0.as_ref().held.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The account of this process. Its limit is looked up once: nobody changes it in a process that runs.
fn process() -> &'static Account {
    static PROCESS: OnceLock<Account> = OnceLock::new();
    PROCESS.get_or_init(|| Account::of(share(allowed())))
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
        let process: &'static Account = Box::leak(Box::new(Account::of(3)));
        let plugin = || PluginFiles(Arc::new(Account::of(2)));
        let (one, other) = (plugin(), plugin());
        let (first, second) = (Held::of(&one, process), Held::of(&one, process));
        assert!(first.is_ok() && second.is_ok());
        assert_eq!(Held::of(&one, process).map(drop), Err(Exhausted::PluginFiles(2)));
        let third = Held::of(&other, process);
        assert!(third.is_ok(), "what one plugin cannot take is there for another");
        assert_eq!(Held::of(&other, process).map(drop), Err(Exhausted::OpenFiles(3)));
        drop(first);
        assert_eq!(Held::of(&one, process).map(drop), Ok(()));
        assert_eq!(Held::of(&other, process).map(drop), Ok(()), "what was refused is not booked");
    }

    #[test]
    fn at_least_half_of_the_descriptors_stay_with_the_host() {
        for all in [64, 256, 1024, 20_000, u64::MAX] {
            assert!(share(all) > 0 && share(all) <= all / 2, "{all}: {}", share(all));
        }
        assert_eq!(share(1024), 448);
    }
}
