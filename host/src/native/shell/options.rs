//! How the tool `shell` runs commands: what a program that embeds the host chooses.

use crate::sandbox::limits;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

/// What holds a command back from the rest of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Confinement {
    /// The kernel: Landlock, from Linux 6.2 on, and a filter of system calls. Where the kernel has not both, no command is run.
    Landlock,
    /// Nothing: the operator set `shell.unconfined = true`.
    Unconfined,
}

/// Whether a confined command may use the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Network {
    /// It opens no socket of any family.
    Closed,
    /// It opens sockets for IPv4, IPv6 and netlink, and of no other family.
    Open,
}

/// What all processes of one command may take together. Only a [`ShellHelper`] counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellLimits {
    /// Processes that there are at once.
    pub processes: u64,
    /// Resident memory, in bytes: what is neither shared with other processes nor in a file.
    pub memory: u64,
}

impl ShellLimits {
    /// A parallel build on a large machine has some hundred processes; a loop that forks has this many within a second.
    pub const PROCESSES: u64 = 1024;
    /// The least number of processes that can be asked for: a pipeline of a few programs.
    pub const MIN_PROCESSES: u64 = 8;
    /// The most processes that can be asked for: the kernel itself has no more by default.
    pub const MAX_PROCESSES: u64 = 32_768;
    /// The least memory that can be asked for: a shell with a few small programs.
    pub const MIN_MEMORY: u64 = 16 << 20;

    /// Half of the memory of this machine: beyond it, other programs would be swapped out, or killed.
    #[must_use]
    pub fn default_memory() -> u64 {
        limits::physical_memory().map_or(limits::TOTAL_MEMORY, |bytes| (bytes / 2).max(Self::MIN_MEMORY))
    }
}

impl Default for ShellLimits {
    fn default() -> Self {
        Self { processes: Self::PROCESSES, memory: Self::default_memory() }
    }
}

/// A program that holds the processes of one command, and ends with the last of them.
///
/// It is the parent of all that a command starts and leaves behind, counts it, and kills it when the call ends or the host is gone. A library cannot be that
/// parent itself: it would be one for all processes of the program that embeds it. Used on Linux only.
#[derive(Debug, Clone)]
pub struct ShellHelper {
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<OsString>,
}

impl ShellHelper {
    /// The hidden verb by which the program `palisade` holds a command.
    pub const VERB: &'static str = "shell-helper";

    /// A program `palisade`, by its absolute path, of this very version.
    #[must_use]
    pub fn palisade(program: impl Into<PathBuf>) -> Self {
        Self::program(program, [Self::VERB])
    }

    /// Any program that calls [`hold_command`](super::hold_command) when it is started with these arguments. Its path must be absolute.
    #[must_use]
    pub fn program<A: Into<OsString>>(program: impl Into<PathBuf>, arguments: impl IntoIterator<Item = A>) -> Self {
        Self { program: program.into(), arguments: arguments.into_iter().map(Into::into).collect() }
    }
}

/// How commands are run. The default: confined by the kernel, without the network, and without a helper.
///
/// Without a helper, what the call kills at its end is the command's process group. A process that has left the group lives on, one that the host left when it
/// was killed does as well, and [`ShellLimits`] do not hold.
#[derive(Debug, Clone)]
pub struct ShellOptions {
    pub(super) confinement: Confinement,
    pub(super) network: Network,
    pub(super) limits: ShellLimits,
    pub(super) helper: Option<Arc<ShellHelper>>,
}

impl ShellOptions {
    /// Commands that are held back like this.
    #[must_use]
    pub fn new(confinement: Confinement) -> Self {
        Self { confinement, network: Network::Closed, limits: ShellLimits::default(), helper: None }
    }

    /// Whether confined commands may use the network.
    #[must_use]
    pub fn network(mut self, network: Network) -> Self {
        self.network = network;
        self
    }

    /// What all processes of one command may take together.
    #[must_use]
    pub fn limits(mut self, limits: ShellLimits) -> Self {
        self.limits = limits;
        self
    }

    /// The program that holds the processes of each command.
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
