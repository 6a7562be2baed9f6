//! A session belongs to its client, and gets no more than the host's own.

use super::world::{CLIENT, OPERATOR, OTHER, Sender, World};
use palisade::workspace::Workspace;
use palisade_server::Attached;
use palisade_server::journal::{Record, SessionOpened, Timestamp};
use serde_json::{Value, json};
use std::fs;
use std::sync::Arc;

#[tokio::test]
async fn session_of_another_client_does_not_exist() {
    let world = World::new();
    world.session(&CLIENT, "s1").await;
    let read = json!({"tool": "read_file", "input": {"path": "a"}});
    let missing = (404, "session_not_found".to_owned());
    for path in ["", "/definitions", "/events"] {
        let path = format!("/sessions/s1{path}");
        assert_eq!(world.get(&OTHER, &path).await.problem(), missing, "{path}");
    }
    for (path, body) in [
        ("/calls", read),
        ("/cancel", json!({})),
        ("/close", json!({})),
        ("/replies", json!({"reply": {}})),
    ] {
        let path = format!("/sessions/s1{path}");
        assert_eq!(world.post(&OTHER, &path, body).await.problem(), missing, "{path}");
    }
    assert_eq!(world.get(&OTHER, "/sessions").await.json()["items"], json!([]));
    assert_eq!(world.get(&CLIENT, "/sessions").await.json()["items"][0]["id"], "s1");
    let taken = world.post(&OTHER, "/sessions", json!({"id": "s1"})).await;
    assert_eq!(taken.problem(), (409, "session_exists".to_owned()));
}

#[tokio::test]
async fn id_of_a_closed_session_stays_with_its_client() {
    let world = World::new();
    world.session(&CLIENT, "s1").await;
    let closed = world.post(&CLIENT, "/sessions/s1/close", json!({})).await;
    assert_eq!(closed.status, 204);
    let call = json!({"tool": "read_file", "input": {"path": "a"}});
    assert_eq!(world.post(&CLIENT, "/sessions/s1/calls", call).await.problem().0, 404);
    for stranger in [OTHER, OPERATOR] {
        let taken = world.post(&stranger, "/sessions", json!({"id": "s1"})).await;
        assert_eq!(taken.problem().0, 409);
    }
    assert_eq!(world.get(&OTHER, "/sessions/s1").await.problem().0, 404);
    world.session(&CLIENT, "s1").await;
}

#[tokio::test]
async fn id_of_a_session_before_the_restart_stays_with_its_client() {
    let world = World::new();
    let before = |id: &str, client: Option<&str>| {
        Record::SessionOpened(Box::new(SessionOpened {
            id: id.into(),
            client: client.map(Into::into),
            title: None,
            origin: "http".into(),
            protocol: None,
            workspace: None,
            at: Timestamp::now(),
        }))
    };
    world.server.journal().commit(before("theirs", Some("other"))).await.unwrap();
    world.server.journal().commit(before("operators", None)).await.unwrap();
    for (sender, id, status) in [
        (CLIENT, "theirs", 409),
        (OPERATOR, "theirs", 409),
        (CLIENT, "operators", 409),
        (OTHER, "theirs", 201),
        (OPERATOR, "operators", 201),
    ] {
        let answer = world.post(&sender, "/sessions", json!({"id": id})).await;
        assert_eq!(answer.status, status, "{sender:?} {id}");
    }
}

#[tokio::test]
async fn operator_sees_all_sessions_in_pages() {
    let world = World::new();
    for number in 0..5 {
        let id = format!("s{number}");
        world.session(if number % 2 == 0 { &CLIENT } else { &OTHER }, &id).await;
    }
    let mut ids = Vec::new();
    let mut path = "/sessions?limit=2".to_owned();
    loop {
        let page = world.get(&OPERATOR, &path).await.json();
        let items = page["items"].as_array().unwrap();
        assert!(items.len() <= 2);
        ids.extend(items.iter().map(|item| item["id"].as_str().unwrap().to_owned()));
        let Some(next) = page["next_cursor"].as_str() else { break };
        path = format!("/sessions?limit=2&cursor={next}");
    }
    assert_eq!(ids, ["s4", "s3", "s2", "s1", "s0"]);
    let page = world.get(&CLIENT, "/sessions?limit=2").await.json();
    let ids = |page: &Value| -> Vec<String> {
        let items = page["items"].as_array().unwrap().iter();
        items.map(|item| item["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(&page), ["s4", "s2"]);
    let next = page["next_cursor"].as_str().unwrap();
    let page = world.get(&CLIENT, &format!("/sessions?limit=2&cursor={next}")).await.json();
    assert_eq!((ids(&page), &page["next_cursor"]), (vec!["s0".to_owned()], &Value::Null));
}

#[tokio::test]
async fn policy_of_a_session_only_tightens() {
    let world = World::with(Attached::Always, |host| host, |settings| settings);
    let policy = json!({"id": "s1", "policy": {"write": "auto", "read": "deny"}});
    assert_eq!(world.post(&CLIENT, "/sessions", policy).await.status, 201);
    let read = json!({"tool": "read_file", "input": {"path": "a"}});
    let denied = world.post(&CLIENT, "/sessions/s1/calls", read).await.json();
    assert_eq!(denied["error"]["detail"]["reason"], "policy", "{denied}");
    let world = Arc::new(world);
    let write = json!({"tool": "write_file", "input": {"path": "a", "content": "x"}});
    let call = world.begin_call(CLIENT, "s1", write);
    world.answer(&OPERATOR, &world.question().await, "deny").await;
    assert_eq!(call.await.unwrap().json()["error"]["class"], "user_denied", "it is still asked");
    let unknown = json!({"policy": {"write": "never"}});
    assert_eq!(world.post(&CLIENT, "/sessions", unknown).await.problem().1, "body_invalid");
}

#[tokio::test]
async fn session_has_only_the_tools_that_it_names() {
    let world = World::new();
    let body = json!({"id": "s1", "tools": ["read_file", "files/list_dir"]});
    let opened = world.post(&CLIENT, "/sessions", body).await;
    assert_eq!((opened.status.as_u16(), opened.header("location")), (201, Some("/sessions/s1")));
    assert_eq!(opened.json()["tools"], json!(["read_file", "files/list_dir"]));
    let format = "/sessions/s1/definitions?format=openai&strict=true";
    let definitions = world.get(&CLIENT, format).await.json();
    let list = definitions["definitions"].as_array().unwrap();
    let mut names: Vec<_> = list.iter().map(|tool| tool["function"]["name"].clone()).collect();
    names.sort_by_key(Value::to_string);
    assert_eq!(names, [json!("list_dir"), json!("read_file")]);
    let call = json!({"tool": "calculate", "input": {"expression": "1"}});
    let refused = world.post(&CLIENT, "/sessions/s1/calls", call).await.json();
    assert_eq!(refused["error"]["detail"]["reason"], "not_allowed", "{refused}");
    for tools in [json!(["no_such_tool"]), json!(["native/read_file"])] {
        let refused = world.post(&CLIENT, "/sessions", json!({"tools": tools})).await;
        assert_eq!(refused.problem(), (422, "body_invalid".to_owned()));
    }
}

#[tokio::test]
async fn session_gets_no_tool_that_the_host_forbids() {
    let only = |host: palisade::HostBuilder| {
        host.allow(palisade::Allowed::Only(vec!["read_file".to_owned()]))
    };
    let world = World::with(Attached::WhileWatched, only, |settings| settings);
    let refused = world.post(&CLIENT, "/sessions", json!({"tools": ["write_file"]})).await;
    assert_eq!(refused.problem().0, 422);
    assert!(refused.json()["detail"].as_str().unwrap().contains("does not allow"));
}

#[tokio::test]
async fn workspace_has_to_be_one_of_the_allowed() {
    let other = tempfile::tempdir().unwrap();
    fs::write(other.path().join("a"), "there").unwrap();
    let workspace = Arc::new(Workspace::open(other.path()).unwrap());
    let root = workspace.root().to_str().unwrap().to_owned();
    let world =
        World::with(Attached::WhileWatched, |host| host, |settings| settings.workspace(workspace));
    let body = json!({"id": "s1", "workspace": root});
    assert_eq!(world.post(&CLIENT, "/sessions", body).await.status, 201);
    let call = json!({"tool": "read_file", "input": {"path": "a"}});
    let result = world.post(&CLIENT, "/sessions/s1/calls", call).await.json();
    assert!(result["output"].as_str().unwrap().contains("there"), "{result}");
    for path in ["/etc", "/", "", "."] {
        let refused = world.post(&CLIENT, "/sessions", json!({"workspace": path})).await;
        assert_eq!(refused.problem(), (422, "workspace_not_allowed".to_owned()), "{path}");
    }
}

#[tokio::test]
async fn open_sessions_of_a_client_are_bounded() {
    let few = |settings: palisade_server::Settings| settings.sessions_per_caller(2);
    let world = World::with(Attached::WhileWatched, |host| host, few);
    for id in ["a", "b"] {
        world.session(&CLIENT, id).await;
    }
    let refused = world.post(&CLIENT, "/sessions", json!({})).await;
    assert_eq!(refused.problem(), (429, "too_many_sessions".to_owned()));
    world.session(&OTHER, "c").await;
    world.post(&CLIENT, "/sessions/a/close", json!({})).await;
    assert_eq!(world.post(&CLIENT, "/sessions", json!({})).await.status, 201);
}

#[tokio::test]
async fn nobody_gets_nothing() {
    let world = World::new();
    for path in
        ["/sessions", "/tools", "/plugins", "/events", "/calls", "/confirmations", "/metrics"]
    {
        let answer = world.get(&Sender::Nobody, path).await;
        assert_eq!(answer.problem(), (401, "unauthenticated".to_owned()), "{path}");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
    }
    assert_eq!(world.post(&Sender::Nobody, "/sessions", json!({})).await.problem().0, 401);
}

#[tokio::test]
async fn mounted_router_knows_its_place() {
    use tower_service::Service as _;
    let world = World::new();
    let mut program = axum::Router::new().nest("/agents", world.router.clone());
    let mut request = axum::http::Request::post("/agents/sessions")
        .header("content-type", "application/json")
        .body(axum::body::Body::from("{\"id\":\"s1\"}"))
        .unwrap();
    request.extensions_mut().insert(palisade_server::Role::Client { id: "agent".into() });
    let opened = program.call(request).await.unwrap();
    assert_eq!(opened.status(), 201);
    assert_eq!(opened.headers()["location"], "/agents/sessions/s1");
}

#[tokio::test]
async fn policy_names_what_could_be_a_tool() {
    let world = World::new();
    let open = |name: &str| json!({"policy": {"tools": {name: "deny"}}});
    let plugin = "p".repeat(255);
    for name in ["read_file", "not_there_yet", "files/read_file", &format!("{plugin}/tool")] {
        let answer = world.post(&CLIENT, "/sessions", open(name)).await;
        assert_eq!(answer.status, 201, "{answer:?}");
    }
    for name in [&"t".repeat(65), "Not a name", "/tool", &format!("p{plugin}/tool"), ""] {
        let refused = world.post(&CLIENT, "/sessions", open(name)).await;
        assert_eq!(refused.problem(), (422, "body_invalid".to_owned()), "{name}");
    }
}
