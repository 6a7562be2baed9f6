//! The owner of shared process resources: a plugin, identified by the digest of its code, or a
//! native tool.

use super::account::{Account, CallBudget, ClientShares, Counter};
use super::call_queue::WAITING_CALLS;
use super::share::{Group, GroupKind, Groups, Owner, Pool, Share};
use crate::tool::Digest;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

/// The most sandboxes in the process.
pub(crate) const SANDBOXES: u32 = 256;
/// The sandboxes of a process that makes one call: twice those that the largest plugin takes, since
/// an owner gets at most half of a pool.
pub(crate) const ONE_CALL_SANDBOXES: u32 = 16;
/// The most sandboxes for the calls that tools make. They are not among the others: calls that wait
/// for their own calls could hold all of those.
pub(crate) const NESTED_SANDBOXES: u32 = 64;
/// The sandboxes of this process, fixed when the pool is created.
static SIZE: OnceLock<u32> = OnceLock::new();
/// File descriptors reserved for the host beyond its half: for its runtimes, for path resolution
/// and for calls that are starting.
const MARGIN: u64 = 64;

/// The time slice for which a guest or the host computes for a call before it yields.
pub(crate) const TICK: Duration = Duration::from_millis(2);
/// The age at which a turn is abandoned. It exceeds a tick by the time a busy machine takes to poll
/// a guest and by the time of one host call.
pub(crate) const TURN: Duration = Duration::from_millis(50);

/// The number of clock ticks, about a second, for which a call of one owner makes other owners
/// begin their calls in turns.
const ACTIVE: u64 = 500;

/// The way a guest gets its first tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FirstTick {
    /// Immediately, because most calls end within it.
    Free,
    /// In a turn, like all later ticks.
    InTurn,
}

/// One owner's shares in the pools of the process. Two hosts in one process that load the same
/// plugin share them.
#[derive(Debug)]
pub(crate) struct OwnerShares {
    /// The share of the sandboxes.
    pub(crate) sandboxes: Arc<Share>,
    /// The share of the queue slots.
    pub(crate) queue: Arc<Share>,
    /// The share of the descriptors that guests hold.
    pub(crate) descriptors: Arc<Share>,
    /// The share of the turns to compute.
    pub(crate) turns: Arc<Share>,
    /// The memory that this owner's guests hold.
    pub(crate) memory: Arc<Counter>,
}

impl OwnerShares {
    /// Returns the shares of this plugin or native tool, for calls that belong to no caller.
    pub(crate) fn new(plugin: Digest) -> Self {
        Self::of(&owner_of(plugin))
    }

    /// Returns the shares of this owner.
    pub(crate) fn of(owner: &Owner) -> Self {
        Self {
            sandboxes: sandboxes().share_of(owner),
            queue: queue().share_of(owner),
            descriptors: descriptors().share_of(owner),
            turns: turns().share_of(owner),
            memory: memory_counter(owner.name(), || owner.groups().clone()),
        }
    }

    /// Decides how a guest of this owner gets its first tick, which begins now.
    ///
    /// A single active owner may use every core. With several active owners, each takes turns from
    /// the first tick on, because many short calls fill the runtime's queue as a few long ones do.
    /// An owner also takes turns if as many of its guests wait as there are turns: their first
    /// ticks together would take as long as many turns.
    pub(crate) fn first_tick(&self) -> FirstTick {
        let is_crowded = self.turns.waiting() as u64 >= self.turns.pool().capacity();
        let is_contended = CALLS.begins(self.turns.number(), NOW.load(Ordering::Relaxed));
        if is_crowded || is_contended { FirstTick::InTurn } else { FirstTick::Free }
    }
}

/// Returns the owner of a plugin's calls that belong to no caller. The plugin's calls of all
/// callers are one group.
pub(crate) fn owner_of(plugin: Digest) -> Owner {
    Owner::new(plugin, Groups::new([Group::named(GroupKind::Plugin, plugin)]))
}

/// The recent calls of the process.
static CALLS: Activity = Activity::new();

/// Ticks of the engine's clock, which stops after a period without activity.
static NOW: AtomicU64 = AtomicU64::new(0);

/// True if a guest has computed since the last check.
static COMPUTED: AtomicBool = AtomicBool::new(false);

/// Records that a guest of this owner computes beyond its first tick. Otherwise an owner whose
/// calls run for long would count as inactive, and take the turns of every core beside another
/// owner with short calls.
pub(crate) fn note_turn(turns: &Share) {
    CALLS.begins(turns.number(), NOW.load(Ordering::Relaxed));
}

/// Records that a guest computes.
pub(crate) fn note_computing() {
    // The load avoids a write when the flag is set, so that the cache line stays shared between
    // cores.
    if !COMPUTED.load(Ordering::Relaxed) {
        COMPUTED.store(true, Ordering::Relaxed);
    }
}

/// Returns true if a guest has computed since the last call of this function.
pub(crate) fn has_computed() -> bool {
    COMPUTED.swap(false, Ordering::Relaxed)
}

/// Advances the clock by one tick and abandons turns older than `turn`.
pub(crate) fn tick(turn: Duration) {
    NOW.fetch_add(1, Ordering::Relaxed);
    turns().abandon_older_than(turn);
}

/// The owners that have begun calls recently.
#[derive(Debug)]
struct Activity {
    /// The number of the owner that began the last call; 0 before the first call.
    latest: AtomicU64,
    /// The tick until which more than one owner counts as active.
    contended_until: AtomicU64,
}

impl Activity {
    const fn new() -> Self {
        Self { latest: AtomicU64::new(0), contended_until: AtomicU64::new(0) }
    }

    /// Records that an owner begins a call; returns true if other owners did so recently.
    fn begins(&self, owner: u64, now: u64) -> bool {
        // Repeated calls of one owner write nothing, which avoids contention on the cache line.
        if self.latest.load(Ordering::Relaxed) != owner
            && self.latest.swap(owner, Ordering::Relaxed) != 0
        {
            self.contended_until.store(now + ACTIVE, Ordering::Relaxed);
        }
        self.is_contended(now)
    }

    /// Returns true if more than one owner has begun calls recently.
    fn is_contended(&self, now: u64) -> bool {
        now < self.contended_until.load(Ordering::Relaxed)
    }
}

/// Returns the memory counter of an owner, shared by all users while one of them holds it. All uses
/// of one name must have the same groups.
fn memory_counter(owner: Digest, groups: impl FnOnce() -> Groups) -> Arc<Counter> {
    static COUNTERS: Mutex<BTreeMap<Digest, Weak<Counter>>> = Mutex::new(BTreeMap::new());
    let mut counters = COUNTERS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = counters.get(&owner).and_then(Weak::upgrade) {
        return known;
    }
    counters.retain(|_, counter| counter.strong_count() > 0);
    let counter = Arc::new(Counter::within(groups()));
    counters.insert(owner, Arc::downgrade(&counter));
    counter
}

/// Makes the pools of this process small, because it makes one call and ends. Each sandbox in the
/// engine's pool costs system calls at its creation, and 256 of them a quarter of the time of a
/// call from the command line. Has no effect if the pool exists.
pub fn expect_one_call() {
    let _ = SIZE.set(ONE_CALL_SANDBOXES);
}

/// Returns the number of sandboxes in the pool of this process.
pub(crate) fn sandbox_count() -> u32 {
    *SIZE.get_or_init(|| SANDBOXES)
}

/// Returns the pool of sandboxes.
pub(crate) fn sandboxes() -> &'static Pool {
    static POOL: OnceLock<Pool> = OnceLock::new();
    POOL.get_or_init(|| Pool::new(u64::from(sandbox_count())))
}

/// Returns the number of sandboxes for the calls that tools of this process make.
pub(crate) fn nested_sandbox_count() -> u32 {
    sandbox_count().min(NESTED_SANDBOXES)
}

/// Returns the pool of sandboxes for the calls that tools make.
pub(crate) fn nested_sandboxes() -> &'static Pool {
    static POOL: OnceLock<Pool> = OnceLock::new();
    POOL.get_or_init(|| Pool::new(u64::from(nested_sandbox_count())))
}

/// Returns the pool of queue slots.
pub(crate) fn queue() -> &'static Pool {
    static POOL: OnceLock<Pool> = OnceLock::new();
    POOL.get_or_init(|| Pool::new(WAITING_CALLS as u64))
}

/// Returns the pool of turns, one per core. A turn is a lease, because its holder may hang in a
/// system call or may no longer be polled. A single active owner may use every core.
pub(crate) fn turns() -> &'static Pool {
    static POOL: OnceLock<Pool> = OnceLock::new();
    let is_contended = || CALLS.is_contended(NOW.load(Ordering::Relaxed));
    let cores = || std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
    POOL.get_or_init(|| Pool::leased_while(cores(), is_contended))
}

/// Returns the share in which inputs are checked: inputs come from clients, so no plugin is charged
/// for them.
fn input_turns() -> &'static Arc<Share> {
    static SHARE: OnceLock<Arc<Share>> = OnceLock::new();
    SHARE.get_or_init(|| turns().share(Digest::of(b"the inputs of all calls")))
}

/// Returns the shares of the messages of a caller, which a server identifies. All messages of one
/// session have shares of their own, and so have all that belong to none.
#[must_use]
pub fn client_shares(caller: Digest, session: Option<&str>) -> ClientShares {
    let name = match session {
        None => caller,
        Some(session) => Digest::of(format!("session {session} of {caller}").as_bytes()),
    };
    let groups = || Groups::new([Group::named(GroupKind::Caller, caller)]);
    let memory = memory_counter(name, groups);
    let owner = Owner::new(name, memory.groups().clone());
    ClientShares::new(turns().share_of(&owner), memory)
}

/// Returns the share in which the input of this call is checked: that of its client, if a server
/// keeps shares for it.
pub fn input_turns_of(account: Option<&Account>) -> &Arc<Share> {
    account.and_then(Account::client).map_or_else(|| input_turns(), ClientShares::turns)
}

/// Returns the share in which the input of a call with this budget is checked.
pub fn input_turns_within(budget: &CallBudget) -> &Arc<Share> {
    input_turns_of(Some(budget.account()))
}

/// Returns the share in which the host's own responses are serialized, such as the list of tools.
pub fn answer_turns() -> &'static Arc<Share> {
    static SHARE: OnceLock<Arc<Share>> = OnceLock::new();
    SHARE.get_or_init(|| turns().share(Digest::of(b"the answers of the host")))
}

/// Returns the pool of descriptors for guests. The process's limit is read once, because nothing
/// changes it at run time.
pub(crate) fn descriptors() -> &'static Pool {
    static POOL: OnceLock<Pool> = OnceLock::new();
    POOL.get_or_init(|| Pool::new(guest_descriptors()))
}

/// Returns the number of file descriptors that all guests together may hold.
pub fn guest_descriptors() -> u64 {
    guest_part(descriptor_limit())
}

/// Returns the part of the process's descriptors that guests may hold; at least half stays with the
/// host.
fn guest_part(all: u64) -> u64 {
    (all / 2).saturating_sub(MARGIN).max(all / 4)
}

fn descriptor_limit() -> u64 {
    use rustix::process::{Resource, getrlimit};
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_descriptors_stay_with_the_host() {
        for all in [64, 256, 1024, 20_000, u64::MAX] {
            assert!(
                guest_part(all) > 0 && guest_part(all) <= all / 2,
                "{all}: {}",
                guest_part(all)
            );
        }
        assert_eq!(guest_part(1024), 448);
    }

    #[test]
    fn owner_stays_active_briefly_after_its_last_call() {
        let calls = Activity::new();
        assert!(!calls.begins(1, 10) && !calls.begins(1, 11), "it is alone");
        assert!(calls.begins(2, 12) && calls.begins(2, 12 + ACTIVE - 1));
        assert!(!calls.begins(2, 12 + ACTIVE), "it has been alone for long");
        assert!(calls.begins(1, 2 * ACTIVE) && calls.begins(2, 2 * ACTIVE));
    }

    #[test]
    fn plugin_loaded_twice_has_one_set_of_shares() {
        let one = OwnerShares::new(Digest::of(b"loaded twice"));
        let other = OwnerShares::new(Digest::of(b"loaded twice"));
        assert!(
            Arc::ptr_eq(&one.sandboxes, &other.sandboxes) && Arc::ptr_eq(&one.turns, &other.turns)
        );
        assert!(Arc::ptr_eq(&one.memory, &other.memory));
    }
}
