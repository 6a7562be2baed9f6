//! Each client of a server has shares of its own, which another client's calls cannot take.

use super::call;
use super::http::{request, session};
use palisade_tests::mcp_http::{Answer, Endpoint, answer};
use palisade_tests::wat::Told;
use palisade_tests::{Program, Wat, World};
use serde_json::{Value, json};

/// A tool that takes 100 MiB of memory and then loops until its time is up.
fn greedy() -> Vec<u8> {
    let body = "(if (i32.eq (memory.grow (i32.const 1600)) (i32.const -1)) (then unreachable))
        (loop $again (br $again)) unreachable";
    Wat::new(Told::new("greedy")).execute(body).build()
}

#[test]
fn client_at_full_load_takes_no_memory_from_another_of_the_same_plugin() {
    let world = World::new();
    world.install("greedy", &greedy());
    let file = world.home().join("settings.toml");
    // Two calls fit into the share and three do not: with the stacks of quickly compiled code and
    // without them, and whether the other client's call is first or last.
    std::fs::write(&file, "[limits]\nmemory = \"112MiB\"\ntotal_memory = \"580MiB\"\n").unwrap();
    let program = Program::new(&world).args(["--no-builtin", "--config"]).args([file]);
    let program = program.args(["--plugins"]).args([world.plugins()]);
    let endpoint = Endpoint::start(program, &["--timeout", "5s"]);
    let class = |answer: &Answer| {
        let error = answer.message()["result"]["_meta"]["dev.palisade/error"]["class"].clone();
        error.as_str().unwrap_or_else(|| panic!("{answer:?}")).to_owned()
    };
    let begin = |session: &str, id: u32| {
        let mut message = request("tools/call", &call("greedy", json!({})));
        message["id"] = json!(id);
        endpoint.begin("POST", &[("Mcp-Session-Id", session)], &message.to_string())
    };
    // The first call loads the plugin. The others of this client reach its share: two of them get
    // memory, and the others are refused at once.
    let (busy, other) = (session(&endpoint), session(&endpoint));
    let sockets: Vec<_> = (1..=4).map(|id| begin(&busy, id)).collect();
    let quick = begin(&other, 1);
    let classes: Vec<String> = sockets.into_iter().map(|socket| class(&answer(socket))).collect();
    let refused = classes.iter().filter(|class| *class == "resource_exhausted").count();
    assert_eq!(refused, 2, "{classes:?}");
    assert_eq!(class(&answer(quick)), "timeout", "the other client's call got its memory");
}

/// A tool with a schema of 230 KB that takes 23 MiB once it is parsed.
fn described_at_length(name: &str) -> Vec<u8> {
    let examples = vec![r#"{"":0}"#; 33_000].join(",");
    let schema = format!(r#"{{"type": "object", "examples": [{examples}]}}"#);
    Wat::new(Told::new(name).with_input(schema)).build()
}

#[test]
fn plugins_with_large_descriptions_leave_memory_for_messages_and_calls() {
    let world = World::new();
    for number in 0..10 {
        let name = format!("large_{number}");
        world.install(&name, &described_at_length(&name));
    }
    world.install("small", &Wat::new(Told::new("small")).build());
    let file = world.home().join("settings.toml");
    std::fs::write(&file, "[limits]\ntotal_memory = \"512MiB\"\n").unwrap();
    let program = || {
        let program = Program::new(&world).args(["--no-builtin", "--config"]).args([&file]);
        program.args(["--plugins"]).args([world.plugins()])
    };
    let listed = program().args(["list", "--json"]).run().exits_with(0).json();
    let refused = listed["rejected"].as_array().unwrap();
    assert!((1..10).contains(&refused.len()), "{refused:?}");
    let reason = refused[0]["reason"].as_str().unwrap();
    assert!(reason.contains("half of `limits.total_memory`"), "{reason}");

    let endpoint = Endpoint::start(program(), &[]);
    let session = session(&endpoint);
    let ask = |message: &Value| {
        let socket = endpoint.begin("POST", &[("Mcp-Session-Id", &session)], &message.to_string());
        answer(socket).message()["result"].clone()
    };
    for _ in 0..2 {
        let tools = ask(&request("tools/list", &json!({})))["tools"].clone();
        let names = tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap());
        assert!(names.collect::<Vec<_>>().contains(&"small"));
        let called = ask(&request("tools/call", &call("small", json!({}))));
        assert_eq!(called["isError"], json!(false), "{called}");
    }
}
