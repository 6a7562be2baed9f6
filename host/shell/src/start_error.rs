//! The reasons for which a command is not started, serializable for the helper protocol.

use palisade::internal::is_thread_limit;
use palisade::{Advice, ErrorKind, ExecutionKind, PermissionReason};
use serde::{Deserialize, Serialize};
use std::io;

/// The reason why a command is not started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum StartError {
    /// The kernel has no Landlock.
    NoLandlock,
    /// This version of Landlock is too old.
    OldLandlock(u32),
    /// The kernel supports no seccomp filter, for this reason.
    NoFilter(String),
    /// `/proc` hides processes, so that the limits of a command cannot be enforced.
    HiddenProcesses,
    /// The program was started with this descriptor open, and no available shell can close it.
    InheritedDescriptor(u32),
    /// The shell cannot be started.
    Spawn(String),
    /// The system starts no thread or process, with this number of the error.
    NoThread(i32),
    /// An internal failure, whose message may name paths of the host and is not shown to the model.
    Internal(String),
}

impl From<StartError> for ErrorKind {
    fn from(error: StartError) -> Self {
        let missing = match error {
            StartError::NoLandlock => {
                "this system has no Landlock, or it is switched off".to_owned()
            }
            StartError::OldLandlock(abi) => {
                format!(
                    "the Landlock of this kernel (version {abi}) cannot keep a command from \
                     emptying files elsewhere"
                )
            }
            StartError::NoFilter(reason) => {
                format!("this kernel does not filter system calls ({reason})")
            }
            StartError::HiddenProcesses => return hidden_processes(),
            StartError::InheritedDescriptor(number) => return inherited_descriptor(number),
            StartError::Spawn(error) => {
                return Self::execution(
                    ExecutionKind::Failed,
                    format!("cannot start /bin/sh: {error}"),
                );
            }
            StartError::NoThread(number) => {
                return Self::no_thread(io::Error::from_raw_os_error(number));
            }
            StartError::Internal(error) => return Self::internal(error),
        };
        let message = format!(
            "`shell` is not run: {missing}, and nothing else would hold a command in the \
             workspace; use another tool"
        );
        let text = "use Linux 6.2 or later with Landlock and seccomp, or, to run commands with \
                    all of your rights, set `shell.unconfined = true`";
        Self::denied_with(
            PermissionReason::Policy,
            message,
            Advice::setting(text, "shell.unconfined").in_code(
                "use Linux 6.2 or later with Landlock and seccomp, or, to run commands with all of \
                 your rights, give `shell` the options of `Confinement::Unconfined`",
            ),
        )
    }
}

impl StartError {
    /// Returns the reason if the system starts no thread or process because of a limit.
    pub(crate) fn no_thread(error: &io::Error) -> Option<Self> {
        error.raw_os_error().filter(|_| is_thread_limit(error)).map(Self::NoThread)
    }
}

impl From<io::Error> for StartError {
    fn from(error: io::Error) -> Self {
        Self::no_thread(&error).unwrap_or_else(|| Self::Internal(error.to_string()))
    }
}

fn hidden_processes() -> ErrorKind {
    let message = "`shell` is not run: `/proc` is mounted with `hidepid`, so that a command could \
                   hide processes from its limits (`shell.processes`, `shell.memory`), and no \
                   control group enforces them; use another tool";
    let advice = Advice::new(
        "start the program in a control group that you may divide \
         (`systemd-run --user --scope -p Delegate=yes`), or mount `/proc` without `hidepid`",
    );
    ErrorKind::denied_with(PermissionReason::Sandbox, message, advice)
}

fn inherited_descriptor(number: u32) -> ErrorKind {
    let message = format!(
        "`shell` is not run: the parent process left descriptor {number} open, a command would \
         inherit it, and only bash could close it, which this system does not have"
    );
    let advice = Advice::new(format!("start the program without it (`{number}>&-`)"));
    ErrorKind::denied_with(PermissionReason::Sandbox, message, advice)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
    use super::*;

    #[test]
    fn only_the_operator_reads_about_the_setting() {
        for error in [
            StartError::NoLandlock,
            StartError::OldLandlock(2),
            StartError::NoFilter("no".to_owned()),
        ] {
            let refused = ErrorKind::from(error.clone());
            assert!(matches!(refused, ErrorKind::PermissionDenied { .. }), "{error:?}");
            let advice = refused.advice("shell").unwrap();
            let told = advice.told(&palisade::Places::new("in mine"));
            assert!(told.ends_with("set `shell.unconfined = true` in mine"), "{told}");
            let told = advice.told(&palisade::Places::default());
            assert!(told.ends_with("the options of `Confinement::Unconfined`"), "{told}");
            assert!(
                !refused.to_string().contains("unconfined"),
                "a model reads nothing of it: {refused}"
            );
        }
    }
}
