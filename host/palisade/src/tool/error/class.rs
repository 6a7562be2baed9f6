//! The closed sets that errors are made of: classes, limits and kinds.

use super::advice::Advice;
use std::fmt;

/// The closed set of error classes, as written in results and events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorClass {
    /// There is no tool of this name.
    NotFound,
    /// The input does not match the tool's schema.
    ValidationError,
    /// The policy, the sandbox or the workspace refused the call.
    PermissionDenied,
    /// The user denied the call.
    UserDenied,
    /// The deadline passed.
    Timeout,
    /// The tool itself failed.
    ExecutionError,
    /// The caller cancelled the call.
    Cancelled,
    /// The confirmation request was not answered in time.
    ConfirmationTimeout,
    /// A limit was reached; the detail names it.
    ResourceExhausted,
}

impl ErrorClass {
    /// All classes.
    pub const ALL: [Self; 9] = [
        Self::NotFound,
        Self::ValidationError,
        Self::PermissionDenied,
        Self::UserDenied,
        Self::Timeout,
        Self::ExecutionError,
        Self::Cancelled,
        Self::ConfirmationTimeout,
        Self::ResourceExhausted,
    ];

    /// Returns the name used in results and events.
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

/// A limit of the sandbox or the host, as named by `resource_exhausted`.
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
    /// Data that one host call copies out of a guest, in bytes.
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
    /// Nesting of directories.
    Depth,
    /// Open files and directories of all calls of the process, or of all calls of one plugin.
    OpenFiles,
    /// Time in the queue, in milliseconds.
    Queue,
    /// Queued calls, in total or of one plugin.
    Waiting,
    /// Host threads that hang in a system call.
    LostThreads,
    /// Threads that the system lets the process start.
    Threads,
    /// Concurrent processes of a `shell` command.
    Processes,
    /// Resident memory of all processes of a `shell` command, in bytes.
    ResidentMemory,
    /// Concurrent sandboxes of the process, limited by a fixed count or by system resources.
    Sandboxes,
    /// Calls of other tools that a call makes.
    NestedCalls,
}

impl Limit {
    /// Returns the name used in `detail.limit`.
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
            Self::Threads => "threads",
            Self::Depth => "depth",
            Self::OpenFiles => "open_files",
            Self::Processes => "processes",
            Self::ResidentMemory => "resident_memory",
            Self::Sandboxes => "sandboxes",
            Self::NestedCalls => "nested_calls",
        }
    }

    /// Returns the caller's options if more is needed.
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
            Self::TotalMemory
            | Self::OpenFiles
            | Self::Queue
            | Self::Waiting
            | Self::Sandboxes
            | Self::Threads => "try again when other calls have ended",
            Self::Tables | Self::Instances | Self::Handles => {
                "this bound is fixed; the plugin has to use less"
            }
            Self::Depth => "this bound is fixed; keep files in fewer directories inside each other",
            Self::BytesRead
            | Self::BytesWritten
            | Self::NewEntries
            | Self::ListedEntries
            | Self::NestedCalls => "this bound is fixed for one call; split the work over several",
        }
    }
}

impl Limit {
    /// Returns the operator's additional options, if there are any.
    #[must_use]
    pub fn operators_advice(self) -> Option<Advice> {
        match self {
            Self::Memory => {
                let text = "or raise `limits.memory` (at most 512MiB)";
                let in_code = "or raise `Limits::memory` (at most 512 MiB)";
                Some(Advice::setting(text, "limits.memory").in_code(in_code))
            }
            Self::TotalMemory => {
                let text = "or, if the machine has more, raise `limits.total_memory`";
                let in_code = "or, if the machine has more, raise `Limits::total_memory`";
                Some(Advice::setting(text, "limits.total_memory").in_code(in_code))
            }
            Self::AddressSpace => {
                let text =
                    "or let the process use more memory (`ulimit -v` and `-d`, best `unlimited`)";
                Some(Advice::new(text))
            }
            Self::Processes => {
                let advice = Advice::setting("or raise `shell.processes`", "shell.processes");
                Some(advice.in_code("or raise `ShellLimits::processes`"))
            }
            Self::ResidentMemory => {
                let advice = Advice::setting("or raise `shell.memory`", "shell.memory");
                Some(advice.in_code("or raise `ShellLimits::memory`"))
            }
            Self::LostThreads => Some(Advice::new("see why it does not")),
            Self::OpenFiles => {
                Some(Advice::new("or let the process open more files (`ulimit -n`)"))
            }
            Self::Threads => Some(Advice::new("or let the user run more processes (`ulimit -u`)")),
            _ => None,
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The kind of failure behind an `execution_error`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ExecutionKind {
    /// The tool refused the input although it matches the schema.
    InvalidInput,
    /// Something that the input names does not exist.
    NotFound,
    /// The tool reports a missing permission; the host refused nothing.
    PermissionDenied,
    /// The tool reports a failure.
    Failed,
    /// The tool reports that it was cancelled; the host did not cancel it.
    Cancelled,
    /// The tool ran to completion and reports a failure.
    Unsuccessful,
    /// The guest panicked, trapped, or exited instead of returning; the log has the details.
    Trap,
    /// The tool broke the contract: bad JSON, or an output that does not match its schema.
    Contract,
    /// A native tool panicked, or the host had an internal error.
    Internal,
    /// The program polls its calls outside a tokio runtime, or in one without timers.
    NoRuntime,
}

impl ExecutionKind {
    /// Returns the name used in `detail.kind`.
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
            Self::NoRuntime => "no-runtime",
        }
    }
}

/// The source of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PermissionReason {
    /// A path leads out of the workspace.
    Workspace,
    /// The sandbox refused an operation and the guest failed because of it.
    Sandbox,
    /// The path is in a write-protected tree or belongs to the host.
    Protected,
    /// The operator's path rules leave the path out.
    PathRules,
    /// The policy denies the call.
    Policy,
    /// The tool is not among those that the session may call.
    NotAllowed,
    /// The tool is of a plugin that is not approved.
    NotApproved,
    /// The call needs confirmation and there is no confirmer.
    NoConfirmer,
    /// The call needs confirmation and the confirmer panicked.
    ConfirmerFailed,
    /// A file has changed since the question displayed what the call would do to it.
    FileChanged,
    /// The host records calls before they run, and could not record this one.
    NotRecorded,
}

impl PermissionReason {
    /// Returns the name used in `detail.reason`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Workspace => "workspace",
            Self::Sandbox => "sandbox",
            Self::Protected => "protected",
            Self::PathRules => "path_rules",
            Self::Policy => "policy",
            Self::NotAllowed => "not_allowed",
            Self::NotApproved => "not_approved",
            Self::NoConfirmer => "no_confirmer",
            Self::ConfirmerFailed => "confirmer_failed",
            Self::FileChanged => "file_changed",
            Self::NotRecorded => "not_recorded",
        }
    }
}
