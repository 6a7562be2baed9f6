//! All limits of the sandbox, each a named constant with its reason.

pub(crate) mod memory;

use crate::execution::account::{Account, MemoryLimits};
use crate::tool::SideEffects;
pub(crate) use memory::usable as usable_memory;
use std::sync::OnceLock;
use std::time::Duration;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Linear memory of one call, over all of its memories, in bytes: enough for a Python interpreter
/// with its libraries.
pub const MEMORY: u64 = 128 * MIB;
/// The upper bound of [`MEMORY`] in the settings of an operator: one slot of the pool.
pub const MAX_MEMORY: u64 = 512 * MIB;
/// Memory of all calls of the process together, in bytes, on a machine that has twice as much.
/// Without this limit, 256 calls could exhaust the memory of a machine before any of them reaches
/// its own limit.
pub const TOTAL_MEMORY: u64 = 4 * GIB;
/// The upper bound of [`TOTAL_MEMORY`] in the settings of an operator: more than machines have, so
/// that a slip of the unit is found.
pub const MAX_TOTAL_MEMORY: u64 = 16 << 40;
/// Guest memory that is cleared before the answer, in bytes. More takes the kernel milliseconds, so
/// it is cleared after the answer, in a turn of the plugin.
pub const CLEARED_AT_ONCE: u64 = 8 * MIB;
/// Memory that the host may hold for a call in addition to the guest's, in bytes: input, results,
/// parsed JSON and tables.
pub const HOST_DATA: u64 = crate::execution::account::HOST_DATA;
/// The stack of a call of quickly compiled code, in bytes, which the call reserves as a whole: one
/// half for the guest, and one for its allocator, when a host function calls it. A half is eight
/// times what optimised code has.
pub const BASELINE_STACK: u64 = 8 * MIB;
/// The size of a table element, in bytes.
pub const TABLE_ELEMENT: u64 = size_of::<usize>() as u64;
/// Timeout of a call of class none, read or write.
pub const TIMEOUT: Duration = Duration::from_secs(60);
/// Timeout of a call of class execute or network, and the largest timeout that can be requested.
pub const MAX_TIMEOUT: Duration = Duration::from_secs(600);
/// Returns the timeout of a call of this class, unless another one is set.
#[must_use]
pub const fn default_timeout(class: SideEffects) -> Duration {
    match class {
        SideEffects::None | SideEffects::Read | SideEffects::Write => TIMEOUT,
        SideEffects::Execute | SideEffects::Network => MAX_TIMEOUT,
    }
}
/// Timeout of `definitions`, which has nothing expensive to compute.
pub const DESCRIBE_TIMEOUT: Duration = Duration::from_secs(2);
/// Timeout of all queues of a call together: for a slot in the session, a slot in the message, and
/// a sandbox.
pub const QUEUE_TIMEOUT: Duration = Duration::from_secs(60);
/// [`QUEUE_TIMEOUT`] in milliseconds.
pub const QUEUE_MILLIS: u64 = QUEUE_TIMEOUT.as_secs() * 1_000;
/// Grace period after a cancellation for a guest that polls for it.
pub const CANCEL_GRACE: Duration = Duration::from_millis(25);
/// The period of the epoch clock: the precision with which a computing guest is stopped, and how
/// long it holds its thread. The period is short, because a new guest computes for its first tick
/// in addition to the guests that hold turns; most calls end within it. The wake-ups of the clock
/// take 0.5 to 2 % of a core; while no guest computes, the clock ticks five times less often.
pub const TICK: Duration = crate::execution::owner::TICK;
/// The duration after which a turn to compute is abandoned.
pub const TURN: Duration = crate::execution::owner::TURN;

/// How long a call that must end may hold its thread in one piece of work before the thread counts
/// as lost: well below the 2 s within which a caller expects an answer, and well above the time
/// between two awaits on a busy machine.
pub const THREAD_GRACE: Duration = Duration::from_millis(500);
/// Timeout for opening a workspace, which may hang.
pub const OPENING: Duration = Duration::from_secs(10);
/// The default number of call threads in the call mode `OwnThreads`.
pub const CALL_THREADS: u32 = 64;
/// The number of call threads that may be lost to the kernel at once. Each keeps its sandbox, of
/// which there are 256.
pub const LOST_THREADS: u32 = 32;
/// The upper bound of [`LOST_THREADS`] in the settings: the other half of the sandboxes stays free.
pub const MAX_LOST_THREADS: u32 = LIVE_SANDBOXES / 2;

/// Sandbox units of the process. A call takes one unit for every two memories or every 32 tables of
/// its component, whichever is more. The pool is sized accordingly.
pub const LIVE_SANDBOXES: u32 = crate::execution::owner::SANDBOXES;
/// Sandboxes reserved for the description of plugins, so that a plugin can be loaded while all
/// other sandboxes are taken.
pub const LOADING_SANDBOXES: u32 = 16;
/// Core instances of one call. A Python component has about 60.
pub const INSTANCES: usize = 128;
/// The engine's data for all core instances of one call together, in bytes: globals, imports and
/// function references.
pub const INSTANCE_DATA: usize = MIB as usize;
/// Linear memories of one call.
pub const MEMORIES: usize = 16;
/// Tables of one call. A Python component has 14 modules with up to two tables each.
pub const TABLES: usize = 64;
/// Elements of all tables of one call together. They are function pointers, of which interpreters
/// have on the order of ten thousand.
pub const TABLE_ELEMENTS: usize = 100_000;
/// Tables of one module.
pub const MODULE_TABLES: u32 = 4;
/// Elements of one table.
pub const ELEMENTS_PER_TABLE: usize = 20_000;
/// Resources that the host holds for one guest. Each may be a file descriptor.
pub const HANDLES: usize = 256;
/// Component-model handles in one store, which no other limit covers (GHSA-q554-3cjc-rx7p).
pub const COMPONENT_HANDLES: usize = 2_048;
/// The size of the data that one host call may copy out of a guest, in bytes. It also bounds the
/// lifted result.
pub const HOSTCALL_DATA: u64 = 8 * MIB;
/// The size of the output of a call, in bytes.
pub const RESULT: u64 = 4 * MIB;
/// The size of the captured standard output, and of the captured standard error, of a call, in
/// bytes.
pub const STDIO: usize = 256 * KIB as usize;
/// The size of all log messages of a call together, in bytes.
pub const LOG: usize = 256 * KIB as usize;
/// The size of one log or progress message, in bytes.
pub const MESSAGE: usize = 4 * KIB as usize;
/// The size of all chunks emitted in a call together, in bytes.
pub const EMITTED: usize = MIB as usize;
/// Progress reports of a call.
pub const PROGRESS_STEPS: usize = 10_000;
/// Invocations of `ask` in one call. Each may need the attention of a person.
pub const ASKS: usize = 3;
/// Requests in one `ask`.
pub const ASKED_AT_ONCE: usize = 8;
/// The size of all parameters of one `ask`, and of all answers in a call, each, in bytes.
pub const ASKED: usize = 256 * KIB as usize;
/// Timeout of one `ask`, the same as for a question whether a call may run.
pub const ASK_TIMEOUT: Duration = Duration::from_secs(300);
/// Calls of other tools that a guest makes at once. The host keeps the results of all of them until
/// the last one has ended.
pub const NESTED_AT_ONCE: usize = 32;

/// The time in which the calls of a stopped guest end. A native tool has 30 s to end after a stop.
pub(crate) const NESTED_GRACE: Duration = Duration::from_secs(31);
/// Random bytes per host call. The generator works byte by byte and cannot be interrupted.
pub const RANDOM: u64 = 64 * KIB;
/// The largest component, in bytes. A Python component has 18 to 20 MB.
pub const COMPONENT: u64 = 64 * MIB;

/// The limits that an operator can set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Linear memory of one call, in bytes; at most 512 MiB.
    pub memory: u64,
    /// Timeout of a call; `None` means the default of the tool's class.
    pub timeout: Option<Duration>,
    /// Memory of all calls of the process together, in bytes: that of their guests, and that of the
    /// host for them. At least the limit of one call, and at most 16 TiB. The calls of every host
    /// in the process count.
    pub total_memory: u64,
}

impl Limits {
    /// Creates an empty account for one call.
    #[doc(hidden)]
    pub fn account(&self) -> Account {
        Account::new(self.of_memory())
    }

    /// Returns the limits on memory.
    #[doc(hidden)]
    #[must_use]
    pub fn of_memory(&self) -> MemoryLimits {
        MemoryLimits { call: self.memory, total: self.total_memory }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { memory: MEMORY, timeout: None, total_memory: total_memory() }
    }
}

/// Returns [`TOTAL_MEMORY`], or half of the memory of this machine or of its control group if that
/// is less, but at least the most that one call may have.
#[must_use]
pub fn total_memory() -> u64 {
    static LESSER: OnceLock<u64> = OnceLock::new();
    *LESSER.get_or_init(|| {
        usable_memory().map_or(TOTAL_MEMORY, |bytes| (bytes / 2).clamp(MAX_MEMORY, TOTAL_MEMORY))
    })
}
