//! Each client of a server has shares of its own, which another client's calls cannot take.

use super::call;
use super::http::{request, session};
use palisade_tests::mcp_http::{Answer, Endpoint, answer};
use palisade_tests::wat::Told;
use palisade_tests::{Program, Wat, World};
use serde_json::json;

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
