//! A stream of events that is cut at random places and resumed has each event once and in order.
//! `PALISADE_STREAM_CUTS` sets the number of cuts.

use crate::{rounds, served};
use palisade_tests::World;
use palisade_tests::api::{Api, Sender};
use palisade_tests::dice::Dice;
use palisade_tests::event_stream::{EventStream, StreamEvent};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

const SEED: u64 = 21;
/// The call after which no event is of interest.
const LAST: &str = "last";

fn is_last(event: &StreamEvent) -> bool {
    event.name == "tool.completed" && event.json()["tool_use_id"] == LAST
}

/// Reads to the end of the last call.
fn read_all(stream: &mut EventStream, events: &mut Vec<StreamEvent>) {
    while !events.last().is_some_and(is_last) {
        events.push(stream.next_event().unwrap());
    }
}

/// Reads a stream that is cut at random places, and resumed each time after its last place.
fn read_in_pieces(api: &Api, path: &str, cuts: usize, events: &mut Vec<StreamEvent>) -> String {
    let mut dice = Dice::new(SEED);
    let mut last = "0".to_owned();
    for _ in 0..cuts {
        let mut stream = api.client.clone().with("Last-Event-ID", &last).events(path);
        let mut wanted = dice.roll(3_000);
        while wanted > 0 {
            let read = stream.read(wanted);
            assert!(read > 0, "the server ends the stream");
            wanted -= read;
        }
        // An incomplete event is lost, as in a browser.
        events.extend(std::iter::from_fn(|| stream.take_event()));
        if !stream.last().is_empty() {
            stream.last().clone_into(&mut last);
        }
    }
    last
}

/// Makes calls until it is enough, and then the last one.
fn call_until(client: Sender, enough: Arc<AtomicBool>) -> JoinHandle<()> {
    let read = |id: &str| json!({"tool": "read_file", "id": id, "input": {"path": "a.txt"}});
    std::thread::spawn(move || {
        let mut number = 0;
        while !enough.load(Ordering::Relaxed) {
            let _ = client.call("s1", &read(&format!("c{number}")));
            number += 1;
        }
        let _ = client.call("s1", &read(LAST));
    })
}

#[test]
fn stream_cut_anywhere_loses_and_doubles_nothing() {
    let world = World::new();
    world.file("a.txt", "text");
    let api = served(&world, &[]);
    let cuts = rounds("PALISADE_STREAM_CUTS", 100);
    let path = "/sessions/s1/events";
    let enough = Arc::new(AtomicBool::new(false));
    let caller = call_until(api.client.clone(), enough.clone());
    let mut pieces = Vec::new();
    let last = read_in_pieces(&api, path, cuts, &mut pieces);
    enough.store(true, Ordering::Relaxed);
    let mut rest = api.client.clone().with("Last-Event-ID", &last).events(path);
    read_all(&mut rest, &mut pieces);
    caller.join().unwrap();
    let mut whole = Vec::new();
    read_all(&mut api.client.events(&format!("{path}?after=0")), &mut whole);
    assert!(whole.len() > cuts, "{} events", whole.len());
    assert_eq!(pieces.len(), whole.len());
    assert_eq!(pieces, whole);
}

#[test]
fn place_that_the_journal_never_had_begins_with_a_gap() {
    let world = World::new();
    let api = served(&world, &[]);
    let mut stream = api.operator.events("/events?after=999999");
    let first = stream.next_event().unwrap();
    assert_eq!((first.name.as_str(), first.id.as_str()), ("journal.gap", ""), "{first:?}");
}
