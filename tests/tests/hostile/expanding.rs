//! JSON that takes up to 90 times the memory of its text: in outputs, in inputs, and with little
//! address space.

use std::time::{Duration, Instant};

use palisade_tests::guest::HOSTILE_EXPAND;
use palisade_tests::oracle::{around, around_both, turn};
use palisade_tests::program::Ran;
use palisade_tests::sample::{Group, leaves_out};
use palisade_tests::{Case, Program, World, mcp::Client};
use serde_json::{Value, json};

use super::ENOUGH;

/// The number of elements in 3.5 MB of text, which take 329 MiB as values.
const MANY: usize = 499_000;
/// The number of elements in an input of 343 KB, which take 32 MiB as values.
const INPUT: usize = 49_000;

fn call(tool: &str, count: usize) -> Case {
    Case::new(HOSTILE_EXPAND, tool).input(json!({"count": count})).timeout(ENOUGH)
}

fn elements(count: usize) -> String {
    format!("[{}]", vec![r#"{"":0}"#; count].join(","))
}

#[test]
fn expanding_output_is_stored_as_text() {
    if leaves_out(&[Group::H]) {
        return;
    }
    let seen = around_both(&call("expand", MANY));
    assert!(seen.output() == elements(MANY), "{} bytes", seen.output().len());
}

#[test]
fn unordered_output_keys_are_sorted_within_the_bound() {
    if leaves_out(&[Group::E]) {
        return;
    }
    let seen = around(&call("shuffle", 300_000));
    let members: Vec<String> = (0..300_000).map(|key| format!("\"{key:06}\":0")).collect();
    assert!(seen.output() == format!("{{{}}}", members.join(",")), "{} bytes", seen.output().len());
}

#[test]
fn output_parsed_for_its_schema_uses_the_calls_memory() {
    if leaves_out(&[Group::B]) {
        return;
    }
    assert_eq!(around(&call("expand_promised", MANY)).limit(), "memory");
    assert_eq!(around(&call("expand_promised", 100_000).memory_mib(16)).limit(), "memory");
    assert_eq!(around(&call("expand_promised", 10_000)).output(), elements(10_000));
}

#[test]
fn expanding_input_counts_in_the_calls_memory() {
    if leaves_out(&[Group::A]) {
        return;
    }
    let input = |count: usize| {
        let text = format!("{{\"items\":{}}}", elements(count));
        Case::new(HOSTILE_EXPAND, "length").text(&text).timeout(ENOUGH)
    };
    assert_eq!(around(&input(INPUT)).output(), INPUT.to_string());
    assert_eq!(around(&input(INPUT).memory_mib(4)).limit(), "memory");
}

/// Returns the program with the guest.
fn with_guest(world: &World) -> Program<'_> {
    std::fs::copy(HOSTILE_EXPAND.file(), world.plugins().join("expand.wasm")).unwrap();
    Program::new(world).args(["--no-builtin", "--plugins"]).args([world.plugins()])
}

/// Runs a call with this much address space, in KiB.
#[track_caller]
fn called(kib: u32, words: &[&str]) -> Ran {
    let world = World::new();
    with_guest(&world)
        .args(["call"])
        .args(words.iter().copied())
        .limited(&format!("-v {kib}"))
        .run()
}

#[test]
fn call_in_512_mib_prints_an_expanding_output() {
    let _turn = turn();
    let input = json!({"count": MANY}).to_string();
    let ran = called(500_000, &["expand", &input]).exits_with(0);
    assert!(ran.stdout == elements(MANY), "{} bytes", ran.stdout.len());
    let ran = called(500_000, &["expand", &json!({"count": 100_000}).to_string(), "--json"])
        .exits_with(0);
    assert_eq!(ran.json()["content"][0]["json"].as_array().map(Vec::len), Some(100_000));
}

#[test]
fn call_in_512_mib_refuses_an_oversized_value() {
    let _turn = turn();
    let input = json!({"count": MANY}).to_string();
    let ran = called(500_000, &["expand_promised", &input, "--json"]).exits_with(7);
    let detail = &ran.json()["error"]["detail"];
    let bound = (&detail["limit"], &detail["value"]);
    let space = (&json!("address_space"), &json!(500_000 << 10));
    let memory = (&json!("memory"), &json!(128 << 20));
    assert!(bound == space || bound == memory, "{detail}");
}

#[test]
fn server_in_1_gib_answers_four_expanding_outputs_and_a_ping() {
    if leaves_out(&[Group::B]) {
        return;
    }
    let _turn = turn();
    for tool in ["expand", "expand_promised"] {
        let world = World::new();
        let mut client = Client::legacy(with_guest(&world).limited("-v 1000000"), &json!({}));
        let expand = json!({"name": tool, "arguments": {"count": MANY}});
        let ids: Vec<u64> = (0..4).map(|_| client.begin("tools/call", &expand)).collect();
        assert_eq!(client.request("ping", &json!({}))["result"], json!({}));
        for id in ids {
            let answer = said(&mut client, id);
            let class = &answer["result"]["_meta"]["dev.palisade/error"]["class"];
            let is_whole = text(&answer) == elements(MANY);
            assert!(
                is_whole || class == "resource_exhausted",
                "{tool}: {:.300}",
                answer.to_string()
            );
        }
        assert_eq!(client.request("ping", &json!({}))["result"], json!({}));
    }
}

/// The bound of the growth of a [`bounded`] server, in KiB.
const MOST_KIB: u64 = 600 << 10;

/// The memory of one output of 200,000 elements as a value, in KiB.
const ONE_KIB: u64 = 130 << 10;

/// Starts a server with many concurrent calls, which may hold 512 MiB together.
fn bounded(world: &World) -> Client {
    let folder = world.home().join(".config/palisade");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(
        folder.join("palisade.toml"),
        "[limits]\nconcurrency = 16\ntotal_memory = \"512MiB\"\n",
    )
    .unwrap();
    Client::legacy(with_guest(world), &json!({}))
}

/// Returns the next response, whichever request it answers.
fn response(client: &mut Client) -> Value {
    loop {
        let message = client.receive();
        if message.get("method").is_none() {
            return message;
        }
    }
}

/// Returns true if a call was refused for lack of memory.
fn is_exhausted(answer: &Value) -> bool {
    let class = &answer["result"]["_meta"]["dev.palisade/error"]["class"];
    class == "resource_exhausted" || answer["error"]["data"]["class"] == "resource_exhausted"
}

#[test]
fn expanding_inputs_are_bounded_together_and_released() {
    if leaves_out(&[Group::D]) {
        return;
    }
    let _turn = turn();
    let world = World::new();
    let mut client = bounded(&world);
    let small = json!({"name": "length", "arguments": {"items": [1, 2]}});
    assert_eq!(text(&client.request("tools/call", &small)), "2");
    let before = client.memory_kib("VmRSS:");
    let items: Value = serde_json::from_str(&elements(INPUT)).unwrap();
    let large = json!({"name": "length", "arguments": {"items": items}});
    let ids: Vec<u64> = (0..64).map(|_| client.begin("tools/call", &large)).collect();
    let answers: Vec<Value> = ids.iter().map(|_| response(&mut client)).collect();
    let done = answers.iter().filter(|answer| text(answer) == INPUT.to_string()).count();
    assert!(done > 0, "{:.300}", answers[0].to_string());
    assert_eq!(
        done + answers.iter().filter(|answer| is_exhausted(answer)).count(),
        64,
        "each is answered once"
    );
    let most = client.memory_kib("VmHWM:").saturating_sub(before);
    assert!(most < MOST_KIB, "{most} KiB more at once");
    comes_back(&client, before, 160 << 10);
    assert_eq!(text(&client.request("tools/call", &small)), "2");
}

#[test]
fn memory_of_expanding_outputs_is_released() {
    if leaves_out(&[Group::H]) {
        return;
    }
    let _turn = turn();
    let world = World::new();
    let mut client = bounded(&world);
    let call = |count: usize| json!({"name": "expand_promised", "arguments": {"count": count}});
    assert_eq!(text(&client.request("tools/call", &call(1))), elements(1));
    let before = client.memory_kib("VmRSS:");
    let ids: Vec<u64> = (0..32).map(|_| client.begin("tools/call", &call(200_000))).collect();
    let answers: Vec<Value> = ids.iter().map(|_| response(&mut client)).collect();
    let whole =
        answers.iter().filter(|answer| text(answer).len() == elements(200_000).len()).count();
    // Under load all of them may be refused, each for the memory that the others hold.
    assert_eq!(
        whole + answers.iter().filter(|answer| is_exhausted(answer)).count(),
        32,
        "each is answered once"
    );
    let most = client.memory_kib("VmHWM:").saturating_sub(before);
    assert!((ONE_KIB..MOST_KIB).contains(&most), "{most} KiB more at once");
    comes_back(&client, before, 160 << 10);
    assert_eq!(text(&client.request("tools/call", &call(200_000))).len(), elements(200_000).len());
}

/// Waits until the program holds at most `more` KiB beyond `before`. Freed pages are returned with
/// a delay.
#[track_caller]
fn comes_back(client: &Client, before: u64, more: u64) {
    let begun = Instant::now();
    let after = std::iter::repeat_with(|| client.memory_kib("VmRSS:").saturating_sub(before));
    let after =
        after.take_while(|_| begun.elapsed() < Duration::from_secs(10)).find(|after| *after < more);
    assert!(
        after.is_some(),
        "{} KiB more than before",
        client.memory_kib("VmRSS:").saturating_sub(before)
    );
}

#[track_caller]
fn said(client: &mut Client, id: u64) -> Value {
    match client.pending.iter().position(|message| message["id"] == id) {
        Some(place) => client.pending.remove(place),
        None => client.answer(id),
    }
}

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_default()
}
