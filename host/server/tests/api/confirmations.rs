//! A question waits for an operator; the first answer wins.

use super::world::{CLIENT, OPERATOR, Sender, World};
use palisade::HostBuilder;
use palisade_server::Attached;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

fn write(id: &str) -> Value {
    json!({"id": id, "tool": "write_file", "input": {"path": "src/auth.ts", "content": "x\n"}})
}

fn world() -> Arc<World> {
    Arc::new(World::with(Attached::Always, |host| host, |settings| settings))
}

#[tokio::test]
async fn denied_write_of_the_specification() {
    let world = world();
    world.session(&CLIENT, "s1").await;
    let mut events = world.events(&OPERATOR, "/events").await;
    let call = world.begin_call(CLIENT, "s1", write("tu_01HZ_c"));
    let asked = events.until("tool.confirmation_requested").await.data;
    assert_eq!(asked["projected_modifications"], json!(["src/auth.ts"]));
    let question = world.question().await;
    assert_eq!(question["request_id"], asked["request_id"]);
    assert_eq!(world.answer(&OPERATOR, &question, "deny").await.status, 200);
    assert_eq!(events.until("tool.confirmation_resolved").await.data["decision"], "deny");
    assert_eq!(events.until("tool.failed").await.data["error_class"], "user_denied");
    let result = call.await.unwrap().json();
    assert_eq!(
        (&result["success"], &result["error"]["class"]),
        (&json!(false), &json!("user_denied"))
    );
    assert_eq!(world.read("src/auth.ts"), None);
}

#[tokio::test]
async fn allowed_write_runs() {
    let world = world();
    world.session(&CLIENT, "s1").await;
    let call = world.begin_call(CLIENT, "s1", write("a"));
    let question = world.question().await;
    let answered = world.answer(&OPERATOR, &question, "allow").await;
    assert_eq!(answered.json()["answered_by"], "ana");
    assert_eq!(call.await.unwrap().json()["success"], json!(true));
    assert_eq!(world.read("src/auth.ts").as_deref(), Some("x\n"));
}

#[tokio::test]
async fn loser_is_told_what_won() {
    let world = world();
    world.session(&CLIENT, "s1").await;
    let call = world.begin_call(CLIENT, "s1", write("a"));
    let question = world.question().await;
    let second = Sender::Operator("ben");
    let (first, other) = tokio::join!(
        world.answer(&OPERATOR, &question, "allow"),
        world.answer(&second, &question, "deny"),
    );
    let (won, lost) = if first.status == 200 { (first, other) } else { (other, first) };
    assert_eq!(lost.problem(), (409, "already_answered".to_owned()));
    let told = &lost.json()["resolution"];
    assert_eq!(told["decision"], won.json()["decision"]);
    assert_eq!(told["answered_by"], won.json()["answered_by"]);
    call.await.unwrap();
}

#[tokio::test]
async fn client_cannot_answer_its_own_question() {
    let world = world();
    world.session(&CLIENT, "s1").await;
    let call = world.begin_call(CLIENT, "s1", write("a"));
    let question = world.question().await;
    let forbidden = (403, "operator_only".to_owned());
    assert_eq!(world.answer(&CLIENT, &question, "allow").await.problem(), forbidden);
    let page = format!("/confirmations/{}", question["request_id"].as_str().unwrap());
    for path in ["/confirmations", &page, "/calls", "/calls/1", "/summary", "/metrics"] {
        assert_eq!(world.get(&CLIENT, path).await.problem(), forbidden, "{path}");
    }
    assert_eq!(world.answer(&Sender::Nobody, &question, "allow").await.problem().0, 401);
    world.answer(&OPERATOR, &question, "deny").await;
    call.await.unwrap();
}

#[tokio::test]
async fn answer_has_to_name_the_session_and_turn_of_the_question() {
    let world = world();
    world.session(&CLIENT, "s1").await;
    let call = world.begin_call(CLIENT, "s1", write("a"));
    let question = world.question().await;
    let unknown = (404, "confirmation_not_found".to_owned());
    for (key, value) in [("session_id", "s2"), ("turn_id", "t"), ("request_id", "cr_0")] {
        let mut other = question.clone();
        other[key] = json!(value);
        assert_eq!(world.answer(&OPERATOR, &other, "allow").await.problem(), unknown, "{key}");
    }
    assert_eq!(world.answer(&OPERATOR, &question, "perhaps").await.problem().0, 422);
    world.answer(&OPERATOR, &question, "allow").await;
    assert_eq!(call.await.unwrap().json()["success"], json!(true));
}

#[tokio::test]
async fn expired_question_is_gone() {
    let short = Duration::from_millis(50);
    let prepare = |host: HostBuilder| host.confirmation_timeout(short);
    let world = Arc::new(World::with(Attached::Always, prepare, |settings| settings));
    world.session(&CLIENT, "s1").await;
    let mut events = world.events(&OPERATOR, "/events").await;
    let call = world.begin_call(CLIENT, "s1", write("a"));
    let mut asked = events.until("tool.confirmation_requested").await.data;
    assert_eq!(call.await.unwrap().json()["error"]["class"], "confirmation_timeout");
    let late = world.answer(&OPERATOR, &asked, "allow").await;
    assert_eq!(late.problem(), (410, "confirmation_expired".to_owned()));
    assert_eq!(late.json()["resolution"]["decision"], "timeout");
    asked["session_id"] = json!("other");
    assert_eq!(world.answer(&OPERATOR, &asked, "allow").await.problem().0, 404);
}

#[tokio::test]
async fn always_applies_to_later_calls_of_the_session() {
    let world = world();
    world.session(&CLIENT, "s1").await;
    let call = world.begin_call(CLIENT, "s1", write("a"));
    world.answer(&OPERATOR, &world.question().await, "always").await;
    assert_eq!(call.await.unwrap().json()["success"], json!(true));
    let answer = world.post(&CLIENT, "/sessions/s1/calls", write("b")).await;
    assert_eq!(answer.json()["success"], json!(true), "nobody is asked again");
}

#[tokio::test]
async fn call_is_refused_at_once_while_nobody_is_attached() {
    let world = Arc::new(World::new());
    world.session(&CLIENT, "s1").await;
    let refused = world.post(&CLIENT, "/sessions/s1/calls", write("a")).await.json();
    assert_eq!(refused["error"]["detail"]["reason"], "no_confirmer", "{refused}");
    let attached = world.events(&CLIENT, "/events").await;
    let refused = world.post(&CLIENT, "/sessions/s1/calls", write("b")).await.json();
    assert_eq!(refused["error"]["detail"]["reason"], "no_confirmer", "a client cannot answer");
    drop(attached);
    let attached = world.events(&OPERATOR, "/sessions/s1/events").await;
    let call = world.begin_call(CLIENT, "s1", write("c"));
    let question = world.question().await;
    drop(attached);
    assert_eq!(world.answer(&OPERATOR, &question, "allow").await.status, 200, "within the grace");
    assert_eq!(call.await.unwrap().json()["success"], json!(true));
}

#[tokio::test]
async fn question_shows_the_diff_of_the_change() {
    let world = world();
    std::fs::create_dir(world.at("src")).unwrap();
    std::fs::write(world.at("src/auth.ts"), "old\nsame\n").unwrap();
    world.session(&CLIENT, "s1").await;
    let input = json!({"path": "src/auth.ts", "old": "old", "new": "new"});
    let patch = json!({"id": "p", "tool": "patch_file", "input": input});
    let call = world.begin_call(CLIENT, "s1", patch);
    let question = world.question().await;
    let path = format!("/confirmations/{}", question["request_id"].as_str().unwrap());
    let page = world.get(&OPERATOR, &path).await.json();
    let diff = "--- a/src/auth.ts\n+++ b/src/auth.ts\n@@ -1,2 +1,2 @@\n-old\n+new\n same\n";
    let file = &page["files"][0];
    assert_eq!((&file["change"], &file["diff"]), (&json!("modify"), &json!(diff)), "{page}");
    assert_eq!((&file["added"], &file["removed"]), (&json!(1), &json!(1)));
    let shown: Value = serde_json::from_str(page["input"].as_str().unwrap()).unwrap();
    assert_eq!(shown, input);
    assert_eq!(page["resolution"], Value::Null);
    assert_eq!(page["client"], "agent");
    assert!(page["workspace"].as_str().unwrap().ends_with("/ws"));
    assert!(page["remaining_ms"].as_u64().unwrap() <= page["valid_for_ms"].as_u64().unwrap());
    world.answer(&OPERATOR, &question, "deny").await;
    call.await.unwrap();
    let mut events = world.events_after(&OPERATOR, "/events", Some("0")).await;
    events.until("tool.failed").await;
    let page = world.get(&OPERATOR, &path).await.json();
    assert_eq!((&page["files"], &page["remaining_ms"]), (&Value::Null, &json!(0)));
    let resolution = &page["resolution"];
    assert_eq!(
        (&resolution["decision"], &resolution["answered_by"]),
        (&json!("deny"), &json!("ana"))
    );
    assert_eq!(
        world.get(&OPERATOR, "/confirmations/cr_0").await.problem().1,
        "confirmation_not_found"
    );
}
