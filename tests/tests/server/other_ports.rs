//! A server at another port of the host, which gets the operator's cookie from the browser, has no
//! use for it: a cookie is one half of a login, and the other half stays with the console's origin.

use crate::served;
use palisade_tests::api::{Api, Sender, write};
use palisade_tests::mcp_http::Answer;
use palisade_tests::{Program, World};
use serde_json::{Value, json};
use std::io::ErrorKind;
use std::net::TcpListener;

/// The parts of described paths, each with a value.
const PARTS: [(&str, &str); 5] = [
    ("{session_id}", "s1"),
    ("{call_id}", "c1"),
    ("{turn_id}", "t1"),
    ("{request_id}", "cr_1"),
    ("{key}", "1"),
];
/// The paths that need no login.
const PUBLIC: [&str; 3] = ["/healthz", "/readyz", "/openapi.json"];

/// The halves of a login as headers.
struct Halves {
    cookie: String,
    page_key: String,
}

impl Halves {
    fn of(api: &Api) -> Self {
        let code = api.operator.post("/logins", &json!({})).message()["code"].clone();
        let answer = own_page(api).post("/login", &json!({"code": code}));
        let cookie = answer.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
        let page_key = answer.message()["page_key"].as_str().unwrap().to_owned();
        Self { cookie, page_key }
    }
}

/// A sender that says of itself to be a page of the server, as any program can.
fn own_page(api: &Api) -> Sender {
    let address = &api.endpoint.address;
    let sender = Sender::new(address).with("Origin", &format!("http://{address}"));
    sender.with("Sec-Fetch-Site", "same-origin")
}

fn with_key(sender: Sender, key: &str) -> Sender {
    sender.with("Palisade-Page-Key", key)
}

/// The senders with a half of a login, each with the code of its refusal.
fn halves(api: &Api) -> Vec<(Sender, &'static str)> {
    let (one, other) = (Halves::of(api), Halves::of(api));
    let cookie = || own_page(api).with("Cookie", &one.cookie);
    let value = one.cookie.split_once('=').unwrap().1;
    vec![
        (cookie(), "page_key_needed"),
        (with_key(cookie(), &other.page_key), "login_ended"),
        (with_key(cookie(), value), "login_ended"),
        (with_key(cookie(), ""), "login_ended"),
        (with_key(own_page(api), &one.page_key), "login_ended"),
        (with_key(own_page(api).with("Cookie", &other.cookie), &one.page_key), "login_ended"),
    ]
}

#[track_caller]
fn is_refused(answer: &Answer, code: &str, what: &str) {
    assert_eq!(answer.status, 401, "{what} {answer:?}");
    assert_eq!(answer.message()["code"], code, "{what} {answer:?}");
}

/// Returns the ids of all sessions.
fn sessions(api: &Api) -> Vec<Value> {
    let listed = api.operator.get("/sessions").message();
    listed["items"].as_array().unwrap().iter().map(|session| session["id"].clone()).collect()
}

/// Returns each described method with its path, and the paths of the program beside them.
fn routes(api: &Api) -> Vec<(String, String)> {
    let described = api.operator.get("/openapi.json").message();
    let paths = described["paths"].as_object().unwrap().iter();
    let described = paths.filter(|(path, _)| !PUBLIC.contains(&path.as_str()));
    let all = described.flat_map(|(path, methods)| {
        let path = PARTS.iter().fold(path.clone(), |path, (name, id)| path.replace(name, id));
        let methods = methods.as_object().unwrap().keys();
        methods.map(move |method| (method.to_uppercase(), path.clone())).collect::<Vec<_>>()
    });
    let own = [("POST", "/logins"), ("GET", "/nothing"), ("POST", "/nothing")];
    all.chain(own.map(|(method, path)| (method.to_owned(), path.to_owned()))).collect()
}

#[test]
fn half_of_a_login_is_refused_at_every_path_and_changes_nothing() {
    let world = World::new();
    let api = served(&world, &[]);
    let (routes, before) = (routes(&api), sessions(&api));
    assert!(routes.len() > 20, "{routes:?}");
    for (sender, code) in halves(&api) {
        for (method, path) in &routes {
            let body = if method == "POST" { "{}" } else { "" };
            is_refused(&sender.send(method, path, body), code, &format!("{method} {path}"));
        }
        for path in ["/", "/console/js/main.js", "/readyz"] {
            assert_eq!(sender.get(path).status, 200, "{path} is for everybody");
        }
    }
    assert_eq!(sessions(&api), before);
    assert_eq!(api.operator.get("/sessions/s1").message()["state"], "open");
}

#[test]
fn half_of_a_login_answers_no_question() {
    let world = World::new();
    let api = served(&world, &["--console"]);
    let mut events = api.client.events("/events?after=0");
    let call = api.client.begin_call("s1", &write("c1", "a.txt"));
    let question = events.of_call("tool.confirmation_requested", "c1");
    for (sender, code) in halves(&api) {
        for decision in ["allow", "always", "deny"] {
            is_refused(&sender.decide(&question, decision), code, decision);
        }
    }
    let open = api.operator.get("/confirmations").message();
    assert_eq!(open["items"].as_array().unwrap().len(), 1, "{open}");
    assert_eq!(world.read("a.txt"), None);
    let Halves { cookie, page_key } = Halves::of(&api);
    let page = with_key(own_page(&api).with("Cookie", &cookie), &page_key);
    assert_eq!(page.decide(&question, "allow").status, 200, "both halves answer");
    assert_eq!(call.join().unwrap()["success"], true);
    assert!(world.read("a.txt").is_some());
}

#[test]
fn half_of_a_login_ends_no_login() {
    let world = World::new();
    let api = served(&world, &[]);
    let Halves { cookie, page_key } = Halves::of(&api);
    let (cookie, key) = (own_page(&api).with("Cookie", &cookie), page_key);
    let page = with_key(cookie.clone(), &key);
    is_refused(&cookie.post("/logout", &json!({})), "page_key_needed", "the cookie alone");
    for half in [with_key(cookie, &Halves::of(&api).page_key), with_key(own_page(&api), &key)] {
        assert_eq!(half.post("/logout", &json!({})).status, 204, "it has no login to end");
    }
    assert_eq!(page.get("/confirmations").status, 200);
    assert_eq!(page.post("/logout", &json!({})).status, 204);
    is_refused(&page.get("/confirmations"), "login_ended", "both halves have ended");
}

/// A login ends within a day, so that it must not be able to make another one.
#[test]
fn login_makes_no_further_login() {
    let world = World::new();
    let api = served(&world, &[]);
    let Halves { cookie, page_key } = Halves::of(&api);
    let page = with_key(own_page(&api).with("Cookie", &cookie), &page_key);
    assert_eq!(page.post("/sessions", &json!({})).status, 201, "it is the operator's");
    let refused = page.post("/logins", &json!({}));
    assert_eq!(refused.status, 403, "{refused:?}");
    assert_eq!(refused.message()["code"], "operator_token_needed", "{refused:?}");
    let issued = api.operator.post("/logins", &json!({}));
    assert!(issued.status == 200 && issued.message()["code"].is_string(), "{issued:?}");
}

#[test]
fn nobody_else_can_listen_at_the_other_loopback_address() {
    if TcpListener::bind("[::1]:0").is_err() {
        palisade_tests::skip("this machine has no `::1`");
        return;
    }
    let world = World::new();
    let api = served(&world, &[]);
    let (_, port) = api.endpoint.address.rsplit_once(':').unwrap();
    let taken = TcpListener::bind(format!("[::1]:{port}"));
    assert!(taken.is_err(), "a browser leads the name of the console to this address first");
}

#[test]
fn localhost_leads_the_program_to_the_server_that_keeps_the_token() {
    let Ok(other) = TcpListener::bind("[::1]:0") else {
        palisade_tests::skip("this machine has no `::1`");
        return;
    };
    other.set_nonblocking(true).unwrap();
    let port = other.local_addr().unwrap().port();
    let world = World::new();
    let program = Program::new(&world);
    let api = Api::at(&format!("127.0.0.1:{port}"), program, &world.home(), &[]);
    let url = format!("http://localhost:{port}");
    let ran = Program::new(&world).args(["console", &url]).run().exits_with(0);
    // The name is not used either, since a browser would ask the other server.
    assert!(ran.stdout.contains(&format!("http://{}", api.endpoint.address)), "{}", ran.stdout);
    let asked = other.accept().map(|(_, address)| address);
    assert_eq!(asked.unwrap_err().kind(), ErrorKind::WouldBlock, "the other one is not asked");
}
