//! The sessions of MCP clients are sessions like any other: recorded, listed and shown, and closed
//! by the operator.

use crate::mcp_client::{KINDS, Kind, McpClient};
use palisade_tests::api::{Api, Sender, until};
use palisade_tests::mcp::Client;
use palisade_tests::{Program, World};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;

const CALCULATION: &str = "calculate";

fn calculates(client: &McpClient) -> bool {
    let answer = client.call(CALCULATION, &json!({"expression": "1"}));
    answer.status == 200 && answer.message()["result"]["isError"] == false
}

/// Returns the session of the newest call, which is none of these.
#[track_caller]
fn next_session(operator: &Sender, earlier: &[String]) -> String {
    let mut id = String::new();
    until("the call is in the journal", || {
        let calls = operator.get("/calls?limit=1").message();
        id = calls["items"][0]["session_id"].as_str().unwrap_or_default().to_owned();
        !id.is_empty() && !earlier.contains(&id)
    });
    id
}

fn shown(sender: &Sender, id: &str) -> Value {
    let answer = sender.get(&format!("/sessions/{id}"));
    assert_eq!(answer.status, 200, "{id}: {answer:?}");
    answer.message()
}

fn close(sender: &Sender, id: &str) -> u16 {
    sender.post(&format!("/sessions/{id}/close"), &json!({})).status
}

#[test]
fn session_of_an_mcp_client_is_listed_and_has_a_page() {
    let world = World::new();
    let api = Api::start(&world, &[]);
    let mut ids = Vec::new();
    for (kind, number) in KINDS.into_iter().zip(1..) {
        let client = McpClient::connect(&api, kind);
        assert!(calculates(&client), "{kind:?}");
        let id = next_session(&api.operator, &ids);
        ids.push(id.clone());
        for sender in [&api.operator, &api.client] {
            let listed = sender.get("/sessions").message();
            let items = listed["items"].as_array().unwrap();
            assert_eq!((items.len(), &items[0]["id"]), (number, &json!(id)), "{listed}");
            let session = shown(sender, &id);
            for (key, value) in [
                ("client", json!("suite 1")),
                ("origin", json!("mcp-http")),
                ("protocol", json!(kind.revision())),
                ("state", json!("open")),
                ("workspace", json!(world.root())),
                ("calls", json!(1)),
            ] {
                assert_eq!(session[key], value, "{kind:?} {session}");
            }
            let token = session["client_id"].as_str().unwrap();
            assert!(token.starts_with("token-"), "{session}");
        }
        drop(api.client.events(&format!("/sessions/{id}/events")));
    }
}

#[test]
fn operator_has_sessions_of_its_own_over_mcp() {
    let world = World::new();
    let mut api = Api::start(&world, &[]);
    let clients = api.client.clone();
    api.client = api.operator.clone();
    assert!(calculates(&McpClient::connect(&api, Kind::Stateful)));
    let id = next_session(&api.operator, &[]);
    assert_eq!(shown(&api.operator, &id)["client_id"], Value::Null);
    assert_eq!(clients.get(&format!("/sessions/{id}")).status, 404);
}

#[test]
fn sessions_of_two_runs_are_not_mixed() {
    let world = World::new();
    let mut ids = Vec::new();
    for run in 0..2 {
        let api = Api::start(&world, &[]);
        for kind in KINDS {
            assert!(calculates(&McpClient::connect(&api, kind)), "{run} {kind:?}");
            ids.push(next_session(&api.operator, &ids));
        }
        for id in &ids {
            let calls = api.operator.get(&format!("/calls?session={id}")).message();
            assert_eq!(calls["items"].as_array().map(Vec::len), Some(1), "{id}: {calls}");
        }
        for id in ids.iter().take(2 * run) {
            // Closed by the run itself, not found open by the next one.
            let mut events = api.operator.events("/events?after=0");
            events.find(|it| it.name == "session.closed" && it.json()["session_id"] == **id);
            assert_eq!(shown(&api.operator, id)["state"], "closed");
        }
        api.signal(Signal::TERM);
        assert_eq!(api.endpoint.end().code, 130);
    }
    let own: BTreeSet<_> = ids.iter().collect();
    assert_eq!(own.len(), 4, "{ids:?}");
}

#[test]
fn operator_cancels_and_closes_the_session_of_an_mcp_client() {
    let world = World::new();
    let api = Api::start(&world, &["--console"]);
    let mut events = api.operator.events("/events");
    for kind in KINDS {
        let client = McpClient::connect(&api, kind);
        let waits = |path: &str| {
            let (client, input) = (client.clone(), json!({"path": path, "content": "x"}));
            std::thread::spawn(move || client.call("write_file", &input).body)
        };
        let call = waits("cancelled.txt");
        let asked = events.find(|event| event.name == "tool.confirmation_requested").json();
        let id = asked["session_id"].as_str().unwrap().to_owned();
        let question = api.operator.get("/confirmations").message()["items"][0].clone();
        assert_eq!(question["client"], "suite 1", "{question}");
        let cancelled = api.operator.post(&format!("/sessions/{id}/cancel"), &json!({}));
        assert_eq!(cancelled.message()["cancelled"], 1, "{cancelled:?}");
        assert!(call.join().unwrap().contains("cancelled"));
        let call = waits("closed.txt");
        events.find(|event| event.name == "tool.confirmation_requested");
        assert_eq!(close(&api.operator, &id), 204);
        let ended = call.join().unwrap();
        assert!(!ended.contains("\"isError\":false"), "{ended}");
        events.find(|it| it.name == "session.closed" && it.json()["session_id"] == *id);
        assert_eq!(shown(&api.operator, &id)["state"], "closed");
        // The client comes back with a new session.
        match kind {
            Kind::Stateful => {
                until("the session of the protocol has ended", || {
                    client.call(CALCULATION, &json!({"expression": "1"})).status == 404
                });
                assert!(calculates(&McpClient::connect(&api, kind)));
            }
            Kind::Stateless => assert!(calculates(&client)),
        }
        let _another = next_session(&api.operator, &[id]);
    }
    assert_eq!((world.read("cancelled.txt"), world.read("closed.txt")), (None, None));
}

#[test]
fn session_is_closed_when_its_client_leaves() {
    let world = World::new();
    let api = Api::start(&world, &[]);
    let client = McpClient::connect(&api, Kind::Stateful);
    assert!(calculates(&client));
    let id = next_session(&api.operator, &[]);
    let mut events = api.client.events(&format!("/sessions/{id}/events"));
    assert_eq!(client.leave().status, 204);
    events.find(|event| event.name == "session.closed");
    until("it is closed", || shown(&api.operator, &id)["state"] == "closed");
    assert_eq!(close(&api.operator, &id), 404);
}

#[test]
fn claimed_name_is_shown_as_one_bounded_line() {
    let world = World::new();
    let api = Api::start(&world, &[]);
    let hostile = format!("operator\u{202e}\u{1b}[2J\n<b>{}", "x".repeat(5_000));
    let mut ids = Vec::new();
    for kind in KINDS {
        assert!(calculates(&McpClient::named(&api, kind, &hostile)), "{kind:?}");
        let id = next_session(&api.operator, &ids);
        ids.push(id.clone());
        let session = shown(&api.operator, &id);
        let name = session["client"].as_str().unwrap();
        assert!(name.starts_with("operator") && name.len() < 1_000, "{name:?}");
        assert!(!name.contains(['\u{202e}', '\u{1b}', '\n']), "{name:?}");
        assert_ne!(session["client_id"], session["client"], "{session}");
    }
}

/// Returns the sender of the operator of the only server that runs in a world.
fn operator_of(world: &World) -> Sender {
    let tokens = world.home().join(".local/state/palisade/tokens");
    let mut found = None;
    until("the server keeps its token", || {
        let files = fs::read_dir(&tokens).into_iter().flatten().filter_map(Result::ok);
        found = files.map(|file| file.path()).find_map(|path| {
            let name = path.file_name()?.to_str()?.strip_suffix(".operator.token")?.to_owned();
            Some((name.replacen('-', ":", 1), fs::read_to_string(&path).ok()?))
        });
        found.is_some()
    });
    let (address, token) = found.unwrap();
    Sender::new(&address).bearer(token.trim())
}

#[test]
fn client_over_standard_input_has_a_session_beside_the_console() {
    let world = World::new();
    let mut client = Client::start_with(Program::new(&world), &["--console"]);
    let operator = operator_of(&world);
    let answer = client.initialize("2025-11-25", &json!({}));
    assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "{answer}");
    let call = json!({"name": CALCULATION, "arguments": {"expression": "1"}});
    assert_eq!(client.request("tools/call", &call)["result"]["isError"], false);
    let id = next_session(&operator, &[]);
    let listed = operator.get("/sessions").message();
    assert_eq!(listed["items"][0]["id"], json!(id), "{listed}");
    let session = shown(&operator, &id);
    for (key, value) in [
        ("client", json!("suite 1")),
        ("client_id", Value::Null),
        ("origin", json!("mcp-stdio")),
        ("protocol", json!("2025-11-25")),
        ("state", json!("open")),
    ] {
        assert_eq!(session[key], value, "{session}");
    }
    assert_eq!(close(&operator, &id), 204);
    let refused = client.request("tools/call", &call);
    assert!(refused.to_string().contains("cancelled"), "{refused}");
    assert_eq!(shown(&operator, &id)["state"], "closed");
    let (ran, _) = client.end();
    assert_eq!(ran.code, 0, "{ran:?}");
}

#[test]
fn session_over_standard_input_ends_with_its_client() {
    let world = World::new();
    let mut client = Client::start_with(Program::new(&world), &["--console"]);
    let operator = operator_of(&world);
    let call = json!({"name": CALCULATION, "arguments": {"expression": "1"}});
    let answer = client.request_modern("tools/call", call, &json!({}));
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    let id = next_session(&operator, &[]);
    assert_eq!(shown(&operator, &id)["protocol"], "2026-07-28");
    let (ran, _) = client.end();
    assert_eq!(ran.code, 0, "{ran:?}");
    let later = Api::start(&world, &[]);
    let mut events = later.operator.events("/events?after=0");
    events.find(|event| event.name == "session.closed" && event.json()["session_id"] == *id);
    assert_eq!(shown(&later.operator, &id)["state"], "closed");
}
