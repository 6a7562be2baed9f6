//! The limits on the processes of a `shell` command, and on their memory together.

use crate::shell::{held, inside, run};
use palisade::{ToolResult, json};
use palisade_shell::{Confinement, ShellLimits};
use palisade_tests::stage::class;
use palisade_tests::{World, program, skip};

/// Returns limits that a test can reach without harm.
fn small() -> ShellLimits {
    ShellLimits { processes: 48, memory: 96 << 20 }
}

#[track_caller]
fn exhausted(result: &ToolResult, limit: &str, value: u64) {
    let told = result.to_json();
    assert_eq!(class(result), "resource_exhausted", "{told:#}");
    assert_eq!(
        (&told["error"]["detail"]["limit"], &told["error"]["detail"]["value"]),
        (&json!(limit), &json!(value))
    );
    assert_eq!(told["metadata"]["signal"], 9, "{told:#}");
}

#[test]
fn processes_obeyed() {
    let world = World::new();
    let command = "for i in $(seq 30); do sleep 0.3 & done; wait; echo done";
    let result =
        run(&world, held(Confinement::Landlock).limits(small()), json!({"command": command}));
    assert_eq!(result.output().as_deref(), Some("done\n"), "{result}");
}

#[test]
fn processes_violated() {
    let world = World::new();
    // A fork bomb: each process starts two in the background, so that the group outlives the shell.
    let command = "echo begun; bomb() { sleep 0.01; bomb | bomb & }; bomb; sleep 1000";
    for confinement in [Confinement::Landlock, Confinement::Unconfined] {
        let result = run(&world, held(confinement).limits(small()), json!({"command": command}));
        exhausted(&result, "processes", 48);
        assert!(
            result.content()[0].as_text().starts_with("begun\n"),
            "its output is kept: {result:?}"
        );
        assert_eq!(inside(&world.root()), Vec::<String>::new());
    }
}

#[test]
fn processes_in_other_sessions_count() {
    let world = World::new();
    let command = "for i in $(seq 60); do setsid sleep 1000 & done; sleep 1000";
    for confinement in [Confinement::Landlock, Confinement::Unconfined] {
        let result = run(&world, held(confinement).limits(small()), json!({"command": command}));
        exhausted(&result, "processes", 48);
        assert_eq!(inside(&world.root()), Vec::<String>::new());
    }
}

/// A process that has ended keeps its id until its parent waits for it. No control group lists it.
#[test]
fn dead_processes_that_nobody_waits_for_count() {
    let world = World::new();
    let holds = "hold() { for i in $(seq 10); do sleep 0.05 & done; exec sleep 1000; }";
    let command = format!("{holds}; for i in 1 2 3 4 5; do (hold) & sleep 0.4; done; sleep 1000");
    for confinement in [Confinement::Landlock, Confinement::Unconfined] {
        let result = run(&world, held(confinement).limits(small()), json!({"command": command}));
        exhausted(&result, "processes", 48);
        assert_eq!(inside(&world.root()), Vec::<String>::new());
    }
}

/// A process without a parent in the command is reaped by the helper.
#[test]
fn many_processes_that_end_soon_are_few_at_once() {
    let world = World::new();
    let command = "for i in $(seq 3000); do (:&); done; echo done";
    for confinement in [Confinement::Landlock, Confinement::Unconfined] {
        let result = run(&world, held(confinement).limits(small()), json!({"command": command}));
        assert_eq!(result.output().as_deref(), Some("done\n"), "{result}");
    }
}

#[test]
fn resident_memory_obeyed() {
    // 48 MB in all processes together: `tail` buffers a line until its end.
    let command = "for i in 1 2 3; do head -c 16000000 /dev/zero | tail -n 1 | wc -c & done; wait";
    let result = run(
        &World::new(),
        held(Confinement::Landlock).limits(small()),
        json!({"command": command}),
    );
    assert_eq!(result.output().as_deref(), Some("16000000\n16000000\n16000000\n"), "{result}");
}

#[test]
fn resident_memory_violated() {
    let world = World::new();
    // Each process stays below half of the limit for all of them.
    let command =
        "for i in 1 2 3 4; do (head -c 40000000 /dev/zero; sleep 1000) | tail -n 1 & done; wait";
    let result =
        run(&world, held(Confinement::Landlock).limits(small()), json!({"command": command}));
    exhausted(&result, "resident_memory", 96 << 20);
    assert_eq!(inside(&world.root()), Vec::<String>::new());
}

/// Runs the program whose first thread ends, and returns `None` if the kernel cannot end it alone.
fn leaderless(mib: u64, seconds: u64) -> Option<ToolResult> {
    // Landlock would not let a command run a program of the tests.
    let command = format!("exec '{}' {mib} {seconds}", program::leaderless().display());
    let result = run(
        &World::new(),
        held(Confinement::Unconfined).limits(small()),
        json!({"command": command}),
    );
    if result.metadata()["exit_code"] == 3 {
        skip(&format!("this kernel cannot end a single thread: {result}"));
        return None;
    }
    Some(result)
}

#[test]
fn memory_behind_an_ended_first_thread_obeyed() {
    let Some(result) = leaderless(16, 1) else { return };
    assert_eq!(result.output().as_deref(), Some("kept 16777216 bytes\n"), "{result}");
}

#[test]
fn memory_behind_an_ended_first_thread_violated() {
    // The process would succeed after ten seconds.
    let Some(result) = leaderless(160, 10) else { return };
    exhausted(&result, "resident_memory", 96 << 20);
}
