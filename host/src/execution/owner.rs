//! An owner of what the process has only so much of: a plugin, by the digest of its code, or a
//! native tool.

use super::account::Sum;
use super::share::{Pool, Share};
use super::waiting::WAITING_CALLS;
use crate::tool::Digest;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

/// Sandboxes that live at once in the process.
pub(crate) const SANDBOXES: u32 = 256;
/// Descriptors that the host keeps beyond its half: for its runtimes, for the paths that it walks,
/// and for the calls that begin.
const MARGIN: u64 = 64;

/// How long guests and the host compute for a call before others have their turns.
pub(crate) const TICK: Duration = Duration::from_millis(2);
/// How long a turn may last before it is written off: longer than a tick by what a busy machine takes to poll a guest,
/// and by what one host call computes.
pub(crate) const TURN: Duration = Duration::from_millis(50);

/// For how many ticks of the clock after a call of one owner another owner begins its calls in
/// turns: about a second.
const ACTIVE: u64 = 500;

/// How a guest gets its first tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FirstTick {
    /// At once: most calls are over by its end.
    Free,
    /// In a turn, as all that follow.
    InTurn,
}

/// The shares of one owner in the pools of the process. Two hosts of one process that load one
/// plugin share them.
#[derive(Debug)]
pub(crate) struct Owner {
    /// Of the sandboxes.
    pub(crate) sandboxes: Arc<Share>,
    /// Of the places for calls that wait.
    pub(crate) queue: Arc<Share>,
    /// Of the descriptors that guests hold.
    pub(crate) descriptors: Arc<Share>,
    /// Of the turns to compute.
    pub(crate) turns: Arc<Share>,
    /// What its guests hold of the memory of all calls.
    pub(crate) memory: Arc<Sum>,
}

impl Owner {
    /// The shares of this owner.
    pub(crate) fn of(owner: Digest) -> Self {
        Self {
            sandboxes: sandboxes().share(owner),
            queue: queue().share(owner),
            descriptors: descriptors().share(owner),
            turns: turns().share(owner),
            memory: memory_of(owner),
        }
    }

    /// How a guest of this owner gets its first tick, that begins now.
    ///
    /// The owner that alone is active has every core. Beside others it has its part of the turns
    /// from the first tick on: many short calls fill the queue of a runtime as few long ones do.
    /// The same holds where as many guests of this owner wait for their turns as there are turns,
    /// since the first ticks of many take as long as many turns.
    pub(crate) fn first_tick(&self) -> FirstTick {
        let is_crowded = self.turns.waiting() as u64 >= self.turns.pool().capacity();
        let is_contended = CALLS.begins(self.turns.number(), NOW.load(Ordering::Relaxed));
        if is_crowded || is_contended { FirstTick::InTurn } else { FirstTick::Free }
    }
}

/// The calls of the process.
static CALLS: Activity = Activity::new();

/// Ticks of the clock. It stands still when nothing has run for long.
static NOW: AtomicU64 = AtomicU64::new(0);

/// Whether a guest has computed since the clock looked last.
static COMPUTED: AtomicBool = AtomicBool::new(false);

/// Notes that a guest computes.
pub(crate) fn note_computing() {
    // Cores that only read do not take the cache line from each other.
    if !COMPUTED.load(Ordering::Relaxed) {
        COMPUTED.store(true, Ordering::Relaxed);
    }
}

/// Whether a guest has computed since the last call of this function.
pub(crate) fn has_computed() -> bool {
    COMPUTED.swap(false, Ordering::Relaxed)
}

/// One tick of the clock: turns that last longer than this are written off.
pub(crate) fn tick(turn: Duration) {
    NOW.fetch_add(1, Ordering::Relaxed);
    turns().write_off_older_than(turn);
}

/// Who has begun calls lately.
#[derive(Debug)]
struct Activity {
    /// The number of the owner that has begun the last call; 0 before the first one.
    latest: AtomicU64,
    /// Until which tick more than one owner counts as active.
    contended_until: AtomicU64,
}

impl Activity {
    const fn new() -> Self {
        Self { latest: AtomicU64::new(0), contended_until: AtomicU64::new(0) }
    }

    /// Notes that an owner begins a call, and tells whether others have done so lately.
    fn begins(&self, owner: u64, now: u64) -> bool {
        // Where one owner calls again and again, nothing is written.
        if self.latest.load(Ordering::Relaxed) != owner && self.latest.swap(owner, Ordering::Relaxed) != 0 {
            self.contended_until.store(now + ACTIVE, Ordering::Relaxed);
        }
        self.is_contended(now)
    }

    /// Whether more than one owner has begun calls lately.
    fn is_contended(&self, now: u64) -> bool {
        now < self.contended_until.load(Ordering::Relaxed)
    }
}

/// The sum of the memory of an owner's guests, the same for all who ask while it is referred to.
fn memory_of(owner: Digest) -> Arc<Sum> {
    static SUMS: Mutex<BTreeMap<Digest, Weak<Sum>>> = Mutex::new(BTreeMap::new());
    let mut sums = SUMS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = sums.get(&owner).and_then(Weak::upgrade) {
        return known;
    }
    sums.retain(|_, sum| sum.strong_count() > 0);
    let sum = Arc::<Sum>::default();
    sums.insert(owner, Arc::downgrade(&sum));
    sum
}

/// The sandboxes of the process.
pub(crate) fn sandboxes() -> &'static Pool {
    static POOL: OnceLock<Pool> = OnceLock::new();
    POOL.get_or_init(|| Pool::new(u64::from(SANDBOXES)))
}

/// The places for calls of the process that wait.
pub(crate) fn queue() -> &'static Pool {
    static POOL: OnceLock<Pool> = OnceLock::new();
    POOL.get_or_init(|| Pool::new(WAITING_CALLS as u64))
}

/// The turns to compute, one for each core. A turn is a lease: its holder may hang in the kernel,
/// or be polled no more. The owner that alone is active computes on every core.
pub(crate) fn turns() -> &'static Pool {
    static POOL: OnceLock<Pool> = OnceLock::new();
    let is_contended = || CALLS.is_contended(NOW.load(Ordering::Relaxed));
    let cores = || std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
    POOL.get_or_init(|| Pool::leased_while(cores(), is_contended))
}

/// The turns in which inputs are checked: it is a client that makes them, and no plugin pays for it.
pub(crate) fn input_turns() -> &'static Arc<Share> {
    static SHARE: OnceLock<Arc<Share>> = OnceLock::new();
    SHARE.get_or_init(|| turns().share(Digest::of(b"the inputs of all calls")))
}

/// The descriptors that guests may hold. The limit of the process is looked up once: nothing
/// changes it at run time.
fn descriptors() -> &'static Pool {
    static POOL: OnceLock<Pool> = OnceLock::new();
    POOL.get_or_init(|| Pool::new(part_of_guests(allowed())))
}

/// The part of a process's descriptors that guests may hold: at least half stays with the host.
fn part_of_guests(all: u64) -> u64 {
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
    fn at_least_half_of_the_descriptors_stay_with_the_host() {
        for all in [64, 256, 1024, 20_000, u64::MAX] {
            assert!(part_of_guests(all) > 0 && part_of_guests(all) <= all / 2, "{all}: {}", part_of_guests(all));
        }
        assert_eq!(part_of_guests(1024), 448);
    }

    #[test]
    fn others_count_as_active_for_a_while_after_their_last_call() {
        let calls = Activity::new();
        assert!(!calls.begins(1, 10) && !calls.begins(1, 11), "it is alone");
        assert!(calls.begins(2, 12) && calls.begins(2, 12 + ACTIVE - 1));
        assert!(!calls.begins(2, 12 + ACTIVE), "it has been alone for long");
        assert!(calls.begins(1, 2 * ACTIVE) && calls.begins(2, 2 * ACTIVE));
    }

    #[test]
    fn a_plugin_has_the_same_shares_wherever_it_is_loaded() {
        let (one, other) = (Owner::of(Digest::of(b"loaded twice")), Owner::of(Digest::of(b"loaded twice")));
        assert!(Arc::ptr_eq(&one.sandboxes, &other.sandboxes) && Arc::ptr_eq(&one.turns, &other.turns));
        assert!(Arc::ptr_eq(&one.memory, &other.memory));
    }
}
