//! The options of the `shell` tool, for programs that embed the host.

use palisade::internal::usable_memory;
use palisade::sandbox::limits;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

/// The confinement of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Confinement {
    /// Landlock, from Linux 6.2 on, and a seccomp filter. If the kernel lacks either, no command
    /// runs.
    Landlock,
    /// None: the operator set `shell.unconfined = true`.
    Unconfined,
}

/// The network access of a confined command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Network {
    /// The command can open no socket of any family.
    Closed,
    /// The command can open sockets for IPv4, IPv6 and netlink, and of no other family.
    Open,
}

/// Limits for all processes of one command together. Only a [`ShellHelper`] enforces them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellLimits {
    /// Maximum number of concurrent processes.
    pub processes: u64,
    /// Resident memory, in bytes: memory that is neither shared with other processes nor
    /// file-backed.
    pub memory: u64,
}

impl ShellLimits {
    /// The default number of processes: a parallel build on a large machine has some hundred, and a
    /// fork bomb reaches the limit within a second.
    pub const PROCESSES: u64 = 1024;
    /// The smallest accepted number of processes: a pipeline of a few programs.
    pub const MIN_PROCESSES: u64 = 8;
    /// The largest accepted number of processes: the kernel's own default limit.
    pub const MAX_PROCESSES: u64 = 32_768;
    /// The smallest accepted memory limit, in bytes: a shell with a few small programs.
    pub const MIN_MEMORY: u64 = 16 << 20;
    /// The largest accepted memory limit, in bytes.
    pub const MAX_MEMORY: u64 = limits::MAX_TOTAL_MEMORY;

    /// Returns the default memory limit in bytes, half of the memory of the machine or of its
    /// control group: beyond it, other programs could be swapped out or killed.
    #[must_use]
    pub fn default_memory() -> u64 {
        usable_memory().map_or(limits::TOTAL_MEMORY, |bytes| {
            (bytes / 2).clamp(Self::MIN_MEMORY, Self::MAX_MEMORY)
        })
    }
}

impl Default for ShellLimits {
    fn default() -> Self {
        Self { processes: Self::PROCESSES, memory: Self::default_memory() }
    }
}

/// A program that supervises the processes of one command and exits after the last of them.
///
/// The helper is the parent of all processes that a command starts and leaves behind. It counts
/// them, and kills them when the call ends or the host exits. A library cannot be that parent
/// itself: it would adopt the orphans of the whole embedding program. Used on Linux only.
#[derive(Debug, Clone)]
pub struct ShellHelper {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<OsString>,
}

impl ShellHelper {
    /// The hidden subcommand by which the `palisade` program supervises a command.
    pub const VERB: &'static str = "shell-helper";

    /// Returns the helper of a `palisade` program, given by absolute path, of this exact version.
    #[must_use]
    pub fn palisade(program: impl Into<PathBuf>) -> Self {
        Self::program(program, [Self::VERB])
    }

    /// Returns a helper from any program that calls [`hold_command`](super::hold_command) when
    /// started with these arguments. Its path must be absolute.
    #[must_use]
    pub fn program<A: Into<OsString>>(
        program: impl Into<PathBuf>,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        Self { program: program.into(), arguments: arguments.into_iter().map(Into::into).collect() }
    }
}

/// The options of commands. By default, commands are confined, without network and without a
/// helper.
///
/// Without a helper, the end of a call kills the command's process group. A process that has left
/// the group survives, as does a command whose host was killed, and [`ShellLimits`] are not
/// enforced.
#[derive(Debug, Clone)]
pub struct ShellOptions {
    pub(crate) confinement: Confinement,
    pub(crate) network: Network,
    pub(crate) limits: ShellLimits,
    pub(crate) helper: Option<Arc<ShellHelper>>,
}

impl ShellOptions {
    /// Returns options with this confinement.
    #[must_use]
    pub fn new(confinement: Confinement) -> Self {
        Self { confinement, network: Network::Closed, limits: ShellLimits::default(), helper: None }
    }

    /// Sets the network access of confined commands.
    #[must_use]
    pub fn network(mut self, network: Network) -> Self {
        self.network = network;
        self
    }

    /// Sets the limits for all processes of one command together.
    #[must_use]
    pub fn limits(mut self, limits: ShellLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Returns the confinement, and the network access of confined commands.
    #[must_use]
    pub fn rights(&self) -> (Confinement, Network) {
        (self.confinement, self.network)
    }

    /// Sets the program that supervises the processes of each command.
    #[must_use]
    pub fn helper(mut self, helper: ShellHelper) -> Self {
        self.helper = Some(Arc::new(helper));
        self
    }
}

impl Default for ShellOptions {
    fn default() -> Self {
        Self::new(Confinement::Landlock)
    }
}

impl From<Confinement> for ShellOptions {
    fn from(confinement: Confinement) -> Self {
        Self::new(confinement)
    }
}
