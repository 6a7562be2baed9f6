//! What the kernel lets a command do: the rules, put on the thread that starts it.

#[cfg(target_os = "linux")]
mod rules;

use crate::tool::{Advice, ErrorKind, PermissionReason};
use crate::workspace::Workspace;
use serde_json::{Map, Value, json};
use std::path::Path;

/// The oldest version of Landlock that is enough: before it a command could empty any file of the user, inside or outside.
const OLDEST: u32 = 3;
/// The first version that knows of TCP.
const TCP: u32 = 4;

/// The kernel that is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kernel {
    /// The one that runs.
    Running,
    /// One without Landlock, for a test.
    #[cfg(test)]
    Without,
}

/// How a command is confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Confined {
    /// The version of Landlock in force, or none.
    abi: Option<u32>,
}

impl Confined {
    /// Not at all.
    pub(super) const UNCONFINED: Self = Self { abi: None };

    /// The version of Landlock in force, if any.
    pub(super) fn abi(self) -> Option<u32> {
        self.abi
    }

    /// What the result says of it.
    pub(super) fn facts(self) -> Map<String, Value> {
        let tcp_denied = self.abi.is_some_and(|abi| abi >= TCP);
        let facts = [
            ("confined_by", json!(if self.abi.is_some() { "landlock" } else { "nothing" })),
            ("landlock_abi", json!(self.abi)),
            ("network", json!(if tcp_denied { "tcp connect and bind denied" } else { "open" })),
        ];
        facts.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }
}

/// Confines the calling thread, and with it all that it starts, for good.
///
/// # Errors
///
/// `permission_denied` where the kernel cannot; it names the setting that would do without.
pub(super) fn this_thread(workspace: &Workspace, home: &Path, kernel: Kernel) -> Result<Confined, ErrorKind> {
    match kernel {
        Kernel::Running => judge(in_force(workspace, home)?),
        #[cfg(test)]
        Kernel::Without => judge(0),
    }
}

#[cfg(target_os = "linux")]
fn in_force(workspace: &Workspace, home: &Path) -> Result<u32, ErrorKind> {
    rules::restrict(workspace, home)
        .map_err(|error| ErrorKind::internal(format!("a command cannot be confined: {error}")))
}

#[cfg(not(target_os = "linux"))]
fn in_force(_: &Workspace, _: &Path) -> Result<u32, ErrorKind> {
    Ok(0)
}

/// Whether a version of Landlock is enough; 0 stands for none.
fn judge(abi: u32) -> Result<Confined, ErrorKind> {
    let lacks = match abi {
        0 => "this system has no Landlock, or it is switched off".to_owned(),
        1..OLDEST => {
            format!("the Landlock of this kernel (version {abi}) cannot keep a command from emptying files elsewhere")
        }
        _ => return Ok(Confined { abi: Some(abi) }),
    };
    let message = format!(
        "`shell` is not run: {lacks}, and nothing else would hold a command in the workspace; use another tool"
    );
    let text = "use Linux 6.2 or later with Landlock, or, to run commands with all of your rights, set `shell.unconfined = true`";
    Err(ErrorKind::denied_with(PermissionReason::Policy, message, Advice::setting(text, "shell.unconfined")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
    use super::*;

    #[test]
    fn a_kernel_that_cannot_confine_is_told_from_one_that_can() {
        for abi in [0, 1, 2] {
            let refused = judge(abi).unwrap_err();
            assert!(matches!(refused, ErrorKind::PermissionDenied { .. }), "{abi}");
            let advice = refused.advice("shell").unwrap().told(&crate::tool::Places::default());
            assert!(advice.ends_with("set `shell.unconfined = true` in your own palisade.toml"), "{advice}");
            assert!(!refused.to_string().contains("unconfined"), "a model reads nothing of it: {refused}");
        }
        for abi in [3, 7, 99] {
            assert_eq!(judge(abi).unwrap(), Confined { abi: Some(abi) });
        }
    }

    #[test]
    fn the_facts_claim_no_more_than_the_kernel_does() {
        let facts = |abi| Value::from(Confined { abi }.facts());
        assert_eq!(facts(None), json!({"confined_by": "nothing", "landlock_abi": null, "network": "open"}));
        assert_eq!(facts(Some(3)), json!({"confined_by": "landlock", "landlock_abi": 3, "network": "open"}));
        assert_eq!(
            facts(Some(4)),
            json!({"confined_by": "landlock", "landlock_abi": 4, "network": "tcp connect and bind denied"})
        );
    }
}
