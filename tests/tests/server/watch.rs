//! `palisade watch`: lines of JSON in a pipe, and questions and answers at a terminal.

use crate::served;
use crate::terminal::Terminal;
use palisade_tests::api::{Api, write};
use palisade_tests::{Program, World};
use serde_json::{Value, json};
use std::fs::OpenOptions;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::OpenOptionsExt as _;
use std::process::Child;
use std::time::Duration;

const PROMPT: &str =
    "Allow write_file (class write)? [y]es, [n]o, this [s]ession, show the [w]hole:";

/// A program that is killed with the test.
struct Watching(Child);

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn url(api: &Api) -> String {
    format!("http://{}", api.endpoint.address)
}

/// Starts the command at a terminal, and waits until this number of readers is
/// attached.
fn at_terminal(api: &Api, world: &World, readers: u64) -> (Terminal, Watching) {
    let mut terminal = Terminal::new();
    let mut command = terminal.command(world, &["watch", &url(api)]);
    command.stdin(terminal.stream()).stdout(terminal.stream()).stderr(terminal.stream());
    let watching = Watching(command.spawn().unwrap());
    terminal.shows("Ctrl-C ends this");
    attached(api, readers);
    (terminal, watching)
}

/// Waits until this number of readers is attached.
fn attached(api: &Api, readers: u64) {
    palisade_tests::api::until("the stream is open", || {
        let metrics = api.operator.get("/metrics").body;
        let line = metrics.lines().find(|line| line.starts_with("palisade_event_readers"));
        line.is_some_and(|line| line.ends_with(&format!(" {readers}")))
    });
}

#[test]
fn in_a_pipe_it_prints_events_and_is_nobody_who_could_answer() {
    let world = World::new();
    let api = served(&world, &[]);
    let mut child = Program::new(&world).args(["watch", &url(&api)]).open();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let _watching = Watching(child);
    attached(&api, 1);
    let refused = api.client.call("s1", &write("c1", "a.txt"));
    assert_eq!(refused["error"]["class"], "permission_denied", "at once: {refused}");
    assert_eq!(refused["error"]["detail"]["reason"], "no_confirmer", "{refused}");
    // Each line is an event; those of a moment before may come first.
    let mut events = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let failed = events.find(|event| event["event"] == "tool.failed").unwrap();
    assert_eq!((&failed["tool_use_id"], &failed["v"]), (&json!("c1"), &json!(1)), "{failed}");
}

#[test]
fn at_a_terminal_it_asks_with_the_difference_and_gives_the_answer() {
    let world = World::new();
    world.file("a.txt", "before\n");
    let api = served(&world, &[]);
    let (mut terminal, _watching) = at_terminal(&api, &world, 1);
    let call = api.client.begin_call("s1", &write("c1", "a.txt"));
    for text in ["write_file wants to run (class write)", "-before", "+written", PROMPT] {
        terminal.shows(text);
    }
    // Neither an empty line nor another word is an answer.
    terminal.types("\na\n");
    terminal.shows("please answer y, n, s or w");
    assert_eq!(world.read("a.txt").as_deref(), Some("before\n"));
    terminal.types("y\n");
    assert_eq!(call.join().unwrap()["success"], true);
    terminal.shows("ended");
    assert_eq!(world.read("a.txt").as_deref(), Some("written\n"));
    let call = api.client.begin_call("s1", &write("c2", "b.txt"));
    terminal.shows("would create: `b.txt`");
    terminal.types("n\n");
    assert_eq!(call.join().unwrap()["error"]["class"], "user_denied");
    assert_eq!(world.read("b.txt"), None);
}

#[test]
fn at_a_terminal_it_shows_that_another_answered_first() {
    let world = World::new();
    let api = served(&world, &[]);
    let mut events = api.operator.events("/events?observer=true");
    let (mut terminal, _watching) = at_terminal(&api, &world, 2);
    let call = api.client.begin_call("s1", &write("c1", "a.txt"));
    let question = events.of_call("tool.confirmation_requested", "c1");
    terminal.shows(PROMPT);
    assert_eq!(api.operator.decide(&question, "deny").status, 200);
    terminal.shows("write_file c1: deny");
    // The answer comes too late, and answers nothing else.
    terminal.types("y\n");
    terminal.shows("no question is open");
    assert_eq!(call.join().unwrap()["error"]["class"], "user_denied");
    assert_eq!(world.read("a.txt"), None);
}

#[test]
fn question_that_was_open_before_is_asked_when_it_comes() {
    let world = World::new();
    let api = served(&world, &["--console"]);
    let mut events = api.operator.events("/events?observer=true");
    let call = api.client.begin_call("s1", &write("c1", "a.txt"));
    let _ = events.of_call("tool.confirmation_requested", "c1");
    let (mut terminal, _watching) = at_terminal(&api, &world, 2);
    terminal.shows(PROMPT);
    terminal.types("y\n");
    assert_eq!(call.join().unwrap()["success"], true);
}

/// Backpressure: when no process reads the output pipe, the command stops reading the event stream.
/// The server then drops events, and the command's memory does not grow.
#[test]
fn unread_output_stops_the_stream() {
    const MOST: usize = 64;
    let world = World::new();
    let token = world.outer().join("token");
    let private = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&token);
    private.unwrap().write_all(b"0123456789abcdef0123456789abcdef").unwrap();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", server.local_addr().unwrap());
    let watch = Program::new(&world).args(["watch", &url, "--token-file"]).args([token]);
    let _watching = Watching(watch.open());
    let (mut stream, _) = server.accept().unwrap();
    // A write that takes longer is one that waits for a reader.
    stream.set_write_timeout(Some(Duration::from_secs(2))).unwrap();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    let event = format!("id: 1\nevent: x\ndata: {{\"a\":\"{}\"}}\n\n", "x".repeat(1 << 20));
    let taken = (0..MOST).take_while(|_| stream.write_all(event.as_bytes()).is_ok()).count();
    assert!((1..MOST).contains(&taken), "{taken} MiB were read");
}
