//! Tools: listings, and the results of calls.

use super::{call, legacy_of, plain, serving, text};
use palisade::{
    CacheMode, Host,
    plugins::Shipped,
    sandbox::{ChildCompiler, Compiler},
};
use palisade_tests::bomb::costly_to_compile;
use palisade_tests::guest::{
    CONTRACT_CONTENT, CONTRACT_ERRORS, CONTRACT_OUTCOME, CONTRACT_STRUCTURED, LOADER_GOOD,
};
use palisade_tests::mcp::Client;
use palisade_tests::wat::Told;
use palisade_tests::{Program, Wat, World};
use serde_json::{Value, json};

#[test]
fn list_beyond_a_mebibyte_comes_in_pages() {
    const TOOLS: usize = 100;
    let world = World::new();
    let tool = |number: usize| Told {
        description: "x".repeat(16 << 10),
        ..Told::new(&format!("tool{number:03}"))
    };
    let plugin = Wat::with_tools((0..TOOLS).map(tool).collect());
    world.install("many", &plugin.build());
    let program = Program::new(&world).args(["--no-builtin", "--plugins"]).args([world.plugins()]);
    let mut client = Client::legacy(program, &json!({}));
    client.wait_for_tools();
    let (mut names, mut params, mut pages) = (Vec::new(), json!({}), 0);
    loop {
        let page = client.request("tools/list", &params)["result"].clone();
        assert!(page.to_string().len() < 2 << 20, "a page is bounded");
        let tools = page["tools"].as_array().unwrap();
        names.extend(tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()));
        pages += 1;
        match page.get("nextCursor") {
            Some(cursor) => params = json!({"cursor": cursor}),
            None => break,
        }
    }
    names.retain(|name| name.starts_with("tool"));
    let expected: Vec<String> = (0..TOOLS).map(|number| format!("tool{number:03}")).collect();
    assert_eq!((names, pages), (expected, 2));
}

#[test]
fn tools_are_listed_by_name_with_enforced_hints() {
    let world = World::new();
    let mut client = Client::legacy(Program::new(&world), &json!({}));
    client.wait_for_tools();
    let listed = client.request("tools/list", &json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert!(
        names.is_sorted() && names.contains(&"read_file") && names.contains(&"shell"),
        "{names:?}"
    );
    let exported =
        Program::new(&world).args(["export", "--format", "mcp"]).run().exits_with(0).json();
    for tool in exported["tools"].as_array().unwrap() {
        let listed = tools.iter().find(|other| other["name"] == tool["name"]).unwrap();
        assert_eq!(listed["annotations"], tool["annotations"], "{}", tool["name"]);
        assert_eq!(listed["inputSchema"], tool["inputSchema"], "{}", tool["name"]);
        assert_eq!(listed["description"], tool["description"], "{}", tool["name"]);
    }
    let again = client.request("tools/list", &json!({}));
    assert_eq!(again["result"], listed["result"]);
}

#[test]
fn listed_schemas_are_portable_and_null_is_still_taken() {
    let world = World::new();
    world.file("f", "a\nb\n");
    let mut client = Client::legacy(Program::new(&world), &json!({}));
    client.wait_for_tools();
    let listed = client.request("tools/list", &json!({}));
    let text = listed["result"]["tools"].to_string();
    for word in ["workspace-path", "x-access", "\"null\"", "\"type\":["] {
        assert!(!text.contains(word), "{word}: {text}");
    }
    let input = json!({"path": "f", "start_line": 1, "end_line": null, "limit": null});
    let answer = client.request("tools/call", &call("read_file", input));
    assert_eq!(answer["result"]["content"], json!([{"type": "text", "text": "b\n"}]));
    let answer = client.request("tools/call", &call("read_file", json!({"path": null})));
    assert_eq!(answer["result"]["isError"], true, "the path is required: {answer}");
}

#[test]
fn call_is_answered_in_either_era() {
    let world = World::new();
    let mut client = plain(&world, LOADER_GOOD);
    let answer = client.request("tools/call", &call("good", json!({})));
    assert_eq!(answer["result"]["content"], json!([{"type": "text", "text": "good"}]));
    assert_eq!(answer["result"]["isError"], json!(false));
    let without = client.request("tools/call", &json!({"name": "good"}));
    assert_eq!(without["result"]["content"], answer["result"]["content"]);
    let mut client = Client::start(serving(&world, LOADER_GOOD));
    let answer = client.request_modern("tools/call", call("good", json!({})), &json!({}));
    assert_eq!(text(&answer), "good");
    assert_eq!(answer["result"]["resultType"], "complete");
}

#[test]
fn unknown_tool_is_an_error_with_similar_names() {
    let world = World::new();
    let mut client = plain(&world, LOADER_GOOD);
    let answer = client.request("tools/call", &call("bettr", json!({})));
    assert_eq!(answer["error"]["code"], -32602);
    assert_eq!(answer["error"]["message"], "there is no tool `bettr`; did you mean `better`?");
    assert_eq!(answer["error"]["data"], json!({"nearest": ["better"]}));
}

/// The failing compiler leaves a plugin that was tried but not compiled.
#[test]
fn cached_tools_are_callable_and_compiling_ones_named() {
    let (world, failing) = (World::new(), ChildCompiler::palisade("/bin/false"));
    let (plugins, cache) = (world.plugins(), world.outer().join("cache"));
    let builder = || {
        let host =
            Host::builder().workspace(world.root()).shipped(Shipped::LeftOut).plugins(&plugins);
        host.cache(CacheMode::Directory(cache.clone()))
    };
    std::fs::copy(LOADER_GOOD.file(), plugins.join("good.wasm")).unwrap();
    drop(builder().build().unwrap());
    std::fs::write(plugins.join("a-slow.wasm"), costly_to_compile("slow")).unwrap();
    drop(builder().compiler(Compiler::Child(failing)).build().unwrap());
    let program =
        Program::new(&world).env("PALISADE_CACHE", &cache).args(["--no-builtin", "--plugins"]);
    let mut client = Client::start(program.args([&plugins]));
    let listed = client.request_modern("tools/list", json!({}), &json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap();
    assert_eq!(tools.iter().map(|tool| &tool["name"]).collect::<Vec<_>>(), ["better", "good"]);
    assert_eq!(listed["result"]["_meta"]["dev.palisade/compiling"], json!(["a-slow"]));
    let answer = client.request_modern("tools/call", call("good", json!({})), &json!({}));
    assert_eq!(text(&answer), "good");
}

#[test]
fn schema_violations_reach_the_model() {
    let world = World::new();
    let mut client = plain(&world, CONTRACT_CONTENT);
    for modern in [false, true] {
        let params = call("give", json!({"blocks": "text"}));
        let answer = match modern {
            true => client.request_modern("tools/call", params, &json!({})),
            false => client.request("tools/call", &params),
        };
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        assert!(
            text(&answer).contains("the input is not valid") && text(&answer).contains("blocks"),
            "{answer}"
        );
        assert_eq!(answer["result"]["_meta"]["dev.palisade/error"]["class"], "validation_error");
    }
}

#[test]
fn tool_list_is_byte_identical_in_every_connection() {
    let world = World::new();
    let listed = || {
        let mut client = plain(&world, CONTRACT_CONTENT);
        let first = client.request("tools/list", &json!({}))["result"].to_string();
        for _ in 0..100 {
            client.request("tools/call", &call("give", json!({"blocks": ["text"]})));
        }
        assert_eq!(client.request("tools/list", &json!({}))["result"].to_string(), first);
        first
    };
    assert_eq!(listed(), listed());
}

#[test]
fn local_file_link_is_omitted() {
    let world = World::new();
    let mut client = plain(&world, CONTRACT_CONTENT);
    let answer = client.request(
        "tools/call",
        &call("give", json!({"blocks": ["file-link", "file-resource", "text"]})),
    );
    let blocks = answer["result"]["content"].as_array().unwrap();
    assert!(blocks.iter().all(|block| block["type"] == "text"), "{answer}");
    assert_eq!(
        (text(&answer).matches("[left out: `").count(), blocks[2]["text"].as_str()),
        (2, Some("plain")),
        "{answer}"
    );
    let [told] = &client.received("notifications/message")[..] else { panic!("{answer}") };
    let data = told["params"]["data"].to_string();
    assert!(data.contains("left out of the output: `") && data.contains("and 1 more"), "{data}");
}

#[test]
fn every_kind_of_block_arrives() {
    let world = World::new();
    let mut client = plain(&world, CONTRACT_CONTENT);
    let blocks = ["text", "json", "image", "audio", "resource-text", "resource-bytes", "link"];
    let answer = client.request("tools/call", &call("give", json!({"blocks": blocks})));
    let expected = json!([
        {"type": "text", "text": "plain"},
        {"type": "text", "text": r#"{"a":"ü","b":[1,2.5,null]}"#},
        {"type": "image", "data": "iVBORw==", "mimeType": "image/png"},
        {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"},
        {"type": "resource", "resource": {"uri": "note:1", "mimeType": "text/plain", "text": "whole"}},
        {"type": "resource", "resource": {"uri": "blob:1", "blob": "AP8="}},
        {"type": "resource_link", "uri": "note:2", "name": "x", "mimeType": "text/markdown"},
    ]);
    assert_eq!(answer["result"]["content"], expected);
    assert_eq!(answer["result"].get("structuredContent"), None);
}

#[test]
fn result_without_output_has_a_block() {
    let world = World::new();
    let mut client = plain(&world, CONTRACT_CONTENT);
    let params = call("give", json!({"blocks": []}));
    for answer in [
        client.request("tools/call", &params),
        client.request_modern("tools/call", params.clone(), &json!({})),
    ] {
        assert_eq!(text(&answer), "The call succeeded, without output.");
        assert_eq!(answer["result"]["isError"], false);
    }
}

#[test]
fn output_schema_result_is_structured_and_text() {
    let world = World::new();
    let mut client = plain(&world, CONTRACT_STRUCTURED);
    let listed = client.request("tools/list", &json!({}));
    assert_eq!(listed["result"]["tools"][0]["outputSchema"]["required"], json!(["n"]));
    let answer = client.request("tools/call", &call("promise", json!({"give": "right"})));
    assert_eq!(answer["result"]["structuredContent"], json!({"n": 1}));
    assert_eq!(text(&answer), r#"{"n":1}"#);
    let answer = client.request("tools/call", &call("promise", json!({"give": "wrong"})));
    assert_eq!(
        answer["result"]["isError"], true,
        "a promise that is broken is no result: {answer}"
    );
    assert_eq!(answer["result"].get("structuredContent"), None);
}

#[test]
fn failed_tool_reports_its_own_message() {
    let world = World::new();
    let mut client = plain(&world, CONTRACT_ERRORS);
    let listed = client.request("tools/list", &json!({}));
    let tool = listed["result"]["tools"][0]["name"].as_str().unwrap().to_owned();
    let answer = client.request("tools/call", &call(&tool, json!({"with": "failed"})));
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    assert_eq!(
        answer["result"]["_meta"]["dev.palisade/error"]["class"],
        Value::from("execution_error"),
        "{answer}"
    );
}

#[test]
fn client_gets_what_the_model_does_not_read() {
    let world = World::new();
    let mut client = legacy_of(serving(&world, CONTRACT_OUTCOME), &["--allow", "write"]);
    let mut meta = |tool: &str, input: Value| {
        let answer = client.request("tools/call", &call(tool, input));
        let content = answer["result"]["content"].to_string();
        assert!(!content.contains("stop_loop") && !content.contains("make test"), "{content}");
        answer["result"]["_meta"]["dev.palisade/result"].clone()
    };
    for input in [json!({}), json!({"fail": true})] {
        let report = meta("report", input);
        assert_eq!(report["metadata"]["stop_loop"], true, "{report}");
        assert_eq!(report["command_executed"], "make test");
        assert_eq!(report.get("files_modified"), None, "no key without a value: {report}");
    }
    let touched = json!({"files_modified": ["touched.txt"]});
    assert_eq!(meta("touch", json!({})), touched);
    assert_eq!(meta("touch_and_fail", json!({})), touched);
    let mut client = plain(&world, LOADER_GOOD);
    let answer = client.request("tools/call", &call("good", json!({})));
    assert_eq!(answer["result"].get("_meta"), None, "a plain result has no `_meta`");
}
