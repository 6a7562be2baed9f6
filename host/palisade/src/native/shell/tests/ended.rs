//! Tests of ending a command from outside: no process of it survives.

use super::*;
use std::future::Future;

/// Returns a setup with a short grace; the shipped grace is five seconds.
fn hasty() -> Setup {
    Setup { patience: HASTE, ..CONFINED }
}

const HASTE: Patience = Patience { grace: Duration::from_millis(400), ..Patience::SHIPPED };

/// Returns true if a process runs; a zombie does not.
fn alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

#[track_caller]
fn gone(pid: &str) {
    let begun = Instant::now();
    assert!(!pid.is_empty());
    while alive(pid) {
        assert!(begun.elapsed() < SOON, "process {pid} is alive");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Runs a command concurrently with a future. Returns both results and the elapsed time.
async fn beside<T>(
    world: &World,
    command: &str,
    other: impl Future<Output = T>,
) -> (ToolOutput, T, Duration) {
    let begun = Instant::now();
    let (output, other) = tokio::join!(world.run(command), other);
    (output, other, begun.elapsed())
}

#[test]
fn shipped_grace_period_is_five_seconds() {
    assert_eq!(Patience::SHIPPED.grace, Duration::from_secs(5));
}

#[tokio::test]
async fn cancelled_command_ends_at_sigterm_with_partial_output() {
    let world = World::new(CONFINED);
    let cancel = async {
        let child = world.heard.line("child ").await;
        assert!(alive(&child));
        assert!(world.shell.cancel(), "it ran and is stopped");
        assert!(!world.shell.cancel(), "once");
        child
    };
    let (output, child, took) = beside(&world, "sleep 1000 & echo child $!; wait", cancel).await;
    assert!(took < SOON, "{took:?}");
    assert!(failed(&output).starts_with(&format!("child {child}\n")), "{}", text(&output));
    assert_eq!(last_line(&output), "killed by signal 15");
    gone(&child);
    assert!(!world.shell.cancel(), "it is over");
}

#[tokio::test]
async fn context_token_stops_a_command() {
    let world = World::new(CONFINED);
    let (output, (), took) = beside(&world, "echo begun; sleep 1000", async {
        world.heard.line("begun").await;
        world.context.cancel().cancel();
    })
    .await;
    assert!(took < SOON, "{took:?}");
    assert_eq!(
        failed(&output),
        "begun\n[the command was stopped before it ended]\nkilled by signal 15"
    );
}

#[tokio::test]
async fn command_may_clean_up_at_sigterm() {
    let world = World::new(CONFINED);
    let (output, (), _) = beside(
        &world,
        "trap 'echo cleaned; exit 0' TERM; echo begun; while :; do sleep 0.02; done",
        async {
            world.heard.line("begun").await;
            world.shell.cancel();
        },
    )
    .await;
    assert!(failed(&output).contains("\ncleaned\n"), "{}", text(&output));
    assert_eq!(last_line(&output), "exit code 0");
}

#[tokio::test]
async fn sigkill_follows_an_ignored_sigterm() {
    let world = World::new(hasty());
    let (output, pid, took) =
        beside(&world, "trap '' TERM; echo shell $$; while :; do sleep 0.02; done", async {
            let pid = world.heard.line("shell ").await;
            world.shell.cancel();
            pid
        })
        .await;
    assert!(took >= HASTE.grace, "{took:?}");
    assert_eq!(last_line(&output), "killed by signal 9");
    gone(&pid);
}

#[tokio::test]
async fn sigkill_reaches_children_of_an_ended_shell() {
    let world = World::new(hasty());
    let (output, child, _) =
        beside(&world, "(trap '' TERM; exec sleep 1000) & echo child $!; wait", async {
            let child = world.heard.line("child ").await;
            // The signal must arrive after the child has set its disposition.
            while !ignores_sigterm(&child) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            world.shell.cancel();
            child
        })
        .await;
    assert_eq!(last_line(&output), "killed by signal 15");
    gone(&child);
}

fn ignores_sigterm(pid: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let ignored = status
        .lines()
        .find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    ignored.unwrap_or_default() & (1 << 14) != 0
}

#[tokio::test]
async fn output_flood_does_not_delay_cancellation() {
    let world = World::new(CONFINED);
    let (output, (), took) = beside(&world, "echo begun; yes", async {
        world.heard.line("begun").await;
        assert!(world.shell.cancel());
    })
    .await;
    assert!(took < SOON, "{took:?}");
    assert_eq!(last_line(&output), "killed by signal 15");
}

#[tokio::test]
async fn background_process_ends_with_the_call() {
    let world = World::new(CONFINED);
    let (output, (), took) = beside(&world, "sleep 1000 & echo child $!", async {}).await;
    assert!(took < SOON, "{took:?}");
    gone(succeeded(&output).trim().trim_start_matches("child "));
}

#[tokio::test]
async fn late_pipeline_output_is_kept() {
    assert_eq!(succeeded(&run("(sleep 0.05; echo late) & echo early").await), "early\nlate\n");
}

#[tokio::test]
async fn escaped_process_does_not_hold_the_call() {
    let world = World::new(CONFINED);
    let (output, (), took) =
        beside(&world, "setsid sleep 1000 & echo child $!; sleep 0.1", async {}).await;
    assert!(took < SOON, "{took:?}");
    let child = succeeded(&output).trim().trim_start_matches("child ").to_owned();
    assert!(
        alive(&child),
        "the documents say that it survives without a helper; if it no longer does, say so there"
    );
    let pid = rustix::process::Pid::from_raw(child.parse().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

#[tokio::test]
async fn input_timeout_stops_the_command_with_partial_output() {
    let world = World::new(CONFINED);
    let output =
        world.call(json!({"command": "echo begun; sleep 1000", "timeout_ms": 300})).await.unwrap();
    assert_eq!(
        failed(&output),
        "begun\n[the command was stopped after its timeout_ms of 300]\nkilled by signal 15"
    );
    assert_eq!(output.metadata["stopped_after_ms"], json!(300));
}

#[tokio::test]
async fn call_cancelled_before_start_runs_nothing() {
    let world = World::new(CONFINED);
    assert!(!world.shell.cancel());
    assert!(matches!(
        world.call(json!({"command": "echo x > ran"})).await,
        Err(ErrorKind::Cancelled)
    ));
    assert!(!world.workspace().join("ran").exists());
}

#[tokio::test]
async fn dropped_call_leaves_no_process() {
    let world = World::new(CONFINED);
    let child = tokio::select! {
        _ = world.run("trap '' TERM; sleep 1000 & echo child $!; wait") => panic!("it does not end"),
        child = world.heard.line("child ") => child,
    };
    gone(&child);
    assert!(!world.shell.cancel());
}

#[test]
fn dropped_runtime_leaves_no_process_or_directory() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let world = Arc::new(World::new(CONFINED));
    let running = world.clone();
    runtime.spawn(
        async move { running.run("echo home $HOME; sleep 1000 & echo child $!; wait").await },
    );
    let (child, home) = runtime
        .block_on(async { (world.heard.line("child ").await, world.heard.line("home ").await) });
    drop(runtime);
    gone(&child);
    let begun = Instant::now();
    while Path::new(&home).exists() {
        assert!(begun.elapsed() < SOON, "{home}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
