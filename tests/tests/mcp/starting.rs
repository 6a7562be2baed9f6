//! A server whose plugins still compile: it answers at once, and announces them as they come.

use super::call;
use palisade::plugins::Shipped;
use palisade::sandbox::{ChildCompiler, Compiler};
use palisade::{CacheMode, CancellationToken, Host};
use palisade_mcp::{Server, Settings};
use palisade_tests::guest::{MCP_CONFORMANCE, MCP_VISITOR};
use palisade_tests::mcp::Client;
use palisade_tests::{Program, World};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Write as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

const CHANGED: &str = "notifications/tools/list_changed";
/// The time after which clients give up on a server that does not answer.
const PATIENCE: Duration = Duration::from_secs(5);

fn names(listed: &Value) -> Vec<&str> {
    let tools = listed["result"]["tools"].as_array().unwrap_or_else(|| panic!("{listed}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[test]
fn server_with_a_cold_cache_lists_the_shipped_tools_at_once_and_announces_the_others() {
    let world = World::new();
    world.file("a.txt", "found");
    world.install("visitor", &std::fs::read(MCP_VISITOR.file()).unwrap());
    let cold = world.outer().join("cache");
    let program = Program::new(&world).env("PALISADE_CACHE", &cold);
    let plugins = [OsString::from("--plugins"), world.plugins().into()];
    let mut client = Client::start(program.args(plugins));
    let start = Instant::now();
    let answer = client.initialize(palisade_tests::mcp::LEGACY, &json!({}));
    assert_eq!(answer["result"]["capabilities"]["tools"]["listChanged"], true, "{answer}");
    let listed = client.request("tools/list", &json!({}));
    let took = start.elapsed();
    assert!(took < PATIENCE, "{took:?}");
    let shipped = ["calculate", "read_file", "search_files", "shell"];
    let lists_all = |listed| shipped.iter().all(|tool| names(listed).contains(tool));
    assert!(lists_all(&listed), "shipped tools are known before they are compiled: {listed}");
    let compiling = &listed["result"]["_meta"]["dev.palisade/compiling"];
    assert_eq!(*compiling, json!(["visitor"]), "the others are named: {listed}");
    let mut listed = listed;
    while !names(&listed).contains(&"visit") {
        client.receive_method(CHANGED);
        listed = client.request("tools/list", &json!({}));
    }
    let answer = client.request("tools/call", &call("read_file", json!({"path": "a.txt"})));
    assert_eq!(super::text(&answer), "found");
}

/// Serves a host in this process, and returns the answer to one message.
fn answer_of(host: Host, message: &Value) -> Value {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (input, mut asks) = std::io::pipe().unwrap();
    let (answers, output) = std::io::pipe().unwrap();
    let stop = CancellationToken::new();
    let server = Server::new(Arc::new(host), Settings::default()).unwrap();
    let serving = stop.clone();
    let served = runtime.spawn(async move { server.serve_lines(input, output, serving).await });
    asks.write_all(format!("{message}\n").as_bytes()).unwrap();
    let mut line = String::new();
    BufReader::new(answers).read_line(&mut line).unwrap();
    stop.cancel();
    drop(asks);
    runtime.block_on(served).unwrap().unwrap();
    serde_json::from_str(&line).unwrap()
}

#[test]
fn prompt_and_resource_of_a_loaded_plugin_do_not_wait_for_another_that_compiles() {
    let world = World::new();
    world.install("visitor", &std::fs::read(MCP_VISITOR.file()).unwrap());
    let cache = CacheMode::Directory(world.outer().join("cache"));
    let builder = || {
        let builder = Host::builder().workspace(world.root()).shipped(Shipped::LeftOut);
        builder.plugins(world.plugins()).cache(cache.clone())
    };
    assert_eq!(builder().build().unwrap().plugins().len(), 1);
    world.install("compiling", &std::fs::read(MCP_CONFORMANCE.file()).unwrap());
    for (method, mut params) in [
        ("prompts/get", json!({"name": "greet_the_visitor"})),
        ("resources/read", json!({"uri": "visit://card"})),
        (
            "completion/complete",
            json!({
                "ref": {"type": "ref/resource", "uri": "visit://card"},
                "argument": {"name": "any", "value": ""},
            }),
        ),
    ] {
        let over = CancellationToken::new();
        let endless =
            ChildCompiler::program("/bin/sh", ["-c", "exec sleep 600"]).cancelled_by(over.clone());
        let host = builder().compiler(Compiler::Child(endless)).build_in_background().unwrap();
        assert!(!host.compiling().is_empty(), "one of them compiles");
        params = palisade_tests::mcp::modern(params, &json!({}));
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let start = Instant::now();
        let answer = answer_of(host, &message);
        let took = start.elapsed();
        over.cancel();
        assert!(answer["result"].is_object() && took < PATIENCE, "{took:?}: {answer}");
    }
}

#[test]
fn call_of_a_compiling_tool_waits_for_it() {
    let world = World::new();
    world.file("a.txt", "found");
    let cold = world.outer().join("cache");
    let mut client = Client::legacy(Program::new(&world).env("PALISADE_CACHE", &cold), &json!({}));
    let answer = client.request("tools/call", &call("read_file", json!({"path": "a.txt"})));
    assert_eq!(super::text(&answer), "found");
}

#[test]
fn code_that_was_just_compiled_holds_no_descriptor_for_each_memory() {
    let world = World::new();
    world.file("a.txt", "found");
    let cold = world.outer().join("cache");
    let mut client = Client::legacy(Program::new(&world).env("PALISADE_CACHE", &cold), &json!({}));
    let answer = client.request("tools/call", &call("read_file", json!({"path": "a.txt"})));
    assert_eq!(super::text(&answer), "found");
    let open = std::fs::read_dir(format!("/proc/{}/fd", client.process())).unwrap();
    let names = open.filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok());
    let names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    assert!(names.iter().any(|name| name.starts_with(&*cold.to_string_lossy())), "{names:?}");
    let images = names.iter().filter(|name| name.contains("wasm-memory-image"));
    assert_eq!(images.count(), 0, "{names:?}");
}
