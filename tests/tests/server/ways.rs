//! Hostile cases of the suite `hostile` by every way into a server: a message of MCP, a call of the
//! API and a reply of a model. The same checks apply to all: the memory is bounded, each request is
//! answered once, a ping beside them is answered at once, and so is the call of another caller.

use palisade_tests::api::{Api, Sender};
use palisade_tests::dice::Dice;
use palisade_tests::guest::HOSTILE_EXPAND;
use palisade_tests::mcp::{MODERN, modern};
use palisade_tests::mcp_http::Answer;
use palisade_tests::oracle::{Peak, turn};
use palisade_tests::sample::sample_of;
use palisade_tests::wat::{Told, Wat};
use palisade_tests::{Program, World};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::scope;
use std::time::{Duration, Instant};

/// The limit on the memory of all calls together, in bytes.
const TOTAL: usize = 512 << 20;
/// The program's own memory beside that, in bytes: allocator overhead and buffers.
const BESIDE: usize = 192 << 20;
/// The number of requests at a time.
const REQUESTS: usize = 12;
/// The longest time for a ping, or for the call of another caller, on a slow machine.
const SOON: Duration = Duration::from_secs(5);
/// The length of a result that grows when it is written, in bytes.
const LENGTH: u32 = 4 << 20;

/// A way into the server.
#[derive(Debug, Clone, Copy)]
enum Way {
    Mcp,
    Call,
    Reply,
}

impl Way {
    const ALL: [Self; 3] = [Self::Mcp, Self::Call, Self::Reply];

    fn send(self, sender: &Sender, tool: &str, input: &Value) -> Answer {
        match self {
            Self::Mcp => {
                let params = modern(json!({"name": tool, "arguments": input}), &json!({}));
                let body =
                    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
                let headed = [("MCP-Protocol-Version", MODERN), ("Mcp-Method", "tools/call")];
                let sender =
                    headed.iter().fold(sender.clone(), |it, (name, value)| it.with(name, value));
                sender.with("Mcp-Name", tool).post("/mcp", &body)
            }
            Self::Call => sender.post("/sessions/s1/calls", &json!({"tool": tool, "input": input})),
            Self::Reply => {
                let call = json!({"type": "tool_use", "id": "a", "name": tool, "input": input});
                let reply = json!({"role": "assistant", "content": [call]});
                sender
                    .post("/sessions/s1/replies", &json!({"provider": "anthropic", "reply": reply}))
            }
        }
    }

    /// Returns the text of an answer's result. `None` if memory was missing, which any other
    /// failure is not.
    #[track_caller]
    fn text(self, answer: &Answer) -> Option<String> {
        if answer.status == 503 {
            assert_eq!(answer.header("retry-after"), Some("1"), "{answer:?}");
            assert!(answer.body.contains("resource_exhausted"), "{answer:?}");
            return None;
        }
        assert_eq!(answer.status, 200, "{self:?} {:.300}", answer.body);
        let message = answer.message();
        let (class, text) = match self {
            Self::Mcp => {
                let result = &message["result"];
                let class = &result["_meta"]["dev.palisade/error"]["class"];
                let class =
                    if class.is_null() { &message["error"]["data"]["class"] } else { class };
                (class, &result["content"][0]["text"])
            }
            Self::Call => (&message["error"]["class"], &message["output"]),
            Self::Reply => {
                let result = &message["results"][0];
                (
                    &result["error"]["class"],
                    &message["messages"][1]["content"][0]["content"][0]["text"],
                )
            }
        };
        if class == "resource_exhausted" {
            return None;
        }
        assert!(class.is_null(), "{self:?} {class} {:.300}", answer.body);
        text.as_str().map(str::to_owned)
    }
}

/// A hostile call, and the length of its result.
struct Case {
    tool: &'static str,
    input: Value,
    length: usize,
}

/// Returns the length of a list of so many objects of one member, as text.
fn elements(count: usize) -> usize {
    1 + count * r#"{"":0},"#.len()
}

fn cases() -> Vec<Case> {
    let expand =
        |tool, count: usize| Case { tool, input: json!({"count": count}), length: elements(count) };
    let items = vec![json!({"": 0}); 49_000];
    vec![
        Case { tool: "raw", input: json!({}), length: LENGTH as usize },
        expand("expand", 100_000),
        expand("expand_promised", 100_000),
        Case { tool: "length", input: json!({"items": items}), length: "49000".len() },
    ]
}

fn world() -> World {
    let (world, far) = (World::new(), 131_072);
    let fill = format!(
        "(drop (memory.grow (i32.const 100))) (memory.fill (i32.const {far}) (i32.const 1) (i32.const {LENGTH}))"
    );
    let raw = Wat::new(Told::new("raw")).answering_block(&fill, 0, far, LENGTH);
    std::fs::write(world.plugins().join("raw.wasm"), raw.build()).unwrap();
    let quick = Wat::new(Told::new("quick"));
    std::fs::write(world.plugins().join("quick.wasm"), quick.build()).unwrap();
    std::fs::copy(HOSTILE_EXPAND.file(), world.plugins().join("expand.wasm")).unwrap();
    let folder = world.home().join(".config/palisade");
    std::fs::create_dir_all(&folder).unwrap();
    let limits = format!("[limits]\nconcurrency = 16\ntotal_memory = \"{TOTAL}B\"\n");
    std::fs::write(folder.join("palisade.toml"), limits).unwrap();
    world
}

/// Returns the longest time that a ping or the call of another caller takes while the flag is not
/// set.
fn slowest(api: &Api, done: &AtomicBool) -> Duration {
    let mut slowest = Duration::ZERO;
    while !done.load(Ordering::Relaxed) {
        let begun = Instant::now();
        assert_eq!(api.operator.get("/healthz").status, 200);
        let result = api.operator.call("o1", &json!({"tool": "quick", "input": {}}));
        assert!(result["success"] == true || result["error"]["class"] == "resource_exhausted");
        slowest = slowest.max(begun.elapsed());
        std::thread::sleep(Duration::from_millis(50));
    }
    slowest
}

/// Sets a flag at its end, also after a failed check.
struct Sets<'a>(&'a AtomicBool);

impl Drop for Sets<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn hostile_calls_are_bounded_by_every_way() {
    let _turn = turn();
    let world = world();
    let program = Program::new(&world).args(["--no-builtin", "--plugins"]).args([world.plugins()]);
    let api = Api::of(program, &world.home(), &[]);
    api.session("s1");
    assert_eq!(api.operator.post("/sessions", &json!({"id": "o1"})).status, 201);
    let cases = cases();
    for (way, case) in Way::ALL.iter().flat_map(|way| cases.iter().map(move |case| (way, case))) {
        // Each fits alone, after whatever was before.
        let alone = way.text(&way.send(&api.client, case.tool, &case.input));
        assert_eq!(alone.map(|text| text.len()), Some(case.length), "{way:?} {}", case.tool);
    }
    let mut dice = Dice::new(7);
    let peak = Peak::of_process(api.endpoint.child().id());
    let done = AtomicBool::new(false);
    let (whole, slowest) = scope(|scope| {
        let ends = Sets(&done);
        let beside = scope.spawn(|| slowest(&api, &done));
        let mut whole = 0;
        for _ in 0..sample_of(8, 3) {
            let mut pick = || {
                let way = Way::ALL[dice.roll(Way::ALL.len())];
                (way, &cases[dice.roll(cases.len())])
            };
            let picked: Vec<_> = (0..REQUESTS).map(|_| pick()).collect();
            let client = &api.client;
            let send = move |(way, case): (Way, &Case)| {
                way.text(&way.send(client, case.tool, &case.input))
            };
            let sent: Vec<_> = picked
                .into_iter()
                .map(|(way, case)| (case, scope.spawn(move || send((way, case)))))
                .collect();
            for (case, sent) in sent {
                if let Some(text) = sent.join().unwrap() {
                    assert_eq!(text.len(), case.length, "{}", case.tool);
                    whole += 1;
                }
            }
        }
        drop(ends);
        (whole, beside.join().unwrap())
    });
    assert!(whole > 0, "no request found room");
    assert!(peak.growth() < TOTAL + BESIDE, "{} MiB", peak.growth() >> 20);
    assert!(slowest < SOON, "{slowest:?}");
}
