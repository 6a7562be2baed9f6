//! Results that grow when they are serialized: JSON escapes each control character as six bytes.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use palisade_tests::mcp::{LEGACY, MODERN, modern};
use palisade_tests::mcp_http::{Endpoint, answer};
use palisade_tests::oracle::{Peak, turn};
use palisade_tests::program::Ran;
use palisade_tests::sample::{Group, leaves_out, sample_of};
use palisade_tests::{Program, World};
use serde_json::{Value, json};

use super::raw;

/// The longest result, in bytes. Its JSON takes 24 MiB.
const LENGTH: usize = 4 << 20;
/// The number of calls in one reply. Their results take 240 MiB.
const CALLS: usize = 60;
/// The number of calls with unread answers.
const UNREAD: usize = 60;
/// The same over HTTP, with a connection for each call.
const UNREAD_CONNECTIONS: usize = 30;
/// The number of blocks of a result that is small as text, and large in memory.
const BLOCKS: u32 = 100_000;
/// The limit on the memory of all calls together, in bytes.
const TOTAL: usize = 512 << 20;
/// The program's own memory beside that, in bytes: allocator overhead and buffers.
const BESIDE: usize = 64 << 20;

/// Creates a world with a plugin that returns control characters.
fn world() -> World {
    world_of(1)
}

/// Creates a world with a plugin that returns this byte many times.
fn world_of(byte: u8) -> World {
    let (world, far) = (World::new(), 131_072);
    let fill = format!(
        "(drop (memory.grow (i32.const 100))) (memory.fill (i32.const {far}) (i32.const {byte}) (i32.const {LENGTH}))"
    );
    let plugin = raw().answering_block(&fill, 0, far, u32::try_from(LENGTH).unwrap());
    std::fs::write(world.plugins().join("raw.wasm"), plugin.build()).unwrap();
    world
}

fn program(world: &World) -> Program<'_> {
    Program::new(world).args(["--no-builtin", "--plugins"]).args([world.plugins()])
}

/// Returns a program with a limit on the memory of all calls together.
fn bounded(world: &World) -> Program<'_> {
    let folder = world.home().join(".config/palisade");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(
        folder.join("palisade.toml"),
        format!("[limits]\ntotal_memory = \"{TOTAL}B\"\n"),
    )
    .unwrap();
    program(world)
}

fn call() -> Value {
    json!({"name": "raw", "arguments": {}})
}

/// Returns true if an answer is the whole result; checks that any other answer reports missing
/// memory. In a short address space, queued answers can also leave no room for a guest.
#[track_caller]
fn is_whole(answer: &Value) -> bool {
    let class = &answer["result"]["_meta"]["dev.palisade/error"]["class"];
    if class == "resource_exhausted" {
        let limit = &answer["result"]["_meta"]["dev.palisade/error"]["detail"]["limit"];
        assert!(
            ["memory", "total_memory", "address_space", "sandboxes"]
                .iter()
                .any(|known| limit == known),
            "{limit}"
        );
        return false;
    }
    let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
    assert!(
        text.len() == LENGTH && text.bytes().all(|byte| byte == 1),
        "{:.300}",
        answer.to_string()
    );
    true
}

#[test]
fn call_in_a_small_address_space_prints_a_growing_answer() {
    if leaves_out(&[Group::B]) {
        return;
    }
    let _turn = turn();
    for limit in ["-v 300000", "-v 500000", "-v 600000", "-d 300000", "-d 600000"] {
        let world = world();
        let ran: Ran = program(&world)
            .args(["call", "raw", "{}", "--json"])
            .limited(limit)
            .run()
            .exits_with(0);
        let result = ran.json();
        for text in [&result["output"], &result["content"][0]["text"]] {
            assert_eq!(text.as_str().map(str::len), Some(LENGTH));
        }
    }
}

#[test]
fn reply_results_are_printed_in_a_small_address_space() {
    if leaves_out(&[Group::A]) {
        return;
    }
    let _turn = turn();
    let used = |id: usize| json!({"type": "tool_use", "id": format!("call-{id}"), "name": "raw", "input": {}});
    let reply = json!({"role": "assistant", "content": (0..CALLS).map(used).collect::<Vec<_>>()});
    let world = world_of(b'a');
    let dispatch =
        program(&world).args(["dispatch", "--from", "anthropic"]).stdin(reply.to_string());
    let messages = dispatch.limited("-v 300000").run().exits_with(0).json();
    let blocks = messages[0]["content"].as_array().unwrap();
    let text = |block: &Value| block["content"][0]["text"].as_str().unwrap_or_default().to_owned();
    let (whole, refused): (Vec<_>, Vec<_>) =
        blocks.iter().partition(|block| text(block).len() == LENGTH);
    let is_refused = |block: &&Value| text(block).starts_with("resource_exhausted: ");
    assert_eq!(refused.iter().find(|block| !is_refused(block)).map(|block| text(block)), None);
    assert!(
        whole.len() >= 10 && blocks.len() == CALLS,
        "{} of {} are whole",
        whole.len(),
        blocks.len()
    );
}

/// Returns the peak memory of a call up to the first byte of its result, in bytes.
fn held_when_it_prints(words: &[&str]) -> usize {
    let world = world();
    let mut child = program(&world).args(["call", "raw", "{}"]).args(words.to_vec()).open();
    let mut output = child.stdout.take().unwrap();
    output.read_exact(&mut [0]).unwrap();
    let held = Peak::so_far(child.id());
    output.read_to_end(&mut Vec::new()).unwrap();
    assert!(child.wait().unwrap().success());
    held
}

#[test]
fn growing_answer_is_printed_without_a_copy() {
    let _turn = turn();
    let (text, json) = (held_when_it_prints(&[]), held_when_it_prints(&["--json"]));
    assert!(json < text + (8 << 20), "{} MiB as JSON, {} MiB as text", json >> 20, text >> 20);
}

/// Waits until the events report the end of `calls` calls.
#[track_caller]
fn all_ended(events: &Path, calls: usize) {
    let begun = Instant::now();
    let ended =
        |line: &&str| ["tool.completed", "tool.failed"].iter().any(|name| line.contains(name));
    let count =
        || std::fs::read_to_string(events).unwrap_or_default().lines().filter(ended).count();
    while count() < calls {
        assert!(begun.elapsed() < Duration::from_secs(120), "{} of {calls} have ended", count());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits until the program uses no more CPU time: every answer that fits in memory is serialized.
#[track_caller]
fn stands_still(process: u32) {
    let spent = || {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
        let fields: Vec<String> =
            stat.rsplit_once(") ").unwrap().1.split(' ').map(str::to_owned).collect();
        (fields[11].clone(), fields[12].clone())
    };
    let (begun, mut before) = (Instant::now(), spent());
    loop {
        std::thread::sleep(Duration::from_millis(500));
        let now = spent();
        if now == before {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(120), "it computes endlessly");
        before = now;
    }
}

/// Returns the answers to `calls` calls, which are read only after all calls have ended, and the
/// program's growth in memory.
#[track_caller]
fn unread(world: &World, program: Program<'_>, calls: usize) -> (Vec<Value>, usize) {
    let events = world.outer().join("events.jsonl");
    let mut child = program.args(["serve", "--events"]).args([&events]).open();
    let (mut input, output) =
        (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    let peak = Peak::of_process(child.id());
    let begin = |id: usize| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": modern(call(), &json!({}))});
    let messages: String = (1..=calls).map(|id| format!("{}\n", begin(id))).collect();
    input.write_all(messages.as_bytes()).unwrap();
    all_ended(&events, calls);
    stands_still(child.id());
    let read = |line: std::io::Result<String>| serde_json::from_str(&line.unwrap()).unwrap();
    let answers: Vec<Value> = output.lines().take(calls).map(read).collect();
    let mut ids: Vec<u64> = answers.iter().filter_map(|answer| answer["id"].as_u64()).collect();
    ids.sort_unstable();
    assert_eq!(ids, (1..=calls as u64).collect::<Vec<_>>(), "each is answered once");
    let growth = peak.growth();
    drop(input);
    assert!(child.wait().unwrap().success());
    (answers, growth)
}

/// Checks that some answers are whole and the others report missing memory.
#[track_caller]
fn some_are_whole(answers: &[Value]) {
    let whole = answers.iter().filter(|answer| is_whole(answer)).count();
    assert!((1..answers.len()).contains(&whole), "{whole} are whole");
}

#[test]
fn server_in_1_gib_answers_forty_unread_growing_calls() {
    if leaves_out(&[Group::D]) {
        return;
    }
    let _turn = turn();
    for limit in ["-v 1000000", "-d 600000"] {
        let world = world();
        let (answers, _) = unread(&world, program(&world).limited(limit), 40);
        some_are_whole(&answers);
    }
}

#[test]
fn unread_answers_are_bounded_together() {
    if leaves_out(&[Group::C]) {
        return;
    }
    let _turn = turn();
    let world = world();
    let (answers, growth) = unread(&world, bounded(&world), UNREAD);
    some_are_whole(&answers);
    assert!(growth < TOTAL + BESIDE, "{} MiB", growth >> 20);
}

/// Creates a world with a plugin that returns many empty blocks.
fn world_of_blocks() -> World {
    let (world, far) = (World::new(), 131_072);
    // Memory is zero at first, and so is each block: an empty text.
    let answer = [(260, far), (264, BLOCKS), (268, 1)];
    let plugin = raw().answering("(drop (memory.grow (i32.const 100)))", &answer);
    std::fs::write(world.plugins().join("raw.wasm"), plugin.build()).unwrap();
    world
}

/// The form of a request over HTTP.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Way {
    /// A plain call of the current revision.
    Plain,
    /// A call with a progress token, so that the protocol library serializes the answer.
    WithProgress,
    /// A call in a session of the previous revision, answered as an event.
    Session,
}

/// Returns the answers to calls over HTTP, which are read only after all calls have ended, and the
/// program's growth in memory.
#[track_caller]
fn unread_over_http(world: &World, way: Way) -> (Vec<Value>, usize) {
    let events = world.outer().join("events.jsonl");
    let words = ["--events", events.to_str().unwrap()];
    let endpoint = Endpoint::start(bounded(world), &words);
    let peak = Peak::of_process(endpoint.child().id());
    let session = if way == Way::Session { session(&endpoint) } else { String::new() };
    let request = |id: usize| {
        let mut params = call();
        if way == Way::WithProgress {
            params["_meta"] = json!({"progressToken": id});
        }
        let params = if way == Way::Session { params } else { modern(params, &json!({})) };
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
    };
    let headers = match way {
        Way::Session => vec![("Mcp-Session-Id", session.as_str())],
        _ => vec![
            ("MCP-Protocol-Version", MODERN),
            ("Mcp-Method", "tools/call"),
            ("Mcp-Name", "raw"),
        ],
    };
    let begun: Vec<_> =
        (1..=UNREAD_CONNECTIONS).map(|id| endpoint.begin("POST", &headers, &request(id))).collect();
    all_ended(&events, UNREAD_CONNECTIONS);
    stands_still(endpoint.child().id());
    let answers = begun.into_iter().map(|socket| answer(socket).message()).collect();
    (answers, peak.growth())
}

/// Opens a session of the previous revision.
fn session(endpoint: &Endpoint) -> String {
    let info = json!({"name": "suite", "version": "1"});
    let params = json!({"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": info});
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    let id = endpoint.post(&[], &hello).header("mcp-session-id").expect("a session").to_owned();
    let told = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(endpoint.post(&[("Mcp-Session-Id", &id)], &told).status, 202);
    id
}

#[test]
fn unread_http_answers_are_bounded_together() {
    if leaves_out(&[Group::F]) {
        return;
    }
    let _turn = turn();
    let ways = [Way::Plain, Way::WithProgress, Way::Session];
    for way in &ways[..sample_of(3, 1)] {
        let (answers, growth) = unread_over_http(&world(), *way);
        some_are_whole(&answers);
        assert!(growth < TOTAL + BESIDE, "{way:?}: {} MiB", growth >> 20);
    }
}

/// Returns the number of answers that have all blocks.
fn count_with_all_blocks(answers: &[Value]) -> usize {
    let blocks = |answer: &Value| answer["result"]["content"].as_array().map_or(0, Vec::len);
    answers.iter().filter(|answer| blocks(answer) == BLOCKS as usize).count()
}

#[test]
fn unread_answers_of_many_small_blocks_are_bounded_together() {
    if leaves_out(&[Group::G]) {
        return;
    }
    let _turn = turn();
    let world = world_of_blocks();
    let (answers, growth) = unread(&world, bounded(&world), UNREAD);
    assert!(count_with_all_blocks(&answers) > 0, "{:.300}", answers[0].to_string());
    assert!(growth < TOTAL + BESIDE, "{} MiB", growth >> 20);
    let ways = [Way::Session, Way::Plain, Way::WithProgress];
    for way in &ways[..sample_of(3, 1)] {
        let (answers, growth) = unread_over_http(&world_of_blocks(), *way);
        let whole = count_with_all_blocks(&answers);
        assert!(whole > 0, "{way:?}: {:.300}", answers[0].to_string());
        assert!(growth < TOTAL + BESIDE, "{way:?}: {} MiB", growth >> 20);
    }
}
