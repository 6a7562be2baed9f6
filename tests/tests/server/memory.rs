//! The memory and the time that requests of the API take, whatever tools return and however a body
//! is made: each request is bounded, and the other callers are served meanwhile.

use palisade_tests::api::{Api, Sender, until};
use palisade_tests::mcp_http::Answer;
use palisade_tests::oracle::{Peak, turn};
use palisade_tests::sample::{Group, leaves_out, sample_of};
use palisade_tests::wat::{Told, Wat};
use palisade_tests::{Program, World};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, scope, spawn};
use std::time::{Duration, Instant};

/// The length of a result, in bytes.
const LENGTH: usize = 4 << 20;
/// The most calls of a reply.
const CALLS: usize = 128;
/// The limit on the memory of all calls together, in bytes.
const TOTAL: usize = 512 << 20;
/// The program's own memory beside that, in bytes: allocator overhead and buffers.
const BESIDE: usize = 192 << 20;
/// The number of connections that are not read.
const UNREAD: usize = 40;
/// The longest time for a short request beside other callers, on a slow machine.
const SOON: Duration = Duration::from_secs(3);

/// Creates a world with a plugin that returns this byte [`LENGTH`] times.
fn world(byte: u8) -> World {
    let (world, far) = (World::new(), 131_072);
    let fill = format!(
        "(drop (memory.grow (i32.const 100))) (memory.fill (i32.const {far}) (i32.const {byte}) (i32.const {LENGTH}))"
    );
    let plugin = Wat::new(Told::new("raw"));
    let plugin = plugin.answering_block(&fill, 0, far, u32::try_from(LENGTH).unwrap());
    std::fs::write(world.plugins().join("raw.wasm"), plugin.build()).unwrap();
    let folder = world.home().join(".config/palisade");
    std::fs::create_dir_all(&folder).unwrap();
    let limits = format!("[limits]\ntotal_memory = \"{TOTAL}B\"\n");
    std::fs::write(folder.join("palisade.toml"), limits).unwrap();
    world
}

fn program(world: &World) -> Program<'_> {
    Program::new(world).args(["--no-builtin", "--plugins"]).args([world.plugins()])
}

fn served<'w>(world: &'w World, program: Program<'w>) -> Api {
    let api = Api::of(program, &world.home(), &[]);
    api.session("s1");
    api
}

/// Returns a message of a model with this many calls of the plugin.
fn calling(calls: usize) -> Value {
    let call = |id: usize| json!({"id": format!("c{id}"), "type": "function", "function": {"name": "raw", "arguments": "{}"}});
    let calls: Vec<_> = (0..calls).map(call).collect();
    json!({"role": "assistant", "content": null, "tool_calls": calls})
}

/// Returns a text of objects of one member, nested 88-fold, whose value takes 100 times its memory.
fn nested(count: usize) -> String {
    let one = format!("{}0{}", r#"{"":"#.repeat(88), "}".repeat(88));
    format!("[{}]", vec![one; count].join(","))
}

/// Returns the body of a reply that takes far more memory than its text.
fn expanding(count: usize) -> Value {
    let message = calling(1).to_string();
    let message = format!("{},\"x\":{}}}", message.strip_suffix('}').unwrap(), nested(count));
    json!({"provider": "openai", "reply": format!("{{\"choices\":[{{\"message\":{message}}}]}}")})
}

/// Checks that each call of a reply has an answer, and returns the number of whole ones. The others
/// report missing memory.
#[track_caller]
fn whole(answer: &Answer) -> usize {
    assert_eq!(answer.status, 200, "{:.300}", answer.body);
    let answer = answer.message();
    let messages = answer["messages"].as_array().unwrap();
    let results = answer["results"].as_array().unwrap();
    assert_eq!((messages.len(), results.len()), (CALLS + 1, CALLS));
    let mut count = 0;
    for (message, result) in messages[1..].iter().zip(results) {
        let text = message["content"].as_str().unwrap();
        if result["success"] == true {
            assert_eq!(
                (text.len(), result["output"].as_str().map(str::len)),
                (LENGTH, Some(LENGTH))
            );
            count += 1;
        } else {
            assert_eq!(result["error"]["class"], "resource_exhausted", "{result:.300}");
            assert!(text.starts_with("resource_exhausted: "), "{text:.300}");
        }
    }
    count
}

#[test]
fn results_of_one_reply_are_bounded_together() {
    if leaves_out(&[Group::F]) {
        return;
    }
    let _turn = turn();
    for byte in &[1, b'a'][..sample_of(2, 1)] {
        let world = world(*byte);
        let api = served(&world, program(&world));
        let peak = Peak::of_process(api.endpoint.child().id());
        let body =
            json!({"provider": "openai", "reply": {"choices": [{"message": calling(CALLS)}]}});
        let answer = api.client.post("/sessions/s1/replies", &body);
        let growth = peak.growth();
        assert!(growth < TOTAL + BESIDE, "{} MiB", growth >> 20);
        let whole = whole(&answer);
        assert!((1..CALLS).contains(&whole), "{whole} are whole");
    }
}

/// Sends a request on many connections, which are read only at the end, and returns the number of
/// whole answers. The others report missing memory.
#[track_caller]
fn whole_of_unread(api: &Api, sender: &Sender, method: &str, path: &str, body: &str) -> usize {
    let peak = Peak::of_process(api.endpoint.child().id());
    let sent: Vec<_> = (0..UNREAD).map(|_| sender.begin(method, path, body)).collect();
    // The server answers all of them before it answers a later request of another sender.
    let beside = api.operator.get("/sessions");
    assert_eq!(beside.status, 200, "{beside:?}");
    let mut count = 0;
    for socket in sent {
        let answer = palisade_tests::mcp_http::answer(socket);
        match answer.status {
            200 => count += 1,
            _ => assert_eq!(
                (answer.status, &answer.message()["code"]),
                (503, &json!("resource_exhausted"))
            ),
        }
    }
    assert!(peak.growth() < TOTAL + BESIDE, "{path}: {} MiB", peak.growth() >> 20);
    count
}

#[test]
fn repeated_answers_count_until_they_are_sent() {
    let _turn = turn();
    let world = world(1);
    let api = served(&world, program(&world));
    let call = json!({"id": "c1", "tool": "raw", "input": {}});
    let kept = api.client.clone().with("Idempotency-Key", "k1");
    let path = "/sessions/s1/calls";
    assert_eq!(kept.post(path, &call).message()["success"], true);
    let whole = whole_of_unread(&api, &kept, "POST", path, &call.to_string());
    assert!((1..UNREAD).contains(&whole), "{whole} are whole");
    let later = json!({"id": "c2", "tool": "raw", "input": {}});
    assert_eq!(api.client.clone().with("Prefer", "respond-async").post(path, &later).status, 202);
    let place = format!("{path}/c2");
    until("the call has ended", || api.client.get(&place).status == 200);
    let whole = whole_of_unread(&api, &api.client, "GET", &place, "");
    assert!((1..UNREAD).contains(&whole), "{whole} are whole");
    assert_eq!(kept.post(path, &call).status, 200, "the memory is given back");
}

#[test]
fn reply_in_a_small_address_space_is_answered() {
    if leaves_out(&[Group::H]) {
        return;
    }
    let _turn = turn();
    let world = world(b'a');
    let api = served(&world, program(&world).limited("-v 2000000"));
    let body = json!({"reply": calling(CALLS)});
    whole(&api.client.post("/sessions/s1/replies", &body));
    assert_eq!(api.client.get("/healthz").status, 200);
}

#[test]
fn replies_that_expand_are_bounded_together() {
    if leaves_out(&[Group::D]) {
        return;
    }
    let _turn = turn();
    let world = world(b'a');
    let api = served(&world, program(&world));
    let peak = Peak::of_process(api.endpoint.child().id());
    for count in &[2_790, 400][..sample_of(2, 1)] {
        let body = expanding(*count);
        let answers: Vec<Answer> = scope(|scope| {
            let send = || api.client.post("/sessions/s1/replies", &body);
            let sent: Vec<_> = (0..40).map(|_| scope.spawn(send)).collect();
            sent.into_iter().map(|sent| sent.join().unwrap()).collect()
        });
        for answer in &answers {
            assert!([200, 503].contains(&answer.status), "{:.300}", answer.body);
        }
        let growth = peak.growth();
        assert!(growth < TOTAL + BESIDE, "{count}: {} MiB", growth >> 20);
    }
    assert_eq!(api.client.get("/healthz").status, 200);
}

/// Repeats a request on this many threads until the flag is set.
fn repeat(
    threads: usize,
    until: &'static AtomicBool,
    request: impl Fn() + Send + Clone + 'static,
) -> Vec<JoinHandle<()>> {
    let one = |request: Box<dyn Fn() + Send>| {
        spawn(move || {
            while !until.load(Ordering::Relaxed) {
                request();
            }
        })
    };
    (0..threads).map(|_| one(Box::new(request.clone()))).collect()
}

/// Returns the longest time of some requests, one after the other.
#[track_caller]
fn slowest(rounds: usize, request: impl Fn() -> Answer) -> Duration {
    let time = |_| {
        let begun = Instant::now();
        let answer = request();
        assert_eq!(answer.status, 200, "{answer:?}");
        begun.elapsed()
    };
    (0..rounds).map(time).max().unwrap_or_default()
}

#[test]
fn long_messages_of_one_caller_delay_no_other() {
    static STOP: AtomicBool = AtomicBool::new(false);
    let _turn = turn();
    let world = world(b'a');
    let api = served(&world, program(&world));
    let session = api.operator.post("/sessions", &json!({"id": "o1"}));
    assert_eq!(session.status, 201, "{session:?}");
    let (flood, body) = (api.client.clone(), expanding(700));
    let floods = repeat(16, &STOP, move || {
        let _ = flood.post("/sessions/s1/replies", &body);
    });
    let text = "x".repeat(200_000);
    let ordinary = json!({"reply": {"role": "assistant", "content": text}});
    std::thread::sleep(Duration::from_millis(500));
    let slowest = slowest(5, || api.operator.post("/sessions/o1/replies", &ordinary));
    STOP.store(true, Ordering::Relaxed);
    floods.into_iter().for_each(|flood| flood.join().unwrap());
    assert!(slowest < SOON, "{slowest:?}");
}

/// Adds plugins with tools whose schemas are long.
fn add_long_definitions(world: &World) {
    let words = "x".repeat(250);
    let property = |at: usize| {
        format!(r#""p{at}":{{"type":"integer","minimum":{at},"description":"{words}"}}"#)
    };
    let properties: Vec<_> = (0..300).map(property).collect();
    let schema = format!(r#"{{"type":"object","properties":{{{}}}}}"#, properties.join(","));
    for plugin in 0..5 {
        let tool = |at: usize| Told::new(&format!("t{plugin}_{at}")).with_input(schema.clone());
        let plugin_bytes = Wat::with_tools((0..8).map(tool).collect()).build();
        std::fs::write(world.plugins().join(format!("p{plugin}.wasm")), plugin_bytes).unwrap();
    }
}

/// Returns the names of all tools, and the length of the longest page.
#[track_caller]
fn listed(sender: &Sender) -> (Vec<String>, usize) {
    let (mut names, mut longest, mut cursor) = (Vec::new(), 0, String::new());
    loop {
        let page = sender.get(&format!("/tools{cursor}"));
        assert_eq!(page.status, 200, "{:.300}", page.body);
        longest = longest.max(page.body.len());
        let page = page.message();
        let items = page["items"].as_array().unwrap();
        names.extend(items.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("?cursor={next}"),
            None => return (names, longest),
        }
    }
}

#[test]
fn long_definitions_delay_no_other_request() {
    static STOP: AtomicBool = AtomicBool::new(false);
    let _turn = turn();
    let world = world(b'a');
    add_long_definitions(&world);
    let api = served(&world, program(&world));
    let peak = Peak::of_process(api.endpoint.child().id());
    let ask = api.client.clone();
    let loops = repeat(8, &STOP, move || {
        for path in ["/tools", "/sessions/s1/definitions", "/sessions/s1/definitions?strict=true"] {
            let answer = ask.get(path);
            assert!([200, 503].contains(&answer.status), "{path}: {:.300}", answer.body);
        }
    });
    let slowest = slowest(20, || {
        std::thread::sleep(Duration::from_millis(100));
        api.operator.get("/healthz")
    });
    STOP.store(true, Ordering::Relaxed);
    loops.into_iter().for_each(|asking| asking.join().unwrap());
    assert!(slowest < Duration::from_secs(1), "{slowest:?}");
    assert!(peak.growth() < TOTAL + BESIDE, "{} MiB", peak.growth() >> 20);
    let (names, longest) = listed(&api.client);
    assert_eq!(names.len(), 41);
    assert!(longest < (1 << 20) + (256 << 10), "{longest} bytes");
}

/// Adds plugins with schemas of 120 KB in whose depth most keywords are unknown to a provider. Its
/// form names each of them with the whole way to it, some 3 MB for each tool.
fn add_weakened_definitions(world: &World) {
    let name = "n".repeat(250);
    let deep = (0..13).fold(
        r#"{"minLength":0,"maxLength":9,"pattern":"^","minimum":0,"maximum":9,"multipleOf":1,
            "exclusiveMinimum":0,"exclusiveMaximum":9,"minItems":0,"maxItems":9,"uniqueItems":true,
            "contains":{},"minContains":0,"maxContains":9,"minProperties":0,"maxProperties":9,
            "propertyNames":{},"not":{"type":"null"},"contentEncoding":"x","contentMediaType":"x"}"#
            .to_owned(),
        |inner, _| format!(r#"{{"properties":{{"{name}":{inner}}}}}"#),
    );
    let branches: Vec<_> = (0..25).map(|at| format!(r#""b{at}":{deep}"#)).collect();
    let schema = format!(r#"{{"type":"object","properties":{{{}}}}}"#, branches.join(","));
    for plugin in 0..30 {
        let told = Told::new(&format!("weakened_{plugin}")).with_input(schema.clone());
        let file = world.plugins().join(format!("weakened_{plugin}.wasm"));
        std::fs::write(file, Wat::new(told).build()).unwrap();
    }
}

#[test]
fn definitions_that_are_much_longer_than_their_schemas_are_not_kept() {
    let _turn = turn();
    let world = world(b'a');
    add_weakened_definitions(&world);
    let api = served(&world, program(&world));
    let peak = Peak::of_process(api.endpoint.child().id());
    let mut longest = 0;
    for format in ["openai", "openai-responses", "anthropic", "gemini"] {
        for strict in [false, true] {
            let path = format!("/sessions/s1/definitions?format={format}&strict={strict}");
            let answer = api.client.get(&path);
            assert!([200, 503].contains(&answer.status), "{path}: {:.300}", answer.body);
            longest = longest.max(answer.body.len());
        }
    }
    assert!(peak.growth() < TOTAL + BESIDE, "{} MiB", peak.growth() >> 20);
    until("the server has returned its memory", || peak.left() < 80 << 20);
    assert!(longest > 40 << 20, "{longest} bytes");
    assert_eq!(api.client.get("/healthz").status, 200);
}

#[test]
fn idle_sessions_hold_little() {
    let _turn = turn();
    let world = world(b'a');
    let api = served(&world, program(&world));
    let peak = Peak::of_process(api.endpoint.child().id());
    let names = |length: usize| {
        let name = |at: usize| (format!("t{at:0>length$}"), json!("deny"));
        json!({"policy": {"tools": (0..250).map(name).collect::<serde_json::Map<_, _>>()}})
    };
    let (long, short) = (names(8_000), names(60));
    for _ in 0..100 {
        let answer = api.client.post("/sessions", &long);
        assert!([422, 503].contains(&answer.status), "{:.300}", answer.body);
        let answer = api.client.post("/sessions", &short);
        assert_eq!(answer.status, 201, "{answer:?}");
    }
    until("the server has returned its memory", || peak.left() < 64 << 20);
}
