//! The link to the console logs a browser in once, and the login stays with the server's address.

use palisade_tests::api::{Api, Sender};
use palisade_tests::mcp_http::Answer;
use palisade_tests::{Program, World};
use rustix::process::Signal;
use serde_json::json;

/// Returns a browser that shows a page of the server.
fn browser(address: &str) -> Sender {
    Sender::new(address).with("Origin", &format!("http://{address}"))
}

fn log_in(address: &str, code: &str) -> Answer {
    browser(address).post("/login", &json!({"code": code}))
}

/// Returns the code of a link that `palisade console` prints.
fn link(world: &World, address: &str) -> String {
    let url = format!("http://{address}");
    let ran = Program::new(world).args(["console", &url]).run().exits_with(0);
    let code = ran.stdout.trim().strip_prefix(&format!("{url}/#login=")).map(str::to_owned);
    code.unwrap_or_else(|| panic!("{ran:?}"))
}

/// Returns the cookie that a login sets.
fn cookie(answer: &Answer) -> String {
    assert_eq!(answer.status, 204, "{answer:?}");
    let line = answer.header("set-cookie").unwrap();
    for part in ["httponly", "samesite=strict", "path=/"] {
        assert!(line.contains(part), "{line}");
    }
    line.split(';').next().unwrap().to_owned()
}

#[test]
fn link_logs_in_once() {
    let world = World::new();
    let api = Api::start(&world, &[]);
    let address = &api.endpoint.address;
    let code = link(&world, address);
    let cookie = cookie(&log_in(address, &code));
    let again = log_in(address, &code);
    assert_eq!((again.status, again.header("set-cookie")), (401, None), "{again:?}");
    assert_eq!(log_in(address, "0123456789abcdef0123456789abcdef").status, 401);
    assert_eq!(browser(address).with("Cookie", &cookie).get("/confirmations").status, 200);
    let other = link(&world, address);
    assert_ne!(other, code);
    assert_eq!(log_in(address, &other).status, 204);
}

#[test]
fn cookie_counts_for_pages_of_the_server_only() {
    let world = World::new();
    let api = Api::start(&world, &[]);
    let address = &api.endpoint.address;
    let cookie = cookie(&log_in(address, &link(&world, address)));
    let from =
        |name: &str, value: &str| Sender::new(address).with("Cookie", &cookie).with(name, value);
    let own = from("Sec-Fetch-Site", "same-origin");
    assert_eq!(own.post("/sessions", &json!({})).status, 201);
    for foreign in [
        from("Sec-Fetch-Site", "cross-site"),
        from("Sec-Fetch-Site", "same-site"),
        from("Origin", "http://127.0.0.1:1"),
        // A page of unknown source changes nothing, and reads no stream.
        from("Accept", "text/event-stream"),
    ] {
        assert_eq!(foreign.post("/sessions", &json!({})).status, 403, "{foreign:?}");
        assert_eq!(foreign.get("/events").status, 403, "{foreign:?}");
    }
    // Programs use tokens: a page cannot make the browser a client of `/mcp`.
    assert_eq!(own.post("/mcp", &json!({})).status, 401);
}

#[test]
fn login_survives_a_restart_of_the_server_at_its_address() {
    let world = World::new();
    let api = Api::start(&world, &[]);
    let address = api.endpoint.address.clone();
    let cookie = cookie(&log_in(&address, &link(&world, &address)));
    let page = browser(&address).with("Cookie", &cookie);
    assert_eq!(page.get("/confirmations").status, 200);
    api.signal(Signal::TERM);
    let _ = api.endpoint.end();
    let again = Api::at(&address, Program::new(&world), &world.home(), &[]);
    assert_eq!(page.get("/confirmations").status, 200);
    assert_ne!(again.operator.get("/confirmations").status, 401);
    // It ends where the browser ends it.
    assert_eq!(page.post("/logout", &json!({})).status, 204);
    assert_eq!(page.get("/confirmations").status, 401);
}
