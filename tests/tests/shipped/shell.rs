//! The `shell` helper: no process of a command outlives its call, and all of them together stay
//! within limits.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use palisade::policy::Policy;
use palisade::{CacheMode, Call, Host, SideEffects, ToolResult, events::Event, json};
use palisade_shell::{Confinement, Shell, ShellHelper, ShellOptions};
use palisade_tests::case::block_on;
use palisade_tests::guest::cache;
use palisade_tests::program::executable;
use palisade_tests::stage::class;
use palisade_tests::{Stage, World};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// The time limit for cleanup, on a busy machine.
const SOON: Duration = Duration::from_secs(10);

/// Starts a process in a session of its own, detached from the command.
const DAEMON: &str = "(setsid sh -c 'echo $$ > daemon; exec sleep 1000' >/dev/null 2>&1 &) ; \
    until [ -s daemon ]; do sleep 0.01; done";

pub(crate) fn held(confinement: Confinement) -> ShellOptions {
    ShellOptions::new(confinement).helper(ShellHelper::palisade(executable()))
}

fn host(world: &World, options: ShellOptions) -> Host {
    let policy = Policy::default().allowing(SideEffects::Execute);
    let builder =
        Host::builder().workspace(world.root()).cache(CacheMode::Directory(cache())).policy(policy);
    builder.tool(Shell::factory(options)).build().expect("the host can be built")
}

pub(crate) fn run(world: &World, options: ShellOptions, input: Value) -> ToolResult {
    let host = host(world, options);
    block_on(async { host.dispatch(host.session(), Call::new("shell", input)).await })
}

/// Lists the processes whose current directory is in this directory.
pub(crate) fn inside(directory: &Path) -> Vec<String> {
    let processes =
        fs::read_dir("/proc").expect("a list of processes").flatten().map(|process| process.path());
    let inside = processes.filter(|process| {
        fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd.starts_with(directory))
    });
    inside.filter_map(|process| fs::read_to_string(process.join("stat")).ok()).collect()
}

/// Returns true if a process runs; a zombie does not count.
fn alive(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

#[track_caller]
fn soon(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < SOON, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn command_with_a_helper_has_the_same_result() {
    let world = World::new();
    world.file("f", "text");
    let cases = [
        ("cat f; pwd; echo err >&2; exit 3", "exit code 3"),
        ("kill -9 $$", "killed by signal 9"),
        (
            "echo $HOME | grep -q palisade.private-shell- && env | grep -c '^\\(PATH\\|TMPDIR\\|LANG\\|LC_ALL\\|TERM\\)='",
            "5",
        ),
        ("cat ../secret.txt", "exit code 1"),
    ];
    for (command, said) in cases {
        let [with, without] =
            [held(Confinement::Landlock), ShellOptions::default()].map(|options| {
                let mut result = run(&world, options, json!({"command": command})).to_json();
                for key in ["call_id", "duration_ms"] {
                    result[key] = Value::Null;
                }
                result
            });
        assert_eq!(with, without, "{command}");
        assert!(with.to_string().contains(said), "{command}: {with}");
    }
}

#[test]
fn daemon_ends_with_its_call_under_any_confinement() {
    for confinement in [Confinement::Landlock, Confinement::Unconfined] {
        let world = World::new();
        let result = run(&world, held(confinement), json!({"command": DAEMON}));
        assert!(result.is_success(), "{result}");
        let daemon = world.read("daemon").expect("it ran");
        assert!(!alive(&daemon), "{confinement:?}");
        assert_eq!(inside(&world.root()), Vec::<String>::new(), "{confinement:?}");
    }
}

#[test]
fn daemon_of_a_timed_out_command_ends() {
    let world = World::new();
    let command = format!("{DAEMON}; echo begun; sleep 1000");
    let result =
        run(&world, held(Confinement::Landlock), json!({"command": command, "timeout_ms": 2000}));
    assert_eq!(class(&result), "timeout", "{result}");
    assert!(result.content()[0].as_text().contains("killed by signal 15"), "{result:?}");
    assert!(!alive(&world.read("daemon").expect("it ran")));
    assert_eq!(inside(&world.root()), Vec::<String>::new());
}

#[test]
fn dropped_call_leaves_no_process_or_directory() {
    let world = World::new();
    let host = host(&world, held(Confinement::Landlock));
    let command = format!("echo $HOME > home; {DAEMON}; sleep 1000");
    block_on(async {
        let call = host.dispatch(host.session(), Call::new("shell", json!({"command": command})));
        let begun = async {
            while world.read("daemon").is_none_or(|daemon| daemon.is_empty()) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            result = call => panic!("it does not end: {result}"),
            () = begun => {}
        }
    });
    let [daemon, home] = ["daemon", "home"].map(|file| world.read(file).expect("it ran"));
    soon("the daemon lives", || !alive(&daemon));
    soon("a process lives", || inside(&world.root()).is_empty());
    soon("the directory is there", || !Path::new(home.trim()).exists());
}

#[test]
fn file_is_linked_between_directories() {
    // A move would be copied by `mv` where the kernel refuses it.
    let command = "mkdir a b && echo x > a/f && ln a/f b/f && cat b/f";
    for confinement in [Confinement::Landlock, Confinement::Unconfined] {
        let result = run(&World::new(), held(confinement), json!({"command": command}));
        assert_eq!(result.output().as_deref(), Some("x\n"), "{result}");
    }
}

#[test]
fn command_ends_with_its_killed_helper() {
    let policy = Policy::default().allowing(SideEffects::Execute);
    let shell = Shell::factory(held(Confinement::Unconfined));
    let stage = Stage::new(&[], |builder| builder.policy(policy).tool(shell));
    let command = "echo $PPID > helper; echo $$ > shell; echo begun; sleep 1000";
    let result = block_on(async {
        let call = stage.begin(&stage.session(), Call::new("shell", json!({"command": command})));
        // The first output shows that the host is following the command.
        let heard = |event: &Event| matches!(event, Event::OutputDelta(..));
        stage.recorder.until(|events| events.iter().any(heard)).await;
        let helper =
            stage.world.read("helper").and_then(|pid| Pid::from_raw(pid.trim().parse().ok()?));
        kill_process(helper.expect("a number"), Signal::KILL).expect("it is there");
        call.await.expect("the call ends")
    });
    assert!(result.is_failure(), "{result}");
    assert_eq!(result.metadata()["exit_code"], Value::Null);
    let shell = stage.world.read("shell").expect("it ran");
    soon("the shell lives", || !alive(&shell));
    soon("its group lives", || inside(&stage.world.root()).is_empty());
}

/// Signals every thread of the helper, by each system call that takes a thread id.
const BY_THREAD: &str = r#"
    my $signal = shift;
    open(my $list, '<', 'threads') or die;
    pipe(my $in, my $out) or die;
    while (my $thread = <$list>) {
        chomp $thread;
        print "kill $thread\n" if kill $signal, $thread;
        my $owner = pack('ii', 0, $thread);
        next unless fcntl($in, 15, $owner);
        print "owner $thread\n";
        fcntl($in, 10, $signal);
        fcntl($in, 4, 0x2000);
        syswrite($out, 'x');
    }
"#;

/// Waits for the helper's process id from the command, and returns the ids of the helper's threads.
fn threads(world: &World) -> String {
    let helper = || world.read("helper").filter(|helper| helper.ends_with('\n'));
    soon("the command does not begin", || helper().is_some());
    let directory = format!("/proc/{}/task", helper().expect("it is there").trim());
    let threads = fs::read_dir(directory).expect("the helper is there").flatten();
    threads.map(|thread| format!("{}\n", thread.file_name().display())).collect()
}

#[test]
fn command_cannot_signal_its_helper_by_thread_id() {
    for signal in [Signal::KILL, Signal::STOP] {
        let world = World::new();
        fs::write(world.root().join("signal.pl"), BY_THREAD).expect("it can be written");
        let command = format!(
            "{DAEMON}; echo $PPID > helper; until [ -s threads ]; do sleep 0.01; done; \
             perl signal.pl {}; echo over",
            signal.as_raw()
        );
        let result = std::thread::scope(|scope| {
            let call = scope
                .spawn(|| run(&world, held(Confinement::Landlock), json!({"command": command})));
            let threads = threads(&world);
            assert!(threads.lines().count() >= 2, "{threads}");
            fs::write(world.root().join("list"), threads).expect("it can be written");
            fs::rename(world.root().join("list"), world.root().join("threads"))
                .expect("it can be moved");
            call.join().expect("the call ends")
        });
        assert!(result.is_success(), "{result}");
        assert_eq!(result.output().expect("it ran"), "over\n", "{signal:?}");
        assert!(!alive(&world.read("daemon").expect("it ran")));
        assert_eq!(inside(&world.root()), Vec::<String>::new());
    }
}

#[test]
fn stopped_helper_is_killed_with_its_command() {
    let world = World::new();
    let command =
        "echo $PPID > helper; echo $$ > shell; setsid sleep 1000 & sleep 1000 & sleep 1000";
    let (result, helper, took) = std::thread::scope(|scope| {
        let input = json!({"command": command, "timeout_ms": 1000});
        let call = scope.spawn(|| run(&world, held(Confinement::Landlock), input));
        soon("the command does not begin", || {
            world.read("shell").is_some_and(|shell| shell.ends_with('\n'))
        });
        let helper = world.read("helper").expect("it ran");
        let number = Pid::from_raw(helper.trim().parse().expect("a number")).expect("a number");
        kill_process(number, Signal::STOP).expect("it is there");
        let begun = Instant::now();
        (call.join().expect("the call ends"), helper, begun.elapsed())
    });
    // The timeout of the call, the grace period after SIGTERM, the longest silence of a helper, and
    // 3 s of slack.
    assert!(took < Duration::from_secs(1 + 5 + 8) + Duration::from_secs(3), "{took:?}");
    assert_eq!(class(&result), "timeout", "{result}");
    soon("the helper lives", || !alive(&helper));
    let shell = world.read("shell").expect("it ran");
    soon("the shell lives", || !alive(&shell));
    soon("a process lives", || inside(&world.root()).is_empty());
}

#[test]
fn helper_stopped_before_its_answer_ends_with_the_call() {
    let world = World::new();
    let script = world.root().join("helper.sh");
    let program = format!(
        "#!/bin/sh\necho $$ > helper; kill -STOP $$; exec {} \"$@\"\n",
        executable().display()
    );
    fs::write(&script, program).expect("it can be written");
    fs::set_permissions(&script, Permissions::from_mode(0o755)).expect("it is ours");
    let options = ShellOptions::new(Confinement::Landlock).helper(ShellHelper::palisade(&script));
    let result =
        run(&world, options, json!({"command": "sleep 1000 & sleep 1000", "timeout_ms": 300}));
    assert_eq!(class(&result), "timeout", "{result}");
    let helper = world.read("helper").expect("it ran");
    soon("the helper lives", || !alive(&helper));
    soon("a process lives", || inside(&world.root()).is_empty());
}

#[test]
fn missing_helper_runs_nothing() {
    let world = World::new();
    for program in ["/no/such/program", "/bin/true"] {
        let options = ShellOptions::default().helper(ShellHelper::palisade(program));
        let result = run(&world, options, json!({"command": "touch ran"}));
        assert_eq!(class(&result), "execution_error", "{program}: {result}");
        assert_eq!(world.read("ran"), None);
    }
}

#[test]
fn command_inherits_nothing_of_its_helper() {
    let listing = "for f in /proc/$$/fd/*; do readlink $f; done; true";
    let result = run(&World::new(), held(Confinement::Unconfined), json!({"command": listing}));
    let output = result.output().expect("it ran").into_owned();
    assert!(
        !output.contains("socket:")
            && output.lines().all(|line| line.contains("pipe:") || line == "/dev/null"),
        "{output}"
    );
}
