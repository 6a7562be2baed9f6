//! `palisade log` shows what the journal has, also while the server writes it.

use crate::served;
use palisade_tests::api::{Api, write};
use palisade_tests::program::Ran;
use palisade_tests::{Program, World};
use serde_json::{Value, json};
use std::fs::OpenOptions;
use std::io::{BufRead as _, BufReader};

fn read(id: &str, path: &str) -> Value {
    json!({"tool": "read_file", "id": id, "turn_id": "t1", "input": {"path": path}})
}

/// Makes a read that succeeds, one that fails, and a write that is denied.
fn busy(world: &World) -> Api {
    world.file("a.txt", "text");
    let api = served(world, &[]);
    api.session("s2");
    assert_eq!(api.client.call("s1", &read("good", "a.txt"))["success"], true);
    assert_eq!(api.client.call("s2", &read("bad", "missing.txt"))["success"], false);
    let mut events = api.operator.events("/events");
    let call = api.client.begin_call("s1", &write("denied", "b.txt"));
    let question = events.of_call("tool.confirmation_requested", "denied");
    assert_eq!(api.operator.decide(&question, "deny").status, 200);
    let _ = call.join().unwrap();
    let _ = events.of_call("tool.failed", "denied");
    api
}

fn log(world: &World, words: &[&str]) -> Ran {
    Program::new(world).args(["log"]).args(words.to_vec()).run()
}

/// Returns the ids of the calls that these filters let through.
fn ids(world: &World, words: &[&str]) -> Vec<String> {
    let ran = log(world, &[words, &["--json"]].concat()).exits_with(0);
    let row = |line: &str| serde_json::from_str::<Value>(line).unwrap();
    ran.stdout.lines().map(|line| row(line)["call_id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn each_filter_shows_its_calls() {
    let world = World::new();
    let _api = busy(&world);
    for (words, expected) in [
        (&[][..], &["good", "bad", "denied"][..]),
        (&["--tool", "read_file"], &["good", "bad"]),
        (&["--class", "write"], &["denied"]),
        (&["--outcome", "succeeded"], &["good"]),
        (&["--outcome", "failed"], &["bad", "denied"]),
        (&["--outcome", "user_denied"], &["denied"]),
        (&["--session", "s2"], &["bad"]),
        (&["--search", "missing"], &["bad"]),
        (&["--limit", "1"], &["denied"]),
        (&["--since", "1h"], &["good", "bad", "denied"]),
        (&["--until", "1h"], &[]),
        (&["--tool", "read_file", "--session", "s1"], &["good"]),
    ] {
        assert_eq!(ids(&world, words), expected, "{words:?}");
    }
    let wrong = log(&world, &["--outcome", "nonsense"]).exits_with(2);
    wrong.stderr_contains(&["`nonsense` is no outcome", "user_denied"]);
}

#[test]
fn one_call_has_its_question_with_who_answered() {
    let world = World::new();
    let _api = busy(&world);
    let page = log(&world, &["denied", "--json"]).exits_with(0).json();
    let question = &page["confirmations"][0];
    let answer = (&question["decision"], &question["answered_by"]);
    assert_eq!(answer, (&json!("deny"), &json!("operator")), "{page}");
    assert!(page["input"]["text"].as_str().unwrap().contains("b.txt"), "{page}");
    assert_eq!((&page["class"], &page["plugin"]), (&json!("write"), &json!("files")), "{page}");
    let names: Vec<&str> =
        page["events"].as_array().unwrap().iter().filter_map(|it| it["event"].as_str()).collect();
    let expected = ["tool.confirmation_requested", "tool.confirmation_resolved", "tool.failed"];
    assert_eq!(names, expected);
    let text = log(&world, &["denied"]).exits_with(0).stdout;
    assert!(text.contains("deny by operator") && text.contains("user_denied"), "{text}");
    let by_beginning = log(&world, &["deni", "--json"]).exits_with(0).json();
    assert_eq!(by_beginning["call_id"], page["call_id"]);
    log(&world, &[""]).exits_with(3).stderr_contains(&["several calls", "`denied`"]);
    let missing = log(&world, &["nothing"]).exits_with(3);
    missing.stderr_contains(&["the journal has no call `nothing`"]);
}

#[test]
fn follow_prints_calls_as_they_end() {
    let world = World::new();
    let api = busy(&world);
    let words = ["log", "--follow", "--json", "--session", "s1", "--limit", "1"];
    let mut child = Program::new(&world).args(words).open();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(next()["call_id"], "denied", "what was there before");
    let _ = api.client.call("s2", &read("others", "a.txt"));
    let _ = api.client.call("s1", &read("new", "a.txt"));
    let row = next();
    assert_eq!((&row["call_id"], &row["state"]), (&json!("new"), &json!("succeeded")), "{row}");
    child.kill().unwrap();
    let _ = child.wait();
}

#[test]
fn unwritable_output_about_a_server_is_1() {
    let world = World::new();
    let api = busy(&world);
    let url = format!("http://{}", api.endpoint.address);
    for words in [
        &["log"][..],
        &["log", "--json"],
        &["log", "denied"],
        &["log", "denied", "--json"],
        &["console", &url],
        &["watch", &url, "--json", "--after", "0"],
    ] {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let ran = Program::new(&world).args(words.to_vec()).stdout(full).run_into();
        assert_eq!(ran.code, 1, "{words:?}: {ran:?}");
        ran.stderr_contains(&["error:", "No space left on device"]);
    }
}

/// Runs of `call` at the same time share the file, one after the other.
#[test]
fn calls_without_a_server_are_recorded_if_the_settings_say_so() {
    let world = World::new();
    world.file("a.txt", "text");
    let state = world.home().join(".local/state/palisade/journal");
    let call = || {
        let input = r#"{"path": "a.txt"}"#;
        Program::new(&world).args(["call", "read_file", input]).run().exits_with(0)
    };
    call();
    assert!(!state.join("calls.db").exists(), "not unless the settings say so");
    let settings = world.home().join(".config/palisade");
    std::fs::create_dir_all(&settings).unwrap();
    std::fs::write(settings.join("palisade.toml"), "[journal]\ncalls = true\n").unwrap();
    std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(call))));
    let file = state.join("calls.db");
    let recorded = ids(&world, &["--journal", file.to_str().unwrap(), "--outcome", "succeeded"]);
    assert_eq!(recorded.len(), 4, "{recorded:?}");
}

#[test]
fn without_a_journal_it_says_who_keeps_one() {
    let world = World::new();
    let ran = log(&world, &[]).exits_with(3);
    ran.stderr_contains(&["there is no journal", "`palisade serve --http`"]);
}

/// A journal has one writer, and a person may serve two workspaces.
#[test]
fn second_server_records_into_a_file_of_its_own() {
    let world = World::new();
    let first = busy(&world);
    let second = served(&world, &[]);
    let mut events = second.operator.events("/events");
    assert_eq!(second.client.call("s1", &read("beside", "a.txt"))["success"], true);
    // An event is sent when it is recorded. The servers are killed below.
    let _ = events.of_call("tool.completed", "beside");
    drop((first, second));
    let other = world.home().join(".local/state/palisade/journal/journal-2.db");
    assert_eq!(ids(&world, &["--journal", other.to_str().unwrap()]), ["beside"]);
    assert!(!ids(&world, &[]).contains(&"beside".to_owned()));
}
