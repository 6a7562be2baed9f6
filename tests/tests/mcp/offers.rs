//! Resources and prompts: announced if a plugin offers them, listed, read and completed; absent
//! otherwise.

use super::{legacy_of, serving};
use palisade_tests::World;
use palisade_tests::guest::{CONTRACT_OFFERS, LOADER_GOOD};
use palisade_tests::mcp::{Client, LEGACY};
use serde_json::{Value, json};

/// Makes a request in both revisions.
fn both(client: &mut Client, method: &str, params: &Value) -> [Value; 2] {
    [client.request(method, params), client.request_modern(method, params.clone(), &json!({}))]
}

fn client(world: &World) -> Client {
    let mut client = Client::legacy(serving(world, CONTRACT_OFFERS), &json!({}));
    client.wait_for_tools();
    client
}

#[track_caller]
fn read(client: &mut Client, uri: &str) -> Value {
    let [legacy, modern] = both(client, "resources/read", &json!({"uri": uri}));
    assert_eq!(legacy["result"]["contents"], modern["result"]["contents"], "{legacy} {modern}");
    assert!(
        modern["result"]["ttlMs"].is_u64() && modern["result"]["cacheScope"] == "private",
        "{modern}"
    );
    legacy["result"]["contents"].clone()
}

#[test]
fn no_offers_means_no_capability() {
    let world = World::new();
    let mut client = Client::start(serving(&world, LOADER_GOOD));
    let hello = client.initialize(LEGACY, &json!({}));
    let found = client.request_modern("server/discover", json!({}), &json!({}));
    for capabilities in [&hello["result"]["capabilities"], &found["result"]["capabilities"]] {
        assert!(capabilities["tools"].is_object(), "{capabilities}");
        for none in ["resources", "prompts", "completions"] {
            assert_eq!(capabilities.get(none), None, "{capabilities}");
        }
    }
    let completion =
        json!({"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}});
    for (method, params) in [
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("resources/read", json!({"uri": "test://text"})),
        ("prompts/list", json!({})),
        ("prompts/get", json!({"name": "simple"})),
        ("completion/complete", completion),
    ] {
        for answer in both(&mut client, method, &params) {
            assert_eq!(answer["error"]["code"], -32601, "{method}: {answer}");
        }
    }
}

#[test]
fn offers_are_announced_and_listed() {
    let world = World::new();
    let mut client = Client::start(serving(&world, CONTRACT_OFFERS));
    let hello = client.initialize(LEGACY, &json!({}));
    let found = client.request_modern("server/discover", json!({}), &json!({}));
    for capabilities in [&hello["result"]["capabilities"], &found["result"]["capabilities"]] {
        for kind in ["tools", "resources", "prompts", "completions"] {
            assert!(capabilities[kind].is_object(), "{capabilities}");
        }
    }
    for (method, list, first) in [
        (
            "resources/list",
            "resources",
            json!({"uri": "test://text", "name": "text", "description": "A text.", "mimeType": "text/plain"}),
        ),
        (
            "resources/templates/list",
            "resourceTemplates",
            json!({"uriTemplate": "test://template/{id}/data", "name": "data", "mimeType": "application/json"}),
        ),
        (
            "prompts/list",
            "prompts",
            json!({"name": "simple", "description": "Says hello.", "arguments": []}),
        ),
    ] {
        let [legacy, modern] = both(&mut client, method, &json!({}));
        assert_eq!(legacy["result"][list][0], first, "{legacy}");
        assert_eq!(legacy["result"][list], modern["result"][list]);
        assert!(
            modern["result"]["ttlMs"].is_u64() && modern["result"]["cacheScope"] == "private",
            "{modern}"
        );
        assert_eq!(legacy["result"].get("ttlMs"), None);
    }
}

#[test]
fn resources_are_read_in_a_read_only_sandbox() {
    let world = World::new();
    std::fs::write(world.root().join("in.txt"), "from the workspace").unwrap();
    let mut client = client(&world);
    let text = json!([{"uri": "test://text", "mimeType": "text/plain", "text": "words"}]);
    assert_eq!(read(&mut client, "test://text"), text);
    let bytes = json!([{"uri": "test://bytes", "mimeType": "image/png", "blob": "iVBORw=="}]);
    assert_eq!(read(&mut client, "test://bytes"), bytes);
    let own = json!([{"uri": "test://workspace", "mimeType": "text/plain", "text": "from the workspace"}]);
    assert_eq!(read(&mut client, "test://workspace"), own, "for every file that the plugin names");
    let made = read(&mut client, "test://template/123/data");
    assert_eq!(
        (&made[0]["uri"], &made[0]["text"]),
        (&json!("test://template/123/data"), &json!(r#"{"id":"123"}"#))
    );
    for answer in both(&mut client, "resources/read", &json!({"uri": "test://write"})) {
        assert_eq!(answer["error"]["code"], -32603, "{answer}");
    }
    assert_eq!(world.read("out.txt"), None);
}

#[test]
fn missing_resource_is_an_error_with_its_name() {
    let world = World::new();
    let mut client = client(&world);
    for uri in ["test://none", "test://gone", "test://template/1/2/data", "file:///etc/passwd"] {
        let [legacy, modern] = both(&mut client, "resources/read", &json!({"uri": uri}));
        for (answer, code) in [(legacy, -32002), (modern, -32602)] {
            assert_eq!(
                (&answer["error"]["code"], &answer["error"]["data"]["uri"]),
                (&json!(code), &json!(uri)),
                "{answer}"
            );
        }
    }
}

#[test]
fn invalid_cursor_is_refused() {
    let world = World::new();
    let mut client = client(&world);
    for method in ["tools/list", "resources/list", "resources/templates/list", "prompts/list"] {
        for answer in both(&mut client, method, &json!({"cursor": "made up"})) {
            assert_eq!(answer["error"]["code"], -32602, "{method}: {answer}");
        }
        for answer in both(&mut client, method, &json!({})) {
            assert_eq!(answer["result"].get("nextCursor"), None, "{method}: {answer}");
        }
    }
}

#[test]
fn static_resources_have_no_subscriptions() {
    let world = World::new();
    let mut client = Client::start(serving(&world, CONTRACT_OFFERS));
    let hello = client.initialize(LEGACY, &json!({}));
    assert_eq!(hello["result"]["capabilities"]["resources"].get("subscribe"), None, "{hello}");
    for answer in both(&mut client, "resources/subscribe", &json!({"uri": "test://text"})) {
        assert_eq!(answer["error"]["code"], -32601, "{answer}");
    }
}

#[test]
fn subscriptions_are_for_existing_resources_of_legacy_clients() {
    let world = World::new();
    let mut client = legacy_of(serving(&world, CONTRACT_OFFERS), &["--watch"]);
    for method in ["resources/subscribe", "resources/unsubscribe"] {
        let [legacy, modern] = both(&mut client, method, &json!({"uri": "test://text"}));
        assert_eq!(legacy["result"], json!({}), "{legacy}");
        assert_eq!(modern["error"]["code"], -32601, "{modern}");
        assert_eq!(client.request(method, &json!({"uri": "test://none"}))["error"]["code"], -32002);
    }
}

#[test]
fn prompts_are_filled_in() {
    let world = World::new();
    let mut client = client(&world);
    let words =
        |role: &str, text: &str| json!({"role": role, "content": {"type": "text", "text": text}});
    for answer in both(&mut client, "prompts/get", &json!({"name": "simple"})) {
        let messages = json!([words("user", "Hello."), words("assistant", "Hello to you.")]);
        assert_eq!(answer["result"]["messages"], messages, "{answer}");
    }
    let filled = json!({"name": "filled", "arguments": {"one": "1", "two": "2"}});
    for answer in both(&mut client, "prompts/get", &filled) {
        let messages = &answer["result"]["messages"];
        assert_eq!(messages[0], words("user", r#"[("one", "1"), ("two", "2")]"#), "{answer}");
        assert_eq!(messages[1]["content"]["resource"]["uri"], "test://inside");
    }
    for (params, why) in [
        (json!({"name": "none"}), "no prompt `none`"),
        (json!({"name": "filled", "arguments": {"two": "2"}}), "`one` is required"),
        (json!({"name": "filled", "arguments": {"one": 1}}), "`one` is not a string"),
    ] {
        for answer in both(&mut client, "prompts/get", &params) {
            assert_eq!(answer["error"]["code"], -32602, "{answer}");
            assert!(answer["error"]["message"].as_str().unwrap().contains(why), "{answer}");
        }
    }
}

#[test]
fn arguments_are_completed_with_at_most_a_hundred_values() {
    let world = World::new();
    let mut client = client(&world);
    let of = |reference: Value, argument: &str| json!({"ref": reference, "argument": {"name": argument, "value": "x"}});
    let prompt = json!({"type": "ref/prompt", "name": "filled"});
    for answer in both(&mut client, "completion/complete", &of(prompt.clone(), "one")) {
        let values = answer["result"]["completion"]["values"]
            .as_array()
            .unwrap_or_else(|| panic!("{answer}"));
        assert_eq!((values.len(), &values[0]), (100, &json!("filled-one-x0")));
    }
    // The plugin repeats the argument, here with a character that changes the direction of a text.
    let mut hidden = of(prompt.clone(), "one");
    hidden["argument"]["value"] = "x\u{202e}".into();
    for answer in both(&mut client, "completion/complete", &hidden) {
        assert_eq!(answer["result"]["completion"]["values"], json!([]), "{answer}");
    }
    let template = json!({"type": "ref/resource", "uri": "test://template/{id}/data"});
    assert_eq!(
        client.request("completion/complete", &of(template, "id"))["result"]["completion"]["values"],
        json!([])
    );
    for (reference, argument) in
        [(prompt, "three"), (json!({"type": "ref/prompt", "name": "none"}), "one")]
    {
        assert_eq!(
            client.request("completion/complete", &of(reference, argument))["error"]["code"],
            -32602
        );
    }
}

#[test]
fn resource_may_ask_the_client_in_either_revision() {
    let world = World::new();
    let capabilities = json!({"elicitation": {"form": {}}});
    let filled = json!({"action": "accept", "content": {"name": "Ada"}});
    let mut client = Client::legacy(serving(&world, CONTRACT_OFFERS), &capabilities);
    for (method, params, said) in [
        ("resources/read", json!({"uri": "test://asked"}), "/result/contents/0/text"),
        ("prompts/get", json!({"name": "asked"}), "/result/messages/0/content/text"),
    ] {
        let id = client.begin(method, &params);
        let question = client.receive_method("elicitation/create");
        client.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": filled}));
        let answer = client.answer(id);
        assert!(answer.pointer(said).unwrap().as_str().unwrap().contains("Ada"), "{answer}");
        let asked = client.request_modern(method, params.clone(), &capabilities);
        assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
        assert_eq!(
            asked["result"]["inputRequests"]["who"]["method"], "elicitation/create",
            "{asked}"
        );
        let mut again = params;
        again["requestState"] = asked["result"]["requestState"].clone();
        again["inputResponses"] = json!({"who": filled});
        let answer = client.request_modern(method, again, &capabilities);
        assert!(answer.pointer(said).unwrap().as_str().unwrap().contains("Ada"), "{answer}");
    }
}
