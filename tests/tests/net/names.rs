//! `network.name_server`: names of grants are resolved by the operator's own server, once for each
//! request, and its answers are judged like any others.

use super::server::{Server, ok};
use palisade_tests::guest::NET_FETCH;
use palisade_tests::mcp::Client;
use palisade_tests::program::Ran;
use palisade_tests::{Program, World};
use serde_json::json;
use std::fs;
use std::io::Write as _;
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};

/// A name server that answers each question for an IPv4 address with the next of its addresses,
/// again and again, until the end of the process.
struct Names {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Names {
    fn start(addresses: &[[u8; 4]]) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let names = Self { address: socket.local_addr().unwrap(), asked: Arc::default() };
        let (asked, addresses) = (names.asked.clone(), addresses.to_vec());
        std::thread::spawn(move || {
            let mut question = [0; 512];
            loop {
                let (length, from) = socket.recv_from(&mut question).unwrap();
                let answer = answer(&question[..length], &asked, &addresses);
                socket.send_to(&answer, from).unwrap();
            }
        });
        names
    }

    /// Returns the names that were asked for, in order.
    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

/// Returns the answer to a question: an address that expires at once, or none.
fn answer(question: &[u8], asked: &Mutex<Vec<String>>, addresses: &[[u8; 4]]) -> Vec<u8> {
    let name_ends = 12 + question[12..].iter().position(|byte| *byte == 0).unwrap();
    let is_v4 = question[name_ends + 1..name_ends + 3] == [0, 1];
    let mut answer = question[..2].to_vec();
    answer.extend([0x84, 0x00, 0, 1, 0, u8::from(is_v4), 0, 0, 0, 0]);
    answer.extend(&question[12..name_ends + 5]);
    if is_v4 {
        let mut asked = asked.lock().unwrap();
        // The name of the question, type A, class IN, no time to live, four bytes.
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]);
        answer.extend(addresses[asked.len() % addresses.len()]);
        asked.push(spelled(&question[12..name_ends]));
    }
    answer
}

/// Returns the name that a question spells in labels.
fn spelled(mut labels: &[u8]) -> String {
    let mut name = Vec::new();
    while let Some((length, rest)) = labels.split_first() {
        let (label, rest) = rest.split_at(usize::from(*length));
        name.push(String::from_utf8_lossy(label).into_owned());
        labels = rest;
    }
    name.join(".")
}

/// Writes the user's own settings.
fn settings(world: &World, text: &str) {
    fs::create_dir_all(world.home().join(".config/palisade")).unwrap();
    fs::write(world.home().join(".config/palisade/palisade.toml"), text).unwrap();
}

fn with_server(world: &World, server: SocketAddr) {
    settings(world, &format!("[network]\nname_server = \"{server}\"\n"));
}

fn program(world: &World) -> Program<'_> {
    let plugins = NET_FETCH.directory().into_os_string();
    Program::new(world).args(["--no-builtin".into(), "--plugins".into(), plugins])
}

fn run(world: &World, args: &[&str]) -> Ran {
    program(world).args(args.iter().copied()).run()
}

fn grant(world: &World, rule: &str) {
    let _ = run(world, &["grant", "net_fetch", "net", rule]).exits_with(0);
}

/// Calls the guest with a request to a name.
fn fetch(world: &World, authority: &str) -> Ran {
    run(world, &["call", "send_read", &json!({ "authority": authority }).to_string()])
}

/// Returns servers at two addresses of this machine, with one port.
fn two_servers() -> (Server, Server, u16) {
    let first = Server::echo();
    let port = first.port();
    let second = Server::start_at("127.0.0.2", port, |_, stream| {
        let _ = stream.write_all(&ok(b"second"));
    });
    (first, second, port)
}

#[test]
fn name_that_moves_is_looked_up_once_for_each_request() {
    let world = World::new();
    let (first, second, port) = two_servers();
    let names = Names::start(&[[127, 0, 0, 1], [127, 0, 0, 2]]);
    with_server(&world, names.address);
    let authority = format!("rebind.test:{port}");
    grant(&world, &format!("GET http://{authority} private"));
    let mut client = Client::start(program(&world)).shake_hands(&json!({}));
    let call = json!({"name": "send_read", "arguments": {"authority": authority}});
    for arrived in [(1, 0), (1, 1)] {
        let answer = client.request("tools/call", &call);
        let requests = (first.requests().len(), second.requests().len());
        assert_eq!(requests, arrived, "{answer}");
    }
    let _ = client.end();
    assert_eq!(names.asked(), ["rebind.test", "rebind.test"]);
}

#[test]
fn address_of_this_machine_is_not_reached_without_private() {
    let world = World::new();
    let server = Server::echo();
    let names = Names::start(&[[127, 0, 0, 1], [169, 254, 169, 254], [10, 0, 0, 1]]);
    with_server(&world, names.address);
    let authority = format!("rebind.test:{}", server.port());
    grant(&world, &format!("GET http://{authority}"));
    for _ in 0..3 {
        fetch(&world, &authority).exits_with(5).stderr_contains(&["address_refused"]);
    }
    assert_eq!(server.requests(), Vec::<String>::new());
    assert_eq!(names.asked(), ["rebind.test"; 3]);
}

#[test]
fn names_of_this_machine_stay_there() {
    let world = World::new();
    let server = Server::echo();
    let names = Names::start(&[[10, 0, 0, 1]]);
    with_server(&world, names.address);
    grant(&world, &server.rule("GET"));
    let _ = fetch(&world, &server.authority()).exits_with(0);
    assert_eq!(names.asked(), Vec::<String>::new());
}

#[test]
fn setting_is_shown_and_the_server_is_checked() {
    let world = World::new();
    let shown = run(&world, &["config", "show", "--json"]).exits_with(0).json();
    assert_eq!(shown["network.name_server"]["value"], "that of the system");
    let doctor = || Program::new(&world).args(["--no-builtin", "doctor"]).run();
    assert!(!doctor().stdout.contains("name server"));
    let names = Names::start(&[[127, 0, 0, 1]]);
    with_server(&world, names.address);
    let shown = run(&world, &["config", "show", "--json"]).exits_with(0).json();
    assert_eq!(shown["network.name_server"]["value"], names.address.to_string());
    let found = doctor().exits_with(0).stdout;
    assert!(found.contains(&format!("{} answers", names.address)), "{found}");
    // A socket that is bound and never answers.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    with_server(&world, silent.local_addr().unwrap());
    let found = doctor().exits_with(7).stdout;
    assert!(found.contains("bad   name server") && found.contains("until it answers"), "{found}");
}

#[test]
fn project_names_no_server_and_a_wrong_one_is_refused() {
    let world = World::new();
    settings(&world, "[network]\nname_server = \"dns.example.org\"\n");
    run(&world, &["list"]).exits_with(2).stderr_contains(&["dns.example.org", "192.0.2.53"]);
    settings(&world, "");
    world.file("palisade.toml", "[network]\nname_server = \"192.0.2.53\"\n");
    let refused = run(&world, &["list"]).exits_with(2);
    refused.stderr_contains(&["`network.name_server`", "may only tighten"]);
}
