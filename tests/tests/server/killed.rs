//! A server that is killed at a random moment has lost nothing that anybody saw, and claims of no
//! call that it ended if it did not. `PALISADE_KILLS` sets the number of runs.

use crate::rounds;
use palisade_tests::api::{Api, Sender};
use palisade_tests::dice::Dice;
use palisade_tests::event_stream::StreamEvent;
use palisade_tests::{Program, World};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::thread::JoinHandle;
use std::time::Duration;

const SEED: u64 = 2_100;
/// The number of clients that write at the same time.
const WRITERS: usize = 3;

/// Writes files until the server is gone, and returns the calls whose results came.
fn write_until_killed(client: Sender, writer: usize) -> JoinHandle<Vec<String>> {
    std::thread::spawn(move || {
        let mut acknowledged = Vec::new();
        for number in 0.. {
            let id = format!("w{writer}-{number}");
            let call =
                json!({"tool": "write_file", "id": id, "input": {"path": id, "content": id}});
            match client.try_post("/sessions/s1/calls", &call) {
                Some(answer) if answer.status == 200 => {
                    let Ok(result) = serde_json::from_str::<Value>(&answer.body) else { break };
                    assert_eq!(result["success"], true, "{result}");
                    acknowledged.push(id);
                }
                _ => break,
            }
        }
        acknowledged
    })
}

/// Reads events until the server is gone.
fn read_until_killed(api: &Api) -> JoinHandle<Vec<StreamEvent>> {
    let mut stream = api.operator.events("/events?after=0&observer=true");
    std::thread::spawn(move || std::iter::from_fn(|| stream.next_event()).collect())
}

/// Returns the journal's calls by their ids.
fn logged(world: &World) -> BTreeMap<String, Value> {
    let ran = Program::new(world).args(["log", "--json", "--limit", "100000"]).run().exits_with(0);
    let rows = ran.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    rows.map(|row| (row["call_id"].as_str().unwrap().to_owned(), row)).collect()
}

fn kill_and_look(time: Duration) {
    let world = World::new();
    let words = ["--allow", "write"];
    let api = Api::start(&world, &words);
    api.session("s1");
    let reader = read_until_killed(&api);
    let writers: Vec<_> =
        (0..WRITERS).map(|writer| write_until_killed(api.client.clone(), writer)).collect();
    std::thread::sleep(time);
    api.signal(Signal::KILL);
    let acknowledged: Vec<String> =
        writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect();
    let seen = reader.join().unwrap();
    drop(api);
    // The next server opens the same journal.
    let api = Api::start(&world, &words);
    let rows = logged(&world);
    for id in &acknowledged {
        assert!(rows.contains_key(id), "a call with a result is not in the journal: {id}");
    }
    for entry in std::fs::read_dir(world.root()).unwrap().flatten() {
        let id = entry.file_name().into_string().unwrap();
        // A write goes to a temporary file first.
        if id.starts_with('w') {
            assert!(rows.contains_key(&id), "a call that ran is not in the journal: {id}");
        }
    }
    for (id, row) in &rows {
        match row["state"].as_str().unwrap() {
            "succeeded" => {
                assert_eq!(world.read(id).as_deref(), Some(&**id), "it did not end: {row}");
            }
            "unknown" => assert!(row["ended_at"].is_null(), "{row}"),
            state => panic!("{state} after the death of the server: {row}"),
        }
    }
    let mut kept = api.operator.events("/events?after=0&observer=true");
    for event in &seen {
        assert_eq!(
            kept.next_event().as_ref(),
            Some(event),
            "an event that was seen is lost or changed"
        );
        let id = event.json()["tool_use_id"].as_str().map(str::to_owned);
        if let Some(id) = id.filter(|_| event.name == "tool.completed") {
            assert_eq!(rows[&id]["state"], "succeeded", "{event:?}");
        }
    }
}

#[test]
fn server_killed_at_any_moment_loses_nothing_that_was_seen() {
    let mut dice = Dice::new(SEED);
    for _ in 0..rounds("PALISADE_KILLS", 5) {
        kill_and_look(Duration::from_micros(dice.roll(400_000) as u64));
    }
}

#[test]
fn call_that_ran_when_the_server_was_killed_is_unknown() {
    let world = World::new();
    let words = ["--allow", "execute"];
    let api = Api::start(&world, &words);
    api.session("s1");
    let input = json!({"command": "echo begun > begun; sleep 1000"});
    let call = json!({"tool": "shell", "id": "c1", "input": input});
    let client = api.client.clone();
    let running = std::thread::spawn(move || client.try_post("/sessions/s1/calls", &call));
    world.wait_for("begun");
    assert_eq!(logged(&world)["c1"]["state"], "running", "it is recorded before it ends");
    api.signal(Signal::KILL);
    assert!(running.join().unwrap().is_none(), "there is no result");
    drop(api);
    let _next = Api::start(&world, &words);
    let row = logged(&world).remove("c1").unwrap();
    assert_eq!((&row["state"], &row["ended_at"]), (&json!("unknown"), &Value::Null), "{row}");
}
