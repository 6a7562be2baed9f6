//! Requests that make the server hold memory before they are understood, or after they are
//! answered: bodies that never end, and floods of inputs that expand when they are parsed.

use std::io::Write as _;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use palisade_tests::dice::Dice;
use palisade_tests::guest::HOSTILE_EXPAND;
use palisade_tests::mcp::{Client, MODERN, modern};
use palisade_tests::mcp_http::{Answer, Endpoint, answer};
use palisade_tests::oracle::{Peak, turn};
use palisade_tests::sample::{Group, leaves_out, sample_of};
use palisade_tests::{Program, World};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::raw;

/// The longest body, in bytes.
const BODY: usize = 2 << 20;
/// The number of unfinished bodies.
const BODIES: usize = 150;
/// The memory that the bodies of one address may take, in bytes.
const BODIES_OF_ADDRESS: usize = 128 << 20;
/// The length of an input of a flood, in bytes. As a value it takes 23 MB.
const INPUT: usize = 180_000;
/// The limit on the memory of all calls together, in bytes. Without it, a flood takes more.
const TOTAL: usize = 1 << 30;
/// The program's own memory beside that, in bytes: allocator overhead and buffers.
const BESIDE: usize = 192 << 20;
/// The memory that a server may keep after a flood, in bytes.
const KEPT: usize = 100 << 20;
/// The time after which a flood has left nothing.
const SETTLED: Duration = Duration::from_secs(8);

/// Creates a world with a plugin whose inputs expand, and one that needs 50 MiB.
fn world() -> World {
    let world = World::new();
    std::fs::copy(HOSTILE_EXPAND.file(), world.plugins().join("expand.wasm")).unwrap();
    let large = "(if (i32.eq (memory.grow (i32.const 800)) (i32.const -1)) (then unreachable)) \
                 (memory.fill (i32.const 131072) (i32.const 1) (i32.const 50000000)) {done}";
    std::fs::write(world.plugins().join("raw.wasm"), raw().execute(large).build()).unwrap();
    let folder = world.home().join(".config/palisade");
    std::fs::create_dir_all(&folder).unwrap();
    let limits = format!("[limits]\ntotal_memory = \"{TOTAL}B\"\n");
    std::fs::write(folder.join("palisade.toml"), limits).unwrap();
    world
}

fn program(world: &World) -> Program<'_> {
    Program::new(world).args(["--no-builtin", "--plugins"]).args([world.plugins()])
}

fn message(tool: &str, arguments: &Value) -> Value {
    let params = modern(json!({"name": tool, "arguments": arguments}), &json!({}));
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
}

fn headers(tool: &str) -> [(&str, &str); 3] {
    [("MCP-Protocol-Version", MODERN), ("Mcp-Method", "tools/call"), ("Mcp-Name", tool)]
}

/// Returns an input whose value takes 130 times the memory of its text: objects of one member, to
/// seeded depths.
fn nested(dice: &mut Dice) -> Value {
    let mut items = Vec::new();
    let mut length = 0;
    while length < INPUT {
        let depth = 1 + dice.roll(60);
        items.push((0..depth).fold(json!(0), |inner, _| json!({"": inner})));
        length += 6 * depth + 2;
    }
    json!({"items": items})
}

/// Calls the plugin that needs 50 MiB, until it succeeds.
#[track_caller]
fn large_guest_finds_room(endpoint: &Endpoint) {
    let begun = Instant::now();
    loop {
        let answer = endpoint.post(&headers("raw"), &message("raw", &json!({})));
        if answer.status == 200 && answer.message()["result"]["isError"] == false {
            return;
        }
        assert!(begun.elapsed() < SETTLED, "{answer:?}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Waits until the server holds little more than before.
#[track_caller]
fn settles(peak: &Peak) {
    let begun = Instant::now();
    while peak.left() > KEPT {
        assert!(begun.elapsed() < SETTLED, "{} MiB are left", peak.left() >> 20);
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Begins a request whose body lacks its end. The server reads the rest meanwhile, or turns the
/// request away.
fn unfinished(endpoint: &Endpoint, dice: &mut Dice) -> TcpStream {
    let mut socket = TcpStream::connect(&endpoint.address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let is_chunked = dice.roll(2) == 0;
    let length = match is_chunked {
        true => "Transfer-Encoding: chunked".to_owned(),
        false => format!("Content-Length: {BODY}"),
    };
    let mut head = format!("POST /mcp HTTP/1.1\r\nHost: {}\r\n{length}\r\n", endpoint.address);
    head.push_str("Content-Type: application/json\r\nAccept: application/json\r\n\r\n");
    if is_chunked {
        head.push_str(&format!("{BODY:x}\r\n"));
    }
    let body = vec![b' '; BODY - 1 - dice.roll(BODY / 64)];
    // The server closes the connection of a request that it turned away.
    let _ = socket.write_all(head.as_bytes()).and_then(|()| socket.write_all(&body));
    socket
}

/// Returns the answer of a request that was turned away; `None` if its connection was reset.
fn turned_away(socket: TcpStream) -> Option<Answer> {
    socket.peek(&mut [0]).ok().filter(|read| *read > 0).map(|_| answer(socket))
}

#[test]
fn unfinished_bodies_are_bounded_in_a_small_address_space() {
    if leaves_out(&[Group::D]) {
        return;
    }
    let _turn = turn();
    let world = world();
    let endpoint = Endpoint::start(program(&world).limited("-v 500000"), &[]);
    large_guest_finds_room(&endpoint);
    let peak = Peak::of_process(endpoint.child().id());
    let mut dice = Dice::new(7);
    let mut sockets: Vec<_> = (0..BODIES).map(|_| unfinished(&endpoint, &mut dice)).collect();
    let begun = Instant::now();
    while peak.growth() < BODIES_OF_ADDRESS / 4 {
        assert!(begun.elapsed() < SETTLED, "{} MiB", peak.growth() >> 20);
        std::thread::sleep(Duration::from_millis(10));
    }
    let last = sockets.split_off(BODIES - 40);
    let answers: Vec<_> = last.into_iter().filter_map(turned_away).collect();
    let (late, refused): (Vec<_>, Vec<_>) =
        answers.into_iter().partition(|answer| answer.status == 408);
    assert!(refused.len() > 20, "{} are refused and {} are late", refused.len(), late.len());
    let growth = peak.growth();
    assert!(growth < BODIES_OF_ADDRESS + (64 << 20), "{} MiB", growth >> 20);
    drop(sockets);
    large_guest_finds_room(&endpoint);
    may_come_again(&refused);
    kill_process(Pid::from_child(endpoint.child()), Signal::TERM).unwrap();
    endpoint.end().stderr_contains(&["turned away a request from 127.0.0.1: "]);
}

/// Sends a flood of calls with inputs that expand. Returns the refusals.
#[track_caller]
fn flood(endpoint: &Endpoint) -> Vec<Answer> {
    let mut dice = Dice::new(11);
    let body = message("length", &nested(&mut dice)).to_string();
    let length = sample_of(200, 100);
    let sent: Vec<_> =
        (0..length).map(|_| endpoint.begin("POST", &headers("length"), &body)).collect();
    let answers: Vec<Answer> = sent.into_iter().map(answer).collect();
    let refused: Vec<_> = answers.into_iter().filter(|answer| answer.status != 200).collect();
    assert!(refused.len() < length, "{:?}", refused[0]);
    refused
}

/// Checks that requests without room were told to come again.
#[track_caller]
fn may_come_again(refused: &[Answer]) {
    for answer in refused {
        assert_eq!((answer.status, answer.header("retry-after")), (503, Some("1")), "{answer:?}");
        assert!(answer.body.contains("resource_exhausted"), "{answer:?}");
    }
}

#[test]
fn memory_of_a_flood_over_http_is_released() {
    if leaves_out(&[Group::E]) {
        return;
    }
    let _turn = turn();
    let world = world();
    let endpoint = Endpoint::start(program(&world), &[]);
    large_guest_finds_room(&endpoint);
    let peak = Peak::of_process(endpoint.child().id());
    let refused = flood(&endpoint);
    let growth = peak.growth();
    assert!((TOTAL / 4..TOTAL + BESIDE).contains(&growth), "{} MiB", growth >> 20);
    settles(&peak);
    large_guest_finds_room(&endpoint);
    may_come_again(&refused);
}

#[test]
fn large_guest_finds_room_after_a_flood_in_a_small_address_space() {
    if leaves_out(&[Group::H]) {
        return;
    }
    let _turn = turn();
    for limit in ["-v 500000", "-v 1000000"] {
        let world = world();
        let endpoint = Endpoint::start(program(&world).limited(limit), &[]);
        large_guest_finds_room(&endpoint);
        let peak = Peak::of_process(endpoint.child().id());
        let refused = flood(&endpoint);
        large_guest_finds_room(&endpoint);
        settles(&peak);
        may_come_again(&refused);
    }
}

#[test]
fn memory_of_a_flood_over_stdio_is_released() {
    if leaves_out(&[Group::B]) {
        return;
    }
    let _turn = turn();
    let world = world();
    let mut client = Client::legacy(program(&world), &json!({}));
    let small = json!({"name": "length", "arguments": {"items": [1, 2]}});
    let answer = client.request("tools/call", &small);
    assert_eq!(answer["result"]["content"][0]["text"], "2", "{answer}");
    let peak = Peak::of_process(client.process());
    let call = json!({"name": "length", "arguments": nested(&mut Dice::new(11))});
    for _ in 0..sample_of(4, 2) {
        let ids: Vec<u64> = (0..50).map(|_| client.begin("tools/call", &call)).collect();
        ids.iter().for_each(|_| drop(client.receive()));
    }
    let growth = peak.growth();
    assert!((TOTAL / 16..TOTAL + BESIDE).contains(&growth), "{} MiB", growth >> 20);
    settles(&peak);
    assert_eq!(client.request("tools/call", &small)["result"]["content"][0]["text"], "2");
}

/// Begins a session and returns its id.
fn begin_session(endpoint: &Endpoint) -> String {
    let begun = endpoint.post(&[], &hello(&json!({})));
    let id = begun.header("mcp-session-id").expect("a session").to_owned();
    let told = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(endpoint.post(&[("Mcp-Session-Id", &id)], &told).status, 202);
    id
}

/// Sessions take messages through the protocol library, which parses each one again.
#[test]
fn large_messages_of_sessions_fit_in_a_small_address_space() {
    if leaves_out(&[Group::C]) {
        return;
    }
    let _turn = turn();
    let world = world();
    let endpoint = Endpoint::start(program(&world).limited("-v 500000"), &[]);
    large_guest_finds_room(&endpoint);
    let sessions: Vec<_> = (0..8).map(|_| begin_session(&endpoint)).collect();
    let items = Value::from(vec![json!({"": 0}); 16_000]);
    for _ in 0..3 {
        let send = |id: usize| {
            let headers = [("Mcp-Session-Id", sessions[id % sessions.len()].as_str())];
            let params = json!({"name": "length", "arguments": {"items": items}});
            let call =
                json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
            endpoint.begin("POST", &headers, &call.to_string())
        };
        let sent: Vec<_> = (0..60).map(send).collect();
        let answers: Vec<Answer> = sent.into_iter().map(answer).collect();
        let refused: Vec<_> = answers.into_iter().filter(|answer| answer.status != 200).collect();
        may_come_again(&refused);
    }
    large_guest_finds_room(&endpoint);
}

fn hello(experimental: &Value) -> Value {
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {"experimental": experimental},
        "clientInfo": {"name": "flood", "version": "1"},
    });
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
}

/// The protocol library keeps the message as long as the session.
#[test]
fn session_begins_with_a_small_message() {
    if leaves_out(&[Group::D]) {
        return;
    }
    let _turn = turn();
    let world = world();
    let endpoint = Endpoint::start(program(&world).limited("-v 500000"), &[]);
    let text = json!({"flood": {"text": "x".repeat(200_000)}});
    assert_eq!(endpoint.post(&[], &hello(&text)).status, 200);
    let body = hello(&json!({"flood": {"items": vec![json!({"": 0}); 20_000]}})).to_string();
    for _ in 0..3 {
        let sent: Vec<_> = (0..40).map(|_| endpoint.begin("POST", &[], &body)).collect();
        for refused in sent.into_iter().map(answer).filter(|answer| answer.status != 503) {
            assert_eq!(refused.status, 400, "{refused:?}");
            assert!(refused.body.contains("at most 262144 are accepted"), "{refused:?}");
        }
    }
    large_guest_finds_room(&endpoint);
}
