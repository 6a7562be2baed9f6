//! Every limit of the sandbox, each a named constant with its reason.

use crate::execution::account::{Account, MemoryLimits};
use std::sync::OnceLock;
use std::time::Duration;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Linear memory of one call, all memories together: enough for an interpreter of Python with its libraries.
pub const MEMORY: u64 = 128 * MIB;
/// The most that an operator can raise [`MEMORY`] to: one slot of the pool.
pub const MAX_MEMORY: u64 = 512 * MIB;
/// Memory of all calls of the process together, on a machine that has twice as much: with 256 calls at their own limit a machine would be long out
/// of memory before any of them is refused something.
pub const TOTAL_MEMORY: u64 = 4 * GIB;
/// Memory of a guest that is cleared before its answer. More takes the kernel milliseconds: it is cleared after the
/// answer, in a turn of the plugin.
pub const CLEARED_AT_ONCE: u64 = 8 * MIB;
/// What the host itself may hold for a call, on top of the memory of its guest: the input, results, parsed JSON, tables.
pub const HOST_DATA: u64 = crate::execution::account::HOST_DATA;
/// What an element of a table takes.
pub const TABLE_ELEMENT: u64 = size_of::<usize>() as u64;
/// Time of one call of class none, read or write.
pub const TIMEOUT: Duration = Duration::from_secs(60);
/// Time of one call of class execute or network, and the most that anybody can ask for.
pub const MAX_TIMEOUT: Duration = Duration::from_secs(600);
/// Time for `definitions`, which computes nothing that takes time.
pub const DESCRIBE_TIMEOUT: Duration = Duration::from_secs(2);
/// Time in queues: for a place in the session and in the message, and for a sandbox, together.
pub const QUEUE_TIMEOUT: Duration = Duration::from_secs(60);
/// [`QUEUE_TIMEOUT`] in milliseconds.
pub const QUEUE_MILLIS: u64 = QUEUE_TIMEOUT.as_secs() * 1_000;
/// Time from a cancellation to the end of a guest that polls for it.
pub const CANCEL_GRACE: Duration = Duration::from_millis(25);
/// The period of the epoch clock: the precision with which a computing guest is stopped, and how long it holds its
/// thread. Short, as each new guest computes for its first tick beside those that take turns; most calls are over by
/// then. Waking the clock for it takes 0.5 to 2 % of a core; where no guest computes, the
/// clock ticks five times less often.
pub const TICK: Duration = crate::execution::owner::TICK;
/// How long a turn to compute may last before it is written off.
pub const TURN: Duration = crate::execution::owner::TURN;

/// How long a call that is to end may still hold its thread in one piece of work before that thread counts as lost: well below the 2 s in which a caller
/// expects an answer, and well above what a busy machine takes from one await to the next.
pub const THREAD_GRACE: Duration = Duration::from_millis(500);
/// Time to open a workspace that may hang.
pub const OPENING: Duration = Duration::from_secs(10);
/// Threads on which calls run in the second mode, unless somebody says otherwise.
pub const CALL_THREADS: u32 = 64;
/// Threads of calls that may be lost to the kernel at once. Each keeps its sandbox, and there are 256 of those.
pub const LOST_THREADS: u32 = 32;
/// The most that [`LOST_THREADS`] can be raised to: the other half of the sandboxes stays free.
pub const MAX_LOST_THREADS: u32 = LIVE_SANDBOXES / 2;

/// Sandboxes that live at once in the process. A call of a plugin takes one for each two of its memories, and for each 32 of
/// its tables, whichever are more: so much there is in the pool.
pub const LIVE_SANDBOXES: u32 = crate::execution::owner::SANDBOXES;
/// Sandboxes kept for asking plugins what they are, so that one can be loaded while every other sandbox is taken.
pub const LOADING_SANDBOXES: u32 = 16;
/// Core instances of one call. A Python component has some 60.
pub const INSTANCES: usize = 128;
/// What the engine keeps for the core instances of one call, in bytes, together: globals, imports and references to functions.
pub const INSTANCE_DATA: usize = MIB as usize;
/// Linear memories of one call.
pub const MEMORIES: usize = 16;
/// Tables of one call. A Python component has 14 modules with up to two each.
pub const TABLES: usize = 64;
/// Elements of all tables of one call: function pointers, of which interpreters have some ten thousand.
pub const TABLE_ELEMENTS: usize = 100_000;
/// Tables of one module.
pub const MODULE_TABLES: u32 = 4;
/// Elements of one table.
pub const ELEMENTS_PER_TABLE: usize = 20_000;
/// Resources that the host holds for one guest; each may be a file descriptor.
pub const HANDLES: usize = 256;
/// Handles of the component model inside one store, which are charged to nothing else (GHSA-q554-3cjc-rx7p).
pub const COMPONENT_HANDLES: usize = 2_048;
/// What one host call may copy out of a guest; it bounds the lifted result as well.
pub const HOSTCALL_DATA: u64 = 8 * MIB;
/// The output that a call returns.
pub const RESULT: u64 = 4 * MIB;
/// Standard output and standard error of a call, each.
pub const STDIO: usize = 256 * KIB as usize;
/// Log messages of a call, together.
pub const LOG: usize = 256 * KIB as usize;
/// One log or progress message.
pub const MESSAGE: usize = 4 * KIB as usize;
/// Chunks emitted in a call, together.
pub const EMITTED: usize = MIB as usize;
/// Steps of progress in a call.
pub const PROGRESS_STEPS: usize = 10_000;
/// Times that a call may ask its client: each is a round of a person's patience.
pub const ASKS: usize = 3;
/// Requests of one `ask`.
pub const ASKED_AT_ONCE: usize = 8;
/// Parameters of one `ask`, and answers of a call, each in sum.
pub const ASKED: usize = 256 * KIB as usize;
/// How long one `ask` waits: as long as a question whether a call may run.
pub const ASK_TIMEOUT: Duration = Duration::from_secs(300);
/// Random bytes per host call: the generator works byte by byte and cannot be interrupted.
pub const RANDOM: u64 = 64 * KIB;
/// The largest component. A Python component is 18 to 20 MB.
pub const COMPONENT: u64 = 64 * MIB;

/// The limits that an operator can set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Linear memory of one call, in bytes, at most 512 MiB.
    pub memory: u64,
    /// Time of one call; `None` leaves the default of the tool's class.
    pub timeout: Option<Duration>,
    /// Memory of all calls of the process together, of their guests and of the host for them, in bytes, at least that of one call. Calls of every host in the
    /// process count.
    pub total_memory: u64,
}

impl Limits {
    /// An empty account for one call.
    pub(crate) fn account(&self) -> Account {
        Account::new(MemoryLimits { call: self.memory, total: self.total_memory })
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { memory: MEMORY, timeout: None, total_memory: total_memory() }
    }
}

/// [`TOTAL_MEMORY`], or half of what this machine has where that is less; never less than one call may have.
#[must_use]
pub fn total_memory() -> u64 {
    static LESSER: OnceLock<u64> = OnceLock::new();
    *LESSER.get_or_init(|| physical_memory().map_or(TOTAL_MEMORY, |bytes| (bytes / 2).clamp(MAX_MEMORY, TOTAL_MEMORY)))
}

/// What Linux says that the machine has, in bytes.
pub(crate) fn physical_memory() -> Option<u64> {
    let told = std::fs::read_to_string("/proc/meminfo").ok()?;
    let kib = told.lines().find_map(|line| line.strip_prefix("MemTotal:"))?.split_whitespace().next()?;
    kib.parse::<u64>().ok()?.checked_mul(KIB)
}
