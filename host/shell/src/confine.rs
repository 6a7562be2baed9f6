//! Confines the thread that starts a command with Landlock and seccomp.

#[cfg(target_os = "linux")]
mod landlock_rules;
mod probe;
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")
))]
mod seccomp_filter;

pub use probe::landlock_abi;

use crate::Network;
use crate::start_error::StartError;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

/// The oldest sufficient Landlock version: before version 3 (truncation) a command could truncate
/// any file of the user.
const MIN_ABI: u32 = 3;

/// The kernel that provides the confinement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kernel {
    /// The running kernel.
    Running,
    /// A kernel without Landlock, for a test.
    #[cfg(test)]
    WithoutLandlock,
}

/// The confinement of a command.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds<'a> {
    /// The workspace, which the command may change.
    pub(crate) workspace: BorrowedFd<'a>,
    /// The private home directory, which the command may change.
    pub(crate) home: &'a Path,
    /// Further files and directories that the command may read and execute.
    pub(crate) readable: &'a [PathBuf],
    pub(crate) network: Network,
    /// The threads of a process that the command must not signal. The calling thread is added in
    /// any case.
    pub(crate) protected_threads: &'a [i32],
}

/// The confinement in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Confined {
    /// The Landlock version in force, if any.
    abi: Option<u32>,
    network: Network,
}

impl Confined {
    /// No confinement.
    pub(crate) const UNCONFINED: Self = Self { abi: None, network: Network::Open };

    /// Returns the Landlock version in force, if any.
    pub(crate) fn abi(self) -> Option<u32> {
        self.abi
    }

    /// Returns the confinement as metadata for the result.
    pub(crate) fn to_metadata(self) -> Map<String, Value> {
        let network = match self.network {
            Network::Closed => "denied",
            Network::Open => "open",
        };
        let entries = [
            ("confined_by", json!(if self.abi.is_some() { "landlock" } else { "nothing" })),
            ("landlock_abi", json!(self.abi)),
            ("network", json!(network)),
        ];
        entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }
}

/// Confines the calling thread and everything that it starts, permanently.
///
/// # Errors
///
/// [`StartError`] if the kernel does not support it.
pub(crate) fn confine_this_thread(
    bounds: Bounds<'_>,
    kernel: Kernel,
) -> Result<Confined, StartError> {
    // The command shares the Landlock domain of this thread and runs before this thread has ended.
    // A signal to one thread ends the whole process. The thread ID is read first, because `/proc`
    // is closed below.
    let protected_threads: Vec<i32> =
        bounds.protected_threads.iter().copied().chain(own_thread()).collect();
    let abi = match kernel {
        Kernel::Running => apply_landlock(bounds)?,
        #[cfg(test)]
        Kernel::WithoutLandlock => 0,
    };
    check_abi(abi)?;
    filter_calls(bounds.network, &protected_threads)?;
    Ok(Confined { abi: Some(abi), network: bounds.network })
}

/// Restricts the signals of the calling thread and of everything that it starts to its own Landlock
/// domain, if the kernel supports that.
///
/// # Errors
///
/// [`StartError`] if the kernel refuses a restriction that it supports.
#[cfg(target_os = "linux")]
pub(crate) fn scope_signals() -> Result<(), StartError> {
    landlock_rules::scope_signals().map_err(|error| {
        StartError::Internal(format!("the signals of a command cannot be kept in: {error}"))
    })
}

/// Returns the ID of the calling thread, if `/proc` provides it.
fn own_thread() -> Option<i32> {
    std::fs::read_link("/proc/thread-self").ok()?.file_name()?.to_str()?.parse().ok()
}

#[cfg(target_os = "linux")]
fn apply_landlock(bounds: Bounds<'_>) -> Result<u32, StartError> {
    landlock_rules::restrict(bounds)
        .map_err(|error| StartError::Internal(format!("a command cannot be confined: {error}")))
}

#[cfg(not(target_os = "linux"))]
fn apply_landlock(_: Bounds<'_>) -> Result<u32, StartError> {
    Ok(0)
}

#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")
))]
pub(crate) fn filter_calls(network: Network, protected_threads: &[i32]) -> Result<(), StartError> {
    seccomp_filter::filter(network, protected_threads)
        .map_err(|error| StartError::NoFilter(error.to_string()))
}

#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")
)))]
pub(crate) fn filter_calls(_: Network, _: &[i32]) -> Result<(), StartError> {
    Err(StartError::NoFilter("none is made for this architecture".to_owned()))
}

/// Checks that a Landlock version is sufficient; 0 means no Landlock.
fn check_abi(abi: u32) -> Result<(), StartError> {
    match abi {
        0 => Err(StartError::NoLandlock),
        1..MIN_ABI => Err(StartError::OldLandlock(abi)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
    use super::*;

    #[test]
    fn kernels_without_sufficient_landlock_are_refused() {
        assert_eq!(check_abi(0), Err(StartError::NoLandlock));
        for abi in [1, 2] {
            assert_eq!(check_abi(abi), Err(StartError::OldLandlock(abi)));
        }
        for abi in [3, 7, 99] {
            assert_eq!(check_abi(abi), Ok(()));
        }
    }

    #[test]
    fn metadata_claims_only_enforced_confinement() {
        let metadata = |confined: Confined| Value::from(confined.to_metadata());
        assert_eq!(
            metadata(Confined::UNCONFINED),
            json!({"confined_by": "nothing", "landlock_abi": null, "network": "open"})
        );
        for (network, told) in [(Network::Closed, "denied"), (Network::Open, "open")] {
            let confined = Confined { abi: Some(4), network };
            assert_eq!(
                metadata(confined),
                json!({"confined_by": "landlock", "landlock_abi": 4, "network": told})
            );
        }
    }
}
