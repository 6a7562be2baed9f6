//! The hostile programs through every way to run one: the command, MCP of both lifecycles, and the
//! HTTP API, where an operator denies each question.

use super::hostile::{ABUSE, REACHES, WRITES};
use super::served::{FORMS, run, text};
use palisade_tests::api::Api;
use palisade_tests::mcp::Client;
use palisade_tests::{Program, World};
use serde_json::{Value, json};

/// The text that no program may return.
const SECRET: &str = "a secret outside";

/// Returns a world with a secret outside of its workspace, and with these lines in the user's
/// configuration.
fn world_with(more: &str) -> World {
    let world = World::new();
    world.file("there.txt", "a").file(".git/config", "[core]\n");
    std::fs::write(world.outer().join("secret.txt"), SECRET).unwrap();
    let own = world.home().join(".config/palisade");
    std::fs::create_dir_all(&own).unwrap();
    let rules = format!("{more}\n[confirm.tools]\npatch_file = \"deny\"\n");
    std::fs::write(own.join("palisade.toml"), rules).unwrap();
    world
}

fn world() -> World {
    world_with("")
}

/// Checks that a program had no effect and learnt nothing.
#[track_caller]
fn held(world: &World, code: &str, said: &str) {
    assert!(world.read("x.txt").is_none(), "{code}: it has written");
    assert_eq!(world.read("there.txt").as_deref(), Some("a"), "{code}");
    assert_eq!(world.read(".git/config").as_deref(), Some("[core]\n"), "{code}");
    assert!(!said.contains(SECRET), "{code}: {said}");
    assert!(!said.contains("boa"), "{code}: {said}");
}

fn all() -> impl Iterator<Item = &'static str> {
    WRITES.into_iter().chain(ABUSE).chain(REACHES)
}

#[test]
fn sixty_programs_are_held_through_the_command() {
    assert_eq!(all().count(), 60);
    let world = world();
    for code in all() {
        let words = ["run", "-", "--json", "--timeout", "500ms"];
        let ran = Program::new(&world).args(words).stdin(code).run();
        assert_ne!(ran.code, 1, "{code}: {}", ran.stderr);
        held(&world, code, &(ran.stdout + &ran.stderr));
    }
}

fn serving(world: &World) -> Client {
    Client::start_with(Program::new(world), &["--code-mode", "--timeout", "500ms"])
}

/// Checks that the server still runs programs.
#[track_caller]
fn next(answer: &Value) {
    assert_eq!(text(answer), "42");
}

const NEXT: &str = "return tools.calculate({expression: '6 * 7'})";

#[test]
fn sixty_programs_are_held_through_the_stateful_protocol() {
    let world = world();
    let mut client = serving(&world).shake_hands(&json!({}));
    for code in all() {
        let answer = client.request("tools/call", &run(code));
        held(&world, code, &answer.to_string());
    }
    next(&client.request("tools/call", &run(NEXT)));
}

#[test]
fn sixty_programs_are_held_through_the_stateless_protocol() {
    let world = world();
    let mut client = serving(&world);
    let forms: Value = serde_json::from_str(FORMS).unwrap();
    for (number, code) in all().enumerate() {
        // Every second client can be asked, and does not answer.
        let capabilities = if number % 2 == 0 { &forms } else { &Value::Null };
        let capabilities = capabilities.as_object().map_or_else(|| json!({}), |it| json!(it));
        let answer = client.request_modern("tools/call", run(code), &capabilities);
        held(&world, code, &answer.to_string());
    }
    next(&client.request_modern("tools/call", run(NEXT), &json!({})));
}

/// Runs a program over the API, and returns the answer.
fn post(api: &Api, id: &str, code: &str) -> String {
    let input = json!({"code": code});
    let call = json!({"tool": "run_js", "id": id, "turn_id": "t", "input": input});
    api.client.post("/sessions/s/calls", &call).body
}

#[test]
fn sixty_programs_are_held_through_the_api() {
    let world = world_with("[confirm]\nwrite = \"deny\"");
    let api = Api::start(&world, &["--code-mode", "--timeout", "500ms"]);
    api.session("s");
    for (number, code) in all().enumerate() {
        held(&world, code, &post(&api, &format!("c{number}"), code));
    }
    assert!(post(&api, "next", NEXT).contains("42"));
    // A request cannot ask for more time than the server gives.
    let call = json!({"tool": "run_js", "id": "l", "turn_id": "t", "timeout_ms": 60_000, "input": {"code": "for (;;) {}"}});
    let late = api.client.call("s", &call);
    assert_eq!(late["error"]["detail"]["value_ms"], 500, "{late}");
}

#[test]
fn operator_is_asked_about_each_write_of_a_program() {
    let world = world();
    let api = Api::start(&world, &["--code-mode", "--timeout", "500ms"]);
    api.session("s");
    let mut events = api.operator.events("/events?after=0");
    let operator = api.operator.clone();
    let asked = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = asked.clone();
    // Ends with the server.
    std::thread::spawn(move || {
        while let Some(event) = events.next_event() {
            if event.name == "tool.confirmation_requested" {
                count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                let _ = operator.decide(&event.json(), "deny");
            }
        }
    });
    // A loop of questions takes as long as its answers.
    let few = WRITES.iter().filter(|code| !code.contains("for (") && !code.contains("Array("));
    for (number, code) in few.enumerate() {
        held(&world, code, &post(&api, &format!("c{number}"), code));
    }
    assert!(asked.load(std::sync::atomic::Ordering::Relaxed) > 10);
}

#[test]
fn answer_to_one_program_allows_no_other() {
    let world = World::new();
    let mut client = serving(&world);
    let forms: Value = serde_json::from_str(FORMS).unwrap();
    let code = "tools.write_file({path: 'x.txt', content: 'x'})";
    let asked = client.request_modern("tools/call", run(code), &forms);
    let result = &asked["result"];
    assert_eq!(result["resultType"], "input_required", "{asked}");
    let id = result["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    let accepted = json!({"action": "accept", "content": {"decision": "allow_once"}});
    for other in [
        "tools.write_file({path: 'y.txt', content: 'x'})",
        "tools.write_file({path: 'x.txt', content: 'y'})",
        "tools.delete_file({path: 'x.txt'})",
    ] {
        let mut params = run(other);
        params["requestState"] = result["requestState"].clone();
        params["inputResponses"] = json!({id.clone(): accepted});
        let answer = client.request_modern("tools/call", params, &forms);
        assert!(world.read("x.txt").is_none() && world.read("y.txt").is_none(), "{answer}");
    }
}

#[test]
fn page_of_a_program_has_the_calls_that_it_made() {
    let world = World::new();
    world.file("a.txt", "found");
    let api = Api::start(&world, &["--code-mode"]);
    api.session("s");
    let code = "tools.read_file({path: 'a.txt'}); try { tools.read_file({path: 'no'}) } catch {}; return 1";
    let call = json!({"tool": "run_js", "id": "c", "turn_id": "t", "input": {"code": code}});
    assert_eq!(api.client.call("s", &call)["output"], "1");
    let mut page = Value::Null;
    palisade_tests::api::until("both calls are recorded", || {
        page = api.operator.get("/calls/c").message();
        page["nested"].as_array().is_some_and(|nested| {
            nested.len() == 2 && nested.iter().all(|call| !call["ended_at"].is_null())
        })
    });
    let nested = page["nested"].as_array().unwrap();
    let of = |key: &str| nested.iter().map(|call| call[key].clone()).collect::<Vec<_>>();
    assert_eq!(of("tool"), ["read_file", "read_file"]);
    assert_eq!(of("call_id"), ["c.1", "c.2"]);
    assert_eq!(of("state"), ["succeeded", "failed"]);
    assert_eq!(page["parent_id"], Value::Null);
    let inner = api.operator.get("/calls/c.1").message();
    assert_eq!(inner["parent_id"], page["id"]);
}
