//! The link to the console logs a browser in once, and the login ends with its day, its token and
//! its workspace.

use palisade_tests::api::{Api, Sender, until};
use palisade_tests::mcp_http::{Answer, Endpoint};
use palisade_tests::{Program, World};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;

/// The header of the half that a page keeps.
const PAGE_KEY: &str = "Palisade-Page-Key";

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
    let (origin, code) = ran.stdout.trim().split_once("/#login=").expect("a link");
    let port = address.rsplit(':').next().unwrap();
    assert!(origin.ends_with(&format!(".localhost:{port}")), "{ran:?}");
    code.to_owned()
}

/// Both halves of a login.
struct Login {
    address: String,
    cookie: String,
    page_key: String,
}

impl Login {
    /// Logs a browser in by a new link.
    fn by_link(world: &World, address: &str) -> Self {
        Self::by_code(address, &link(world, address))
    }

    fn by_code(address: &str, code: &str) -> Self {
        let answer = log_in(address, code);
        assert_eq!(answer.status, 200, "{answer:?}");
        let line = answer.header("set-cookie").unwrap();
        for part in ["httponly", "samesite=strict", "path=/"] {
            assert!(line.contains(part), "{line}");
        }
        let cookie = line.split(';').next().unwrap().to_owned();
        let page_key = answer.message()["page_key"].as_str().unwrap().to_owned();
        assert!(!line.contains(&page_key), "{line}");
        Self { address: address.to_owned(), cookie, page_key }
    }

    /// Returns a page of the server in the browser.
    fn page(&self) -> Sender {
        self.shown_by(browser(&self.address))
    }

    /// Adds both halves to the requests of a sender.
    fn shown_by(&self, sender: Sender) -> Sender {
        sender.with("Cookie", &self.cookie).with(PAGE_KEY, &self.page_key)
    }
}

#[test]
fn link_logs_in_once() {
    let world = World::new();
    let api = Api::start(&world, &[]);
    let address = &api.endpoint.address;
    let code = link(&world, address);
    let login = Login::by_code(address, &code);
    let again = log_in(address, &code);
    assert_eq!((again.status, again.header("set-cookie")), (401, None), "{again:?}");
    assert!(!again.body.contains("page_key"), "{again:?}");
    assert_eq!(log_in(address, "0123456789abcdef0123456789abcdef").status, 401);
    assert_eq!(sees(&login.page()), 200);
    let other = link(&world, address);
    assert_ne!(other, code);
    assert_eq!(log_in(address, &other).status, 200);
}

#[test]
fn login_counts_for_pages_of_the_server_only() {
    let world = World::new();
    let api = Api::start(&world, &[]);
    let address = &api.endpoint.address;
    let login = Login::by_link(&world, address);
    let from = |name: &str, value: &str| login.shown_by(Sender::new(address)).with(name, value);
    let own = from("Sec-Fetch-Site", "same-origin");
    assert_eq!(own.post("/sessions", &json!({})).status, 201);
    for foreign in [
        from("Sec-Fetch-Site", "cross-site"),
        from("Sec-Fetch-Site", "same-site"),
        from("Origin", "http://127.0.0.1:1"),
        // A page of unknown source changes nothing, and reads no stream, whatever it accepts.
        from("Accept", "text/event-stream"),
        from("Accept", "*/*"),
        from("Accept", "text/html"),
    ] {
        assert_eq!(foreign.post("/sessions", &json!({})).status, 403, "{foreign:?}");
        for path in ["/events", "/events?after=0", "/sessions/s1/events"] {
            assert_eq!(foreign.get(path).status, 403, "{path} {foreign:?}");
        }
    }
    let unknown = from("Accept", "*/*");
    assert_eq!(unknown.get("/confirmations").status, 200, "a plain read");
    drop(own.events("/events"));
    // Programs use tokens: a page cannot make the browser a client of `/mcp`.
    assert_eq!(own.post("/mcp", &json!({})).status, 401);
}

/// A server whose operator's token is in a file.
struct Given<'w> {
    world: &'w World,
    endpoint: Endpoint,
    operator: Sender,
}

const TOKEN: &str = "the-operators-own-token";

impl<'w> Given<'w> {
    /// Starts a server at this address with this token of the operator.
    fn start(world: &'w World, address: &str, token: &str) -> Self {
        Self::of(world, Program::new(world), address, token)
    }

    /// Starts this program for the home directory of a world.
    fn of(world: &'w World, program: Program<'_>, address: &str, token: &str) -> Self {
        let file = world.home().join("operator.token");
        let _ = fs::remove_file(&file);
        let mut options = fs::OpenOptions::new();
        let mut made = options.write(true).create_new(true).mode(0o600).open(&file).unwrap();
        made.write_all(token.as_bytes()).unwrap();
        let words = ["--operator-token-file", file.to_str().unwrap()];
        let endpoint = Endpoint::at(address, program, &words);
        let operator = Sender::new(&endpoint.address).bearer(token);
        until("the server is ready", || operator.get("/readyz").status == 200);
        Self { world, endpoint, operator }
    }

    /// Logs a browser in.
    fn login(&self) -> Login {
        let issued = self.operator.post("/logins", &json!({})).message();
        Login::by_code(&self.endpoint.address, issued["code"].as_str().unwrap())
    }

    /// Ends the server.
    fn end(self) {
        let pid = Pid::from_child(self.endpoint.child());
        kill_process(pid, Signal::TERM).expect("it can be signalled");
        let _ = self.endpoint.end();
    }

    /// Returns the text of the stored logins.
    fn stored(&self) -> String {
        let name = format!("{}.operator.logins", self.endpoint.address.replace(':', "-"));
        let file = self.world.home().join(".local/state/palisade/tokens").join(name);
        fs::read_to_string(file).unwrap()
    }
}

fn sees(page: &Sender) -> u16 {
    page.get("/confirmations").status
}

#[test]
fn login_survives_a_restart_with_the_same_token_and_keeps_its_end() {
    let world = World::new();
    let first = Given::start(&world, "127.0.0.1:0", TOKEN);
    let address = first.endpoint.address.clone();
    let login = first.login();
    let page = login.page();
    assert_eq!(sees(&page), 200);
    let stored = first.stored();
    let value = login.cookie.split('=').nth(1).unwrap();
    let has_half = stored.contains(value) || stored.contains(&login.page_key);
    assert!(stored.split(' ').count() == 3 && !has_half, "{stored}");
    first.end();
    let second = Given::start(&world, &address, TOKEN);
    assert_eq!(sees(&page), 200);
    assert_eq!(sees(&browser(&address).with("Cookie", &login.cookie)), 401, "still a half");
    // A further login stores both: the first one ends when it would have ended.
    let other = second.login().page();
    assert!(second.stored().starts_with(stored.trim_end()), "{} {stored}", second.stored());
    // It ends where the browser ends it.
    assert_eq!(page.post("/logout", &json!({})).status, 204);
    assert_eq!((sees(&page), sees(&other)), (401, 200));
    second.end();
    let third = Given::start(&world, &address, TOKEN);
    assert_eq!((sees(&page), sees(&other)), (401, 200));
    third.end();
}

#[test]
fn login_ends_with_a_new_token_or_another_workspace_or_a_forged_end() {
    let world = World::new();
    let first = Given::start(&world, "127.0.0.1:0", TOKEN);
    let address = first.endpoint.address.clone();
    let page = first.login().page();
    let stored = first.stored();
    first.end();
    let new = Given::start(&world, &address, "another-token-of-the-operator");
    assert_eq!(sees(&page), 401);
    new.end();
    let elsewhere = World::new();
    let program = Program::new(&elsewhere).env("HOME", world.home());
    let other = Given::of(&world, program, &address, TOKEN);
    assert_eq!(sees(&page), 401);
    let name = format!("{}.operator.logins", address.replace(':', "-"));
    let file = world.home().join(".local/state/palisade/tokens").join(name);
    other.end();
    let end = stored.split(' ').nth(1).unwrap();
    let later = (end.parse::<u64>().unwrap() + 86_400).to_string();
    fs::write(&file, stored.replace(end, &later)).unwrap();
    let forged = Given::start(&world, &address, TOKEN);
    assert_eq!(sees(&page), 401);
    forged.end();
    fs::write(&file, stored).unwrap();
    let again = Given::start(&world, &address, TOKEN);
    assert_eq!(sees(&page), 200, "only the changed part was wrong");
    again.end();
}

#[test]
fn login_ends_with_a_token_that_is_made_for_one_run() {
    let world = World::new();
    let api = Api::start(&world, &[]);
    let address = api.endpoint.address.clone();
    let page = Login::by_link(&world, &address).page();
    assert_eq!(sees(&page), 200);
    api.signal(Signal::TERM);
    let _ = api.endpoint.end();
    let again = Api::at(&address, Program::new(&world), &world.home(), &[]);
    assert_eq!(sees(&page), 401);
    assert_eq!(again.operator.get("/confirmations").status, 200);
}

#[test]
fn logout_ends_the_stream_of_the_browser() {
    let world = World::new();
    let api = Api::start(&world, &[]);
    let address = &api.endpoint.address;
    let pages = [(); 2].map(|()| Login::by_link(&world, address).page());
    let mut streams = pages.each_ref().map(|page| page.events("/events"));
    assert_eq!(pages[0].post("/logout", &json!({})).status, 204);
    assert!(streams[0].next_event().is_none());
    api.session("s1");
    streams[1].find(|event| event.name == "session.opened");
}

#[test]
fn command_for_the_console_names_the_file_of_a_given_token() {
    let world = World::new();
    let given = Given::start(&world, "127.0.0.1:0", TOKEN);
    let url = format!("http://{}", given.endpoint.address);
    let file = world.home().join("operator.token").display().to_string();
    let ran = Program::new(&world).args(["console", &url]).run().exits_with(2);
    assert!(ran.stderr.contains("a server listens at"), "{}", ran.stderr);
    assert!(ran.stderr.contains("--token-file"), "{}", ran.stderr);
    let ran = Program::new(&world).args(["console", &url, "--token-file", &file]).run();
    assert!(ran.exits_with(0).stdout.contains("/#login="));
    let pid = Pid::from_child(given.endpoint.child());
    kill_process(pid, Signal::TERM).expect("it can be signalled");
    let told = given.endpoint.end().stderr;
    let command = format!("palisade console {url} --token-file {file}");
    assert!(told.contains(&command), "{told}");
    let ran = Program::new(&world).args(["console", &url]).run().exits_with(2);
    assert!(ran.stderr.contains("no server runs at"), "{}", ran.stderr);
}
