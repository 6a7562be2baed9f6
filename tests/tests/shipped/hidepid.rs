//! `shell` where `/proc` hides processes from the helper that counts them.

use palisade_tests::{Program, World, skip};
use serde_json::Value;

/// Calls `shell` where `/proc` has this option, without a control group and without the right to
/// see the hidden processes.
fn under_proc(option: &str) -> Option<Value> {
    let world = World::new();
    let setup = format!(
        "mount -t tmpfs none /sys/fs/cgroup && mount -t proc -o {option} proc /proc || exit 99; \
         exec setpriv --bounding-set=-sys_ptrace \"$@\""
    );
    let words = ["call", "shell", r#"{"command": "echo done"}"#, "--allow", "execute", "--json"];
    let program = Program::new(&world).args(words);
    let ran = program.through("unshare", ["--mount", "sh", "-c", &setup, "sh"]).run();
    if matches!(ran.code, 1 | 99) && ran.stdout.is_empty() {
        skip("only root mounts");
        return None;
    }
    Some(ran.json())
}

#[test]
fn command_with_countable_processes_is_run() {
    let Some(result) = under_proc("hidepid=0") else { return };
    assert_eq!(result["success"], true, "{result}");
}

#[test]
fn command_with_uncountable_processes_is_refused() {
    for option in ["hidepid=1", "hidepid=2", "hidepid=4"] {
        let Some(result) = under_proc(option) else { return };
        let error = &result["error"];
        assert_eq!(error["class"], "permission_denied", "{option} {result}");
        assert!(error["message"].as_str().is_some_and(|it| it.contains("hidepid")), "{result}");
    }
}
