//! Tests of ending a command from outside: no process of it survives.

use super::*;
use std::future::Future;

/// Returns a setup with a short grace; the shipped grace is five seconds.
fn short_grace() -> Setup {
    Setup { timeouts: SHORT_GRACE, ..CONFINED }
}

const SHORT_GRACE: Timeouts = Timeouts { grace: Duration::from_millis(400), ..Timeouts::DEFAULT };

/// Returns true if a process runs; a zombie does not.
fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

#[track_caller]
fn assert_gone(pid: &str) {
    let begun = Instant::now();
    assert!(!pid.is_empty());
    while is_alive(pid) {
        assert!(begun.elapsed() < SOON, "process {pid} is alive");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Runs a command concurrently with a future. Returns both results and the elapsed time.
async fn run_alongside<T>(
    world: &World,
    command: &str,
    other: impl Future<Output = T>,
) -> (ToolOutput, T, Duration) {
    let begun = Instant::now();
    let (output, other) = tokio::join!(world.run(command), other);
    (output, other, begun.elapsed())
}

#[test]
fn default_grace_is_five_seconds() {
    assert_eq!(Timeouts::DEFAULT.grace, Duration::from_secs(5));
}

#[tokio::test]
async fn cancel_ends_all_children_and_keeps_the_output() {
    let world = World::new(CONFINED);
    let cancel = async {
        let child = world.sink.line("child ").await;
        assert!(is_alive(&child));
        assert!(world.shell.cancel(), "it ran and is stopped");
        assert!(!world.shell.cancel(), "once");
        child
    };
    let (output, child, took) =
        run_alongside(&world, "sleep 1000 & echo child $!; wait", cancel).await;
    assert!(took < SOON, "{took:?}");
    assert!(failed(&output).starts_with(&format!("child {child}\n")), "{}", text(&output));
    assert_eq!(last_line(&output), "killed by signal 15");
    assert_gone(&child);
    assert!(!world.shell.cancel(), "it is over");
}

#[tokio::test]
async fn cancellation_token_stops_a_command() {
    let world = World::new(CONFINED);
    let (output, (), took) = run_alongside(&world, "echo begun; sleep 1000", async {
        world.sink.line("begun").await;
        world.cancel.cancel();
    })
    .await;
    assert!(took < SOON, "{took:?}");
    assert_eq!(
        failed(&output),
        "begun\n[the command was stopped before it ended]\nkilled by signal 15"
    );
}

#[tokio::test]
async fn command_can_clean_up_at_sigterm() {
    let world = World::new(CONFINED);
    let (output, (), _) = run_alongside(
        &world,
        "trap 'echo cleaned; exit 0' TERM; echo begun; while :; do sleep 0.02; done",
        async {
            world.sink.line("begun").await;
            world.shell.cancel();
        },
    )
    .await;
    assert!(failed(&output).contains("\ncleaned\n"), "{}", text(&output));
    assert_eq!(last_line(&output), "exit code 0");
}

#[tokio::test]
async fn command_that_ignores_sigterm_is_killed_after_the_grace() {
    let world = World::new(short_grace());
    let (output, pid, took) =
        run_alongside(&world, "trap '' TERM; echo shell $$; while :; do sleep 0.02; done", async {
            let pid = world.sink.line("shell ").await;
            world.shell.cancel();
            pid
        })
        .await;
    assert!(took >= SHORT_GRACE.grace, "{took:?}");
    assert_eq!(last_line(&output), "killed by signal 9");
    assert_gone(&pid);
}

#[tokio::test]
async fn children_that_ignore_sigterm_are_killed_after_the_shell() {
    let world = World::new(short_grace());
    let (output, child, _) =
        run_alongside(&world, "(trap '' TERM; exec sleep 1000) & echo child $!; wait", async {
            let child = world.sink.line("child ").await;
            // The signal must arrive after the child has set its disposition.
            while !ignores_sigterm(&child) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            world.shell.cancel();
            child
        })
        .await;
    assert_eq!(last_line(&output), "killed by signal 15");
    assert_gone(&child);
}

fn ignores_sigterm(pid: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let ignored = status
        .lines()
        .find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    ignored.unwrap_or_default() & (1 << 14) != 0
}

#[tokio::test]
async fn flood_does_not_delay_cancellation() {
    let world = World::new(CONFINED);
    let (output, (), took) = run_alongside(&world, "echo begun; yes", async {
        world.sink.line("begun").await;
        assert!(world.shell.cancel());
    })
    .await;
    assert!(took < SOON, "{took:?}");
    assert_eq!(last_line(&output), "killed by signal 15");
}

#[tokio::test]
async fn background_process_is_killed_with_the_call() {
    let world = World::new(CONFINED);
    let (output, (), took) = run_alongside(&world, "sleep 1000 & echo child $!", async {}).await;
    assert!(took < SOON, "{took:?}");
    assert_gone(succeeded(&output).trim().trim_start_matches("child "));
}

#[tokio::test]
async fn output_after_the_end_of_the_shell_is_kept() {
    assert_eq!(succeeded(&run("(sleep 0.05; echo late) & echo early").await), "early\nlate\n");
}

#[tokio::test]
async fn detached_process_does_not_delay_the_call() {
    let world = World::new(CONFINED);
    let (output, (), took) =
        run_alongside(&world, "setsid sleep 1000 & echo child $!; sleep 0.1", async {}).await;
    assert!(took < SOON, "{took:?}");
    let child = succeeded(&output).trim().trim_start_matches("child ").to_owned();
    assert!(
        is_alive(&child),
        "the documents say that it survives without a helper; if it no longer does, say so there"
    );
    let pid = rustix::process::Pid::from_raw(child.parse().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

#[tokio::test]
async fn input_timeout_stops_the_command_and_keeps_output() {
    let world = World::new(CONFINED);
    let (output, _) =
        world.call(json!({"command": "echo begun; sleep 1000", "timeout_ms": 300})).await.unwrap();
    assert_eq!(
        failed(&output),
        "begun\n[the command was stopped after its timeout_ms of 300]\nkilled by signal 15"
    );
    assert_eq!(output.metadata["stopped_after_ms"], json!(300));
}

#[tokio::test]
async fn call_cancelled_before_its_start_runs_nothing() {
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
        _ = world.run("trap '' TERM; sleep 1000 & echo child $!; wait") => {
            panic!("it does not end")
        }
        child = world.sink.line("child ") => child,
    };
    assert_gone(&child);
    assert!(!world.shell.cancel());
}

#[test]
fn dropped_runtime_leaves_no_process_and_no_home() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let world = Arc::new(World::new(CONFINED));
    let running = world.clone();
    runtime.spawn(
        async move { running.run("echo home $HOME; sleep 1000 & echo child $!; wait").await },
    );
    let (child, home) = runtime
        .block_on(async { (world.sink.line("child ").await, world.sink.line("home ").await) });
    drop(runtime);
    assert_gone(&child);
    let begun = Instant::now();
    while Path::new(&home).exists() {
        assert!(begun.elapsed() < SOON, "{home}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
