//! The closed sets that an error is made of: classes, limits, and the kinds below them.

use super::advice::Advice;
use std::fmt;

/// The closed set of error classes, as they stand in results and events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorClass {
    /// No tool of this name.
    NotFound,
    /// The input breaks the tool's schema.
    ValidationError,
    /// The policy, the sandbox or the workspace's border said no.
    PermissionDenied,
    /// A person said no.
    UserDenied,
    /// The time was up.
    Timeout,
    /// The tool itself failed.
    ExecutionError,
    /// The caller stopped the call.
    Cancelled,
    /// Nobody answered whether the call may run.
    ConfirmationTimeout,
    /// A limit was reached; the detail names it.
    ResourceExhausted,
}

impl ErrorClass {
    /// The name used in results and events.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotFound => "not_found",
            Self::ValidationError => "validation_error",
            Self::PermissionDenied => "permission_denied",
            Self::UserDenied => "user_denied",
            Self::Timeout => "timeout",
            Self::ExecutionError => "execution_error",
            Self::Cancelled => "cancelled",
            Self::ConfirmationTimeout => "confirmation_timeout",
            Self::ResourceExhausted => "resource_exhausted",
        }
    }
}

impl fmt::Display for ErrorClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A limit of the sandbox or the host, as `resource_exhausted` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Limit {
    /// The sum of all linear memories of a call, in bytes.
    Memory,
    /// The sum of the linear memories of all calls of the process, in bytes.
    TotalMemory,
    /// The address space of the process, in bytes, where the system limits it.
    AddressSpace,
    /// The sum of all table elements of a call.
    Tables,
    /// Core instances of a call.
    Instances,
    /// Handles that the host holds for a guest.
    Handles,
    /// What one host call may copy out of a guest, in bytes.
    HostcallData,
    /// The output that a call returns, in bytes.
    Result,
    /// Bytes read from the workspace.
    BytesRead,
    /// Bytes written to the workspace.
    BytesWritten,
    /// New directory entries.
    NewEntries,
    /// Directory entries listed.
    ListedEntries,
    /// Directories inside each other.
    Depth,
    /// Files and directories that all calls of the process hold open together, or all calls of one plugin.
    OpenFiles,
    /// Time in the queue, in milliseconds.
    Queue,
    /// Calls that wait in the queue, in all or of one plugin.
    Waiting,
    /// Threads of the host that hang in the kernel.
    LostThreads,
    /// Processes of a command of `shell` at once.
    Processes,
    /// Resident memory of all processes of a command of `shell`, in bytes.
    ResidentMemory,
    /// Sandboxes that live at once in the process: as many as there are places, or as the system has room for.
    Sandboxes,
}

impl Limit {
    /// The name used in `detail.limit`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::TotalMemory => "total_memory",
            Self::AddressSpace => "address_space",
            Self::Tables => "tables",
            Self::Instances => "instances",
            Self::Handles => "handles",
            Self::HostcallData => "hostcall_data",
            Self::Result => "result",
            Self::BytesRead => "bytes_read",
            Self::BytesWritten => "bytes_written",
            Self::NewEntries => "new_entries",
            Self::ListedEntries => "listed_entries",
            Self::Queue | Self::Waiting => "queue",
            Self::LostThreads => "lost_threads",
            Self::Depth => "depth",
            Self::OpenFiles => "open_files",
            Self::Processes => "processes",
            Self::ResidentMemory => "resident_memory",
            Self::Sandboxes => "sandboxes",
        }
    }

    /// What whoever makes the call can do who needs more.
    #[must_use]
    pub fn advice(self) -> &'static str {
        match self {
            Self::Memory | Self::AddressSpace => "ask the tool for less at once",
            Self::Processes => "run fewer programs at once",
            Self::ResidentMemory => "run programs that take less memory, or fewer of them at once",
            Self::Result | Self::HostcallData => "ask the tool for a smaller part at once",
            Self::LostThreads => {
                "the file system of the workspace does not answer; when it does, the threads come back"
            }
            Self::TotalMemory | Self::OpenFiles | Self::Queue | Self::Waiting | Self::Sandboxes => {
                "try again when other calls have ended"
            }
            Self::Tables | Self::Instances | Self::Handles => "this bound is fixed; the plugin has to use less",
            Self::Depth => "this bound is fixed; keep files in fewer directories inside each other",
            Self::BytesRead | Self::BytesWritten | Self::NewEntries | Self::ListedEntries => {
                "this bound is fixed for one call; split the work over several"
            }
        }
    }
}

impl Limit {
    /// What an operator can do besides, where there is something.
    #[must_use]
    pub fn operators_advice(self) -> Option<Advice> {
        match self {
            Self::Memory => Some(Advice::setting("or raise `limits.memory` (at most 512MiB)", "limits.memory")),
            Self::TotalMemory => {
                let text = "or, if the machine has more, raise `limits.total_memory`";
                Some(Advice::setting(text, "limits.total_memory"))
            }
            Self::AddressSpace => {
                let text = "or let the process use more address space (`ulimit -v`, best `unlimited`)";
                Some(Advice::new(text))
            }
            Self::Processes => Some(Advice::setting("or raise `shell.processes`", "shell.processes")),
            Self::ResidentMemory => Some(Advice::setting("or raise `shell.memory`", "shell.memory")),
            Self::LostThreads => Some(Advice::new("see why it does not")),
            Self::OpenFiles => Some(Advice::new("or let the process open more files (`ulimit -n`)")),
            _ => None,
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Which of a plugin's own errors an `execution_error` stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ExecutionKind {
    /// The tool refused the input although the schema allows it.
    InvalidInput,
    /// Something that the input names does not exist.
    NotFound,
    /// The tool says that something was not permitted; the host knows nothing of it.
    PermissionDenied,
    /// The tool failed in its own words.
    Failed,
    /// The tool says that it was cancelled; the host knows nothing of it.
    Cancelled,
    /// The tool ran to its end and reports a failure.
    Unsuccessful,
    /// The guest panicked, trapped, or exited in place of returning; the log says how.
    Trap,
    /// The tool broke the contract: bad JSON, an output that breaks its schema, and the like.
    Contract,
    /// A native tool panicked, or the host met an internal error.
    Internal,
}

impl ExecutionKind {
    /// The name used in `detail.kind`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidInput => "invalid-input",
            Self::NotFound => "not-found",
            Self::PermissionDenied => "permission-denied",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Unsuccessful => "unsuccessful",
            Self::Trap => "trap",
            Self::Contract => "contract",
            Self::Internal => "internal",
        }
    }
}

/// Who or what denied a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PermissionReason {
    /// A path leads out of the workspace.
    Workspace,
    /// The sandbox refused the guest something, and the guest gave up on it.
    Sandbox,
    /// Something lies in a tree where nothing is changed, or that is the host's own.
    Protected,
    /// The policy says deny.
    Policy,
    /// A person would have to be asked, and nobody can be.
    NoConfirmer,
}

impl PermissionReason {
    /// The name used in `detail.reason`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Workspace => "workspace",
            Self::Sandbox => "sandbox",
            Self::Protected => "protected",
            Self::Policy => "policy",
            Self::NoConfirmer => "no_confirmer",
        }
    }
}
