//! A crash of the program during a call with a secret leaves no core file.

use super::secrets::PLANTED;
use super::server::Server;
use palisade_tests::guest::NET_FETCH;
use palisade_tests::{Program, World, skip};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// The option of `ulimit` that allows core files as far as this process may.
const CORES: &str = "-c $(ulimit -H -c)";

/// Returns the shell with core files allowed, which starts a program.
fn cores_allowed(folder: &Path) -> Command {
    let mut command = Command::new("sh");
    let script = format!("ulimit {CORES} && exec \"$@\"");
    command.args(["-c", &script, "sh"]).current_dir(folder);
    command
}

/// Returns true if a crash of an ordinary process dumps its core on this machine.
fn machine_dumps_cores(folder: &Path) -> bool {
    let mut command = cores_allowed(folder);
    let ended = command.args(["sh", "-c", "kill -ABRT $$"]).status().unwrap();
    ended.core_dumped()
}

fn files(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    names.map(|name| name.to_string_lossy().into_owned()).collect()
}

#[test]
fn crash_during_a_call_with_a_secret_leaves_no_core_file() {
    for signal in [Signal::ABORT, Signal::SEGV] {
        let world = World::new();
        let folder = world.outer().join("crash");
        fs::create_dir(&folder).unwrap();
        let control = world.outer().join("control");
        fs::create_dir(&control).unwrap();
        let (send, arrived) = channel();
        let server = Server::start(move |_, _| {
            let _ = send.send(());
            std::thread::park();
        });
        let run = |args: &[&str]| {
            let plugins = NET_FETCH.directory().into_os_string();
            Program::new(&world)
                .args(["--no-builtin".into(), "--plugins".into(), plugins])
                .args(args.iter().copied())
                .env("PLANTED", PLANTED)
        };
        let _ = run(&["grant", "net_fetch", "net", &server.rule("GET")]).run().exits_with(0);
        let secret =
            ["grant", "net_fetch", "secret", "PLANTED", "--for", "localhost", "--header", "x-key"];
        let _ = run(&secret).run().exits_with(0);
        let input = json!({"authority": server.authority()}).to_string();
        let call = run(&["call", "send_read", &input]).directory(folder.clone());
        let mut child = call.limited(CORES).open();
        arrived.recv_timeout(Duration::from_secs(60)).unwrap();
        assert!(server.requests()[0].contains(PLANTED));
        let limits = fs::read_to_string(format!("/proc/{}/limits", child.id())).unwrap();
        let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
        assert!(matches!(core.split_whitespace().nth(4), Some("0" | "1")), "{core}");
        let process = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        let until = Instant::now() + Duration::from_secs(60);
        // The handler of the engine takes the first signal of an address for a guest's, and then
        // leaves the next one to the system.
        let ended = loop {
            kill_process(process, signal).unwrap();
            std::thread::yield_now();
            if let Some(ended) = child.try_wait().unwrap() {
                break ended;
            }
            assert!(Instant::now() < until, "{signal:?} does not end the program");
        };
        assert_eq!(ended.signal(), Some(signal.as_raw()), "{ended:?}");
        assert!(!ended.core_dumped(), "{ended:?}");
        assert_eq!(files(&folder), Vec::<String>::new());
        if !machine_dumps_cores(&control) {
            skip("this machine dumps no core of any process: the crash shows the limit only");
        }
    }
}
