//! The program on a workspace that hangs: it reports the cause and exits with the right code, at
//! most two seconds late.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::DirBuilderExt as _;
use std::process::Stdio;

use palisade_tests::Program;
use palisade_tests::program::{Ran, finish};
use rustix::process::{Pid, Signal, kill_process};

use super::*;

/// The time for the program's own start and exit on a busy machine.
const ITSELF: Duration = Duration::from_secs(1);

#[track_caller]
fn in_time(program: Program<'_>, time: Duration) -> Ran {
    let start = Instant::now();
    let ran = program.run();
    assert!(start.elapsed() < time + AT_MOST + ITSELF, "it took {:?}: {ran:?}", start.elapsed());
    ran
}

/// Starts a call that hangs, sends a signal, and returns the outcome, which must come within two
/// seconds.
#[track_caller]
fn told_to_end(scene: &Scene, words: &[&str], signal: Signal) -> Ran {
    let child =
        Program::new(&scene.world).args(words.iter().copied()).stdout(Stdio::piped()).start();
    scene.frozen.wait_for_stop();
    let start = Instant::now();
    kill_process(Pid::from_child(&child), signal).unwrap();
    let ran = finish(child);
    assert!(start.elapsed() < AT_MOST, "it took {:?}: {ran:?}", start.elapsed());
    ran
}

#[test]
fn workspace_hanging_from_the_start_is_an_error_in_time() {
    Scene::play(|scene| {
        scene.frozen.stop();
        let words = ["call", "read_file", "{\"path\": \"notes.txt\"}", "--timeout", "200ms"];
        let ran = in_time(Program::new(&scene.world).args(words), SHORT).exits_with(7);
        ran.stderr_contains(&["the workspace", "has not answered for 200ms"]);
    });
}

#[test]
fn hanging_recorded_cache_delays_no_other_call() {
    Scene::play(|scene| {
        let (home, elsewhere) = (World::new(), World::new());
        elsewhere.file("here.txt", "x");
        let records = home.root().join(".local/state/palisade/paths");
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&records).unwrap();
        // A name that was never looked up is not in the kernel's dentry cache, so the lookup
        // reaches the frozen server.
        let cache = scene.world.root().join("never/cache");
        std::fs::write(records.join("record"), cache.to_str().unwrap()).unwrap();
        scene.frozen.stop();
        for words in [&["list"][..], &["call", "list_dir", "{}", "--timeout", "5s"]] {
            let program =
                Program::new(&elsewhere).env("HOME", home.root()).args(words.iter().copied());
            let _ = in_time(program, SHORT).exits_with(0);
        }
    });
}

#[test]
fn hanging_call_ends_with_its_result() {
    Scene::play(|scene| {
        let words =
            ["call", "read_file", "{\"path\": \"trap.txt\"}", "--timeout", "200ms", "--json"];
        let events = scene.world.home().join("events");
        let program =
            Program::new(&scene.world).args(words).args(["--events".into(), events.clone()]);
        let ran = in_time(program, SHORT).exits_with(7);
        let result = ran.json();
        palisade_tests::uniform::check_shape(&result);
        assert_eq!(
            result["error"]["detail"],
            json!({"limit": "timeout", "value_ms": 200, "reason": "no_answer"})
        );
        let events = std::fs::read_to_string(events).unwrap();
        assert_eq!(
            events.lines().filter(|line| line.contains("\"tool.failed\"")).count(),
            1,
            "{events}"
        );
    });
}

#[test]
fn hanging_call_is_interrupted() {
    for signal in [Signal::INT, Signal::TERM] {
        Scene::play(|scene| {
            let words = ["call", "read_file", "{\"path\": \"trap.txt\"}", "--json"];
            let result = told_to_end(scene, &words, signal).exits_with(130).json();
            assert_eq!(result["error"]["class"], "cancelled");
        });
    }
}

#[test]
fn hanging_call_in_place_is_interrupted() {
    Scene::play(|scene| {
        let file = scene.world.home().join("palisade.toml");
        std::fs::write(&file, "[workspace]\nmay_hang = false\n").unwrap();
        let words =
            ["call", "read_file", "{\"path\": \"trap.txt\"}", "--config", file.to_str().unwrap()];
        told_to_end(scene, &words, Signal::INT)
            .exits_with(130)
            .stderr_contains(&["cancelled: ", "hangs in a file operation"]);
    });
}

#[test]
fn hanging_call_of_a_reply_keeps_the_other_answers() {
    Scene::play(|scene| {
        let call = |id: &str, name: &str, input: Value| json!({"type": "tool_use", "id": id, "name": name, "input": input});
        let content = [
            call("a", "read_file", json!({"path": "trap.txt"})),
            call("b", "calculate", json!({"expression": "6 * 7"})),
        ];
        let reply = json!({"role": "assistant", "content": content}).to_string();
        let words = ["dispatch", "--from", "anthropic", "--timeout", "200ms"];
        let ran = in_time(Program::new(&scene.world).args(words).stdin(reply), SHORT).exits_with(0);
        let answers = ran.json()[0]["content"].to_string();
        assert!(answers.contains("42") && answers.contains("given up"), "{answers}");
    });
}

#[test]
fn explanation_of_a_hanging_call_is_not_awaited() {
    Scene::play(|scene| {
        scene.frozen.stop();
        let child = Program::new(&scene.world)
            .args(["policy", "explain", "read_file"])
            .stdout(Stdio::piped())
            .start();
        let start = Instant::now();
        kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        let _ = finish(child);
        assert!(start.elapsed() < AT_MOST, "{:?}", start.elapsed());
    });
}

/// The time `doctor` takes if no answer comes: one wait of 10 s, and several short ones.
const DOCTOR: Duration = Duration::from_secs(12);

#[test]
fn doctor_waits_once_for_a_hanging_workspace() {
    Scene::play(|scene| {
        scene.frozen.stop();
        let start = Instant::now();
        let ran = Program::new(&scene.world)
            .args(["doctor"])
            .env("PALISADE_CACHE", "off")
            .run()
            .exits_with(7);
        assert!(start.elapsed() < DOCTOR + ITSELF, "it took {:?}: {ran:?}", start.elapsed());
        assert_eq!(ran.stdout.matches("has not answered for 10s").count(), 1, "{}", ran.stdout);
        for part in
            ["engine", "bad   workspace", "cache", "landlock", "is not looked at", "plugins"]
        {
            assert!(ran.stdout.contains(part), "{part:?}: {}", ran.stdout);
        }
    });
}

#[test]
fn doctor_reports_before_a_hanging_workspace_times_out() {
    Scene::play(|scene| {
        scene.frozen.stop();
        let mut child = Program::new(&scene.world).args(["doctor"]).stdout(Stdio::piped()).start();
        let (start, mut first) = (Instant::now(), String::new());
        let mut told = BufReader::new(child.stdout.take().unwrap());
        told.read_line(&mut first).unwrap();
        assert!(
            start.elapsed() < AT_MOST * 2 && first.contains("engine"),
            "{:?}: {first:?}",
            start.elapsed()
        );
        drop(told);
        let _ = child.kill();
        let _ = child.wait();
    });
}

#[test]
fn doctor_names_a_hanging_configuration_and_cache() {
    Scene::play(|scene| {
        scene.frozen.stop();
        let at = |name: &str| scene.world.root().join(name);
        let start = Instant::now();
        let program = Program::new(&scene.world)
            .args(["doctor", "--json", "--config"])
            .args([at("mine.toml")]);
        let ran = program.env("PALISADE_CACHE", at("cache")).run().exits_with(7);
        assert!(start.elapsed() < DOCTOR + ITSELF, "it took {:?}: {ran:?}", start.elapsed());
        let checks = ran.json();
        let is_bad = |name: &str| {
            checks["checks"]
                .as_array()
                .unwrap()
                .iter()
                .any(|check| check["name"] == name && check["state"] == "bad")
        };
        assert!(["workspace", "cache", "configuration"].into_iter().all(is_bad), "{checks:#}");
    });
}

#[test]
fn doctor_names_a_hanging_plugin_directory_and_continues() {
    Scene::play(|scene| {
        let world = World::new();
        scene.frozen.stop();
        let start = Instant::now();
        let words = ["doctor", "--json", "--plugins"];
        let program = Program::new(&world).args(words).args([scene.world.root().join("folder")]);
        let ran = program.args(["--plugins", "/nowhere"]).run().exits_with(2);
        assert!(start.elapsed() < DOCTOR + ITSELF, "it took {:?}: {ran:?}", start.elapsed());
        let checks = ran.json();
        let checks = checks["checks"].as_array().unwrap().iter();
        let told: Vec<_> = checks
            .filter(|check| check["name"] == "plugins")
            .map(|check| &check["found"])
            .collect();
        let says = |words: &str| {
            told.iter().any(|found| found.as_str().is_some_and(|found| found.contains(words)))
        };
        assert!(
            says("folder`: its file system has not answered")
                && says("/nowhere")
                && says(" tools, "),
            "{told:?}"
        );
    });
}
