//! Programs of clients that answer with a later call: the program is run again with the results of
//! the calls that it has made, and none of them runs twice.

use super::served::{FORMS, client, run, text};
use palisade_tests::mcp::Client;
use palisade_tests::{Program, World};
use serde_json::{Value, json};

const WRITES: &str = "tools.write_file({path: 'a.txt', content: 'a'}); \
    tools.write_file({path: 'b.txt', content: 'b'}); return 'done'";

/// Sends a round of a program's call.
pub(super) fn round(client: &mut Client, code: &str, state: &Value, answers: &Value) -> Value {
    let mut params = run(code);
    if !state.is_null() {
        params["requestState"] = state.clone();
        params["inputResponses"] = answers.clone();
    }
    client.request_modern("tools/call", params, &serde_json::from_str(FORMS).unwrap())
}

/// Returns the answer to the question about the call of this number.
pub(super) fn answer(number: usize, decision: &str) -> Value {
    let accepted = json!({"action": "accept", "content": {"decision": decision}});
    json!({ (format!("palisade.confirm.{number}")): accepted })
}

/// Returns the keys of the open questions, and the state.
#[track_caller]
pub(super) fn questions(asked: &Value) -> (Vec<String>, Value) {
    let result = &asked["result"];
    assert_eq!(result["resultType"], "input_required", "{asked}");
    let keys = result["inputRequests"].as_object().unwrap().keys().cloned().collect();
    (keys, result["requestState"].clone())
}

#[test]
fn each_write_is_asked_about_and_none_runs_twice() {
    let world = World::new();
    let mut client = client(&world);
    let asked = round(&mut client, WRITES, &Value::Null, &Value::Null);
    let (keys, state) = questions(&asked);
    assert_eq!(keys, ["palisade.confirm.1"]);
    let form = &asked["result"]["inputRequests"]["palisade.confirm.1"]["params"];
    let message = form["message"].as_str().unwrap();
    assert!(
        message.contains(r#"Called by another tool: run_js (plugin code), at "line 1""#),
        "{message}"
    );
    assert!(world.read("a.txt").is_none());
    let asked = round(&mut client, WRITES, &state, &answer(1, "allow_once"));
    let (keys, state) = questions(&asked);
    assert_eq!(keys, ["palisade.confirm.2"]);
    assert_eq!(world.read("a.txt").as_deref(), Some("a"));
    std::fs::remove_file(world.root().join("a.txt")).unwrap();
    let done = round(&mut client, WRITES, &state, &answer(2, "allow_once"));
    assert_eq!(text(&done), "done");
    assert_eq!(world.read("b.txt").as_deref(), Some("b"));
    assert!(world.read("a.txt").is_none(), "the first write has run once");
}

#[test]
fn calls_that_are_declared_at_once_are_asked_about_together() {
    let world = World::new();
    let mut client = client(&world);
    let code = "const r = tools.all(['a', 'b'].map(n => ['write_file', {path: n, content: n}])); \
        return r.map(it => it.error ? it.error.class : 'written').join()";
    let (keys, state) = questions(&round(&mut client, code, &Value::Null, &Value::Null));
    assert_eq!(keys, ["palisade.confirm.1", "palisade.confirm.2"]);
    let mut answers = answer(1, "allow_once");
    answers.as_object_mut().unwrap().extend(answer(2, "deny").as_object().unwrap().clone());
    let done = round(&mut client, code, &state, &answers);
    assert_eq!(text(&done), "written,user_denied");
    assert!(world.read("a").is_some() && world.read("b").is_none());
}

#[test]
fn answer_counts_for_its_program_and_question_once() {
    let world = World::new();
    let mut client = client(&world);
    let mut ask = || questions(&round(&mut client, WRITES, &Value::Null, &Value::Null)).1;
    let (first, second, third) = (ask(), ask(), ask());
    let yes = answer(1, "allow_once");
    let other = WRITES.replace("content: 'a'", "content: 'other'");
    let refused = round(&mut client, &other, &first, &yes);
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    // An answer to a question that is not open leaves the open one.
    let (keys, _) = questions(&round(&mut client, WRITES, &second, &answer(2, "allow_once")));
    assert_eq!(keys, ["palisade.confirm.1"]);
    assert!(world.read("a.txt").is_none());
    let _ = questions(&round(&mut client, WRITES, &third, &yes));
    let used = round(&mut client, WRITES, &third, &yes);
    assert_eq!(used["error"]["code"], -32602, "{used}");
}

#[test]
fn refused_write_stays_refused_when_the_program_tries_again() {
    let world = World::new();
    let mut client = client(&world);
    let code = "let n = 0; for (let i = 0; i < 3; i++) \
        try { tools.write_file({path: 'a.txt', content: 'a'}) } catch { n++ } return n";
    let mut asked = round(&mut client, code, &Value::Null, &Value::Null);
    for number in 1..=3 {
        let (keys, state) = questions(&asked);
        assert_eq!(keys, [format!("palisade.confirm.{number}")]);
        asked = round(&mut client, code, &state, &answer(number, "deny"));
    }
    assert_eq!(text(&asked), "3");
    assert!(world.read("a.txt").is_none());
}

/// Each `shell` leaves a result of 256 KiB, of which 16 MiB has room for fewer than the 64 here.
#[test]
fn program_whose_results_have_no_room_is_not_run_again() {
    let world = World::new();
    let mut client =
        Client::start_with(Program::new(&world), &["--code-mode", "--allow", "execute"]);
    let code = "const big = {command: \"head -c 1000000 /dev/zero | tr '\\\\0' x; echo x >> log\"}; \
        for (let i = 0; i < 61; i++) tools.shell(big); \
        const r = tools.all([['write_file', {path: 'a', content: 'a'}], ['shell', big], ['shell', big], ['shell', big], ['shell', big]]); \
        return r.map(it => it.error ? it.error.class : 'done')";
    let answer = round(&mut client, code, &Value::Null, &Value::Null);
    assert_eq!(answer["error"]["code"], -32603, "{answer}");
    assert!(answer.to_string().contains("Look at what it has changed"), "{answer}");
    assert_eq!(world.read("log").unwrap().lines().count(), 65, "each has run once");
}

#[test]
fn quotas_of_files_hold_over_all_rounds() {
    let world = World::new();
    world.file("a.txt", "a");
    let mut client = Client::start_with(Program::new(&world), &["--code-mode"]);
    // 64 MiB may be written by the calls of one program.
    let code = "const text = 'x'.repeat(900000); let refused = 0; \
        for (let i = 0; i < 10; i++) { \
            const calls = [...Array(8).keys()].map(n => ['write_file', {path: `${n}`, content: text + i}]); \
            for (const {error} of tools.all(calls)) refused += error?.class === 'resource_exhausted'; \
        } \
        return refused > 0";
    let mut asked = round(&mut client, code, &Value::Null, &Value::Null);
    let mut rounds = 0;
    while asked["result"]["resultType"] == "input_required" {
        let (keys, state) = questions(&asked);
        let mut answers = serde_json::Map::new();
        for key in keys {
            let number = key.rsplit('.').next().unwrap().parse().unwrap();
            answers.extend(answer(number, "allow_once").as_object().unwrap().clone());
        }
        asked = round(&mut client, code, &state, &Value::Object(answers));
        rounds += 1;
    }
    assert!(rounds >= 3, "{asked}");
    assert_eq!(text(&asked), "true");
}

#[test]
fn programs_that_wait_are_bounded() {
    let world = World::new();
    let mut client = client(&world);
    let mut asked = 0;
    let refused = loop {
        let answer = round(&mut client, WRITES, &Value::Null, &Value::Null);
        if answer["result"]["resultType"] != "input_required" {
            break answer;
        }
        asked += 1;
    };
    assert_eq!(asked, 32);
    assert!(refused.to_string().contains("nobody can be asked"), "{refused}");
    assert!(world.read("a.txt").is_none());
}
