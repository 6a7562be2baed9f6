//! Confines the thread that starts a command with Landlock and seccomp.

#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")
))]
mod calls;
#[cfg(target_os = "linux")]
mod rules;

use super::Network;
use super::unfit::Unfit;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::os::fd::BorrowedFd;
use std::path::Path;

/// The oldest sufficient Landlock version: before version 3 (truncation) a command could truncate
/// any file of the user.
const OLDEST: u32 = 3;

/// The kernel that provides the confinement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kernel {
    /// The running kernel.
    Running,
    /// A kernel without Landlock, for a test.
    #[cfg(test)]
    Without,
}

/// The confinement of a command.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds<'a> {
    /// The workspace, which the command may change.
    pub(super) workspace: BorrowedFd<'a>,
    /// The private home directory, which the command may change.
    pub(super) home: &'a Path,
    pub(super) network: Network,
    /// The threads of a process that the command must not signal. The calling thread is added in
    /// any case.
    pub(super) spared: &'a [i32],
}

/// The confinement in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Confined {
    /// The Landlock version in force, if any.
    abi: Option<u32>,
    network: Network,
}

impl Confined {
    /// No confinement.
    pub(super) const UNCONFINED: Self = Self { abi: None, network: Network::Open };

    /// Returns the Landlock version in force, if any.
    pub(super) fn abi(self) -> Option<u32> {
        self.abi
    }

    /// Returns the confinement as metadata for the result.
    pub(super) fn facts(self) -> Map<String, Value> {
        let network = match self.network {
            Network::Closed => "denied",
            Network::Open => "open",
        };
        let facts = [
            ("confined_by", json!(if self.abi.is_some() { "landlock" } else { "nothing" })),
            ("landlock_abi", json!(self.abi)),
            ("network", json!(network)),
        ];
        facts.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }
}

/// Confines the calling thread and everything that it starts, permanently.
///
/// # Errors
///
/// [`Unfit`] if the kernel does not support it.
pub(super) fn this_thread(bounds: Bounds<'_>, kernel: Kernel) -> Result<Confined, Unfit> {
    // The command shares the Landlock domain of this thread and runs before this thread has ended.
    // A signal to one thread ends the whole process. The thread ID is read first, because `/proc`
    // is closed below.
    let spared: Vec<i32> = bounds.spared.iter().copied().chain(own_thread()).collect();
    let abi = match kernel {
        Kernel::Running => landlock(bounds)?,
        #[cfg(test)]
        Kernel::Without => 0,
    };
    judge(abi)?;
    filter(bounds.network, &spared)?;
    Ok(Confined { abi: Some(abi), network: bounds.network })
}

/// Restricts the signals of the calling thread and of everything that it starts to its own Landlock
/// domain, if the kernel supports that.
///
/// # Errors
///
/// [`Unfit`] if the kernel refuses a restriction that it supports.
#[cfg(target_os = "linux")]
pub(super) fn enclose() -> Result<(), Unfit> {
    rules::enclose().map_err(|error| {
        Unfit::Failed(format!("the signals of a command cannot be kept in: {error}"))
    })
}

/// Returns the ID of the calling thread, if `/proc` provides it.
fn own_thread() -> Option<i32> {
    std::fs::read_link("/proc/thread-self").ok()?.file_name()?.to_str()?.parse().ok()
}

#[cfg(target_os = "linux")]
fn landlock(bounds: Bounds<'_>) -> Result<u32, Unfit> {
    rules::restrict(bounds)
        .map_err(|error| Unfit::Failed(format!("a command cannot be confined: {error}")))
}

#[cfg(not(target_os = "linux"))]
fn landlock(_: Bounds<'_>) -> Result<u32, Unfit> {
    Ok(0)
}

#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")
))]
fn filter(network: Network, spared: &[i32]) -> Result<(), Unfit> {
    calls::filter(network, spared).map_err(|error| Unfit::NoFilter(error.to_string()))
}

#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")
)))]
fn filter(_: Network, _: &[i32]) -> Result<(), Unfit> {
    Err(Unfit::NoFilter("none is made for this architecture".to_owned()))
}

/// Checks that a Landlock version is sufficient; 0 means no Landlock.
fn judge(abi: u32) -> Result<(), Unfit> {
    match abi {
        0 => Err(Unfit::NoLandlock),
        1..OLDEST => Err(Unfit::OldLandlock(abi)),
        _ => Ok(()),
    }
}

/// Applies the system call filter alone, for a test.
#[cfg(test)]
pub(super) fn filtered(network: Network, spared: &[i32]) -> Result<(), Unfit> {
    filter(network, spared)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
    use super::*;

    #[test]
    fn kernel_support_is_detected() {
        assert_eq!(judge(0), Err(Unfit::NoLandlock));
        for abi in [1, 2] {
            assert_eq!(judge(abi), Err(Unfit::OldLandlock(abi)));
        }
        for abi in [3, 7, 99] {
            assert_eq!(judge(abi), Ok(()));
        }
    }

    #[test]
    fn result_facts_match_the_confinement() {
        let facts = |confined: Confined| Value::from(confined.facts());
        assert_eq!(
            facts(Confined::UNCONFINED),
            json!({"confined_by": "nothing", "landlock_abi": null, "network": "open"})
        );
        for (network, told) in [(Network::Closed, "denied"), (Network::Open, "open")] {
            let confined = Confined { abi: Some(4), network };
            assert_eq!(
                facts(confined),
                json!({"confined_by": "landlock", "landlock_abi": 4, "network": told})
            );
        }
    }
}
