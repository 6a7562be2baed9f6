//! Grants that change while a host runs: they hold for the next request.

use super::net_fetch::call;
use super::server::Server;
use super::variable;
use palisade::SideEffects;
use palisade::policy::Policy;
use palisade::tool::Digest;
use palisade_net::{Grant, GrantFile, Grants, Holder, Network, PluginGrants};
use palisade_tests::guest::NET_FETCH;
use palisade_tests::mcp::Client;
use palisade_tests::{Program, Stage, World};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn granted(rules: &[String]) -> (Digest, PluginGrants) {
    let digest = Digest::of(&fs::read(NET_FETCH.file()).unwrap());
    let rules = rules.iter().map(|rule| rule.parse().unwrap()).collect();
    (digest, PluginGrants::new(rules, &["GREETING".to_owned()], Vec::new(), &variable))
}

#[tokio::test]
async fn replaced_grants_hold_for_the_next_request() {
    let server = Server::echo();
    let (digest, before) = granted(&[server.rule("GET")]);
    let grants = Arc::new(Grants::new(Network::default()).plugin(digest, before));
    let stage = Stage::new(&[NET_FETCH], |builder| {
        let policy = Policy::default().allowing(SideEffects::Network);
        builder.policy(policy).powers(grants.clone())
    });
    let send = async |method: &str| {
        let input = json!({"authority": server.authority(), "method": method});
        call(&stage.host, "send_network", input).await["success"] == true
    };
    let greets = async || {
        let input = json!({"authority": "GREETING"});
        call(&stage.host, "variable", input).await["output"].clone()
    };
    assert!(send("GET").await && !send("POST").await);
    assert_eq!(greets().await, "hello");
    grants.replace([granted(&[server.rule("POST")])]);
    assert!(!send("GET").await && send("POST").await);
    grants.replace([]);
    assert!(!send("GET").await && !send("POST").await);
    assert_eq!(greets().await, "unset");
    assert_eq!(server.requests().len(), 2);
}

fn program<'w>(world: &'w World, args: &[&str]) -> Program<'w> {
    Program::new(world)
        .args(["--no-builtin".into(), "--plugins".into(), NET_FETCH.directory().into_os_string()])
        .args(args.iter().copied())
}

/// A server of the tools with a client, and a web server.
struct Served<'w> {
    world: &'w World,
    client: Client,
    web: Server,
}

impl<'w> Served<'w> {
    fn start(world: &'w World) -> Self {
        let web = Server::echo();
        let rule = web.rule("GET");
        let _ = program(world, &["grant", "net_fetch", "net", &rule]).run().exits_with(0);
        let client = Client::start(program(world, &[])).shake_hands(&json!({}));
        Self { world, client, web }
    }

    fn grant(&self, words: &[&str]) {
        let words = [&["grant", "net_fetch"], words].concat();
        let _ = program(self.world, &words).run().exits_with(0);
    }

    /// Sends a request, and returns whether it has arrived.
    fn arrives(&mut self) -> bool {
        let before = self.web.requests().len();
        let arguments = json!({"authority": self.web.authority()});
        let call = json!({"name": "send_read", "arguments": arguments});
        let answer = self.client.request("tools/call", &call);
        let arrived = self.web.requests().len() > before;
        let result = &answer["result"];
        let is_success = result.is_object() && result["isError"] != Value::Bool(true);
        assert_eq!(is_success, arrived, "{answer}");
        arrived
    }

    /// Returns true if the plugin sees a variable of the host.
    fn has_variable(&mut self) -> bool {
        let call = json!({"name": "variable", "arguments": {"authority": "PATH"}});
        let answer = self.client.request("tools/call", &call);
        answer["result"]["content"][0]["text"] != "unset"
    }

    #[track_caller]
    fn wait_until(&mut self, arrives: bool) {
        let until = Instant::now() + Duration::from_secs(60);
        while self.arrives() != arrives {
            assert!(Instant::now() < until, "the change is never noticed");
            let _ = self.client.receive_within(Duration::from_millis(100));
        }
    }
}

#[test]
fn running_server_obeys_a_revocation_and_a_new_grant() {
    let world = World::new();
    let mut served = Served::start(&world);
    served.wait_until(true);
    served.grant(&["revoke"]);
    served.wait_until(false);
    let rule = served.web.rule("GET,HEAD");
    served.grant(&["net", &rule]);
    served.wait_until(true);
    let (ran, _) = served.client.end();
    assert!(ran.stderr.contains("the grants of plugins have changed"), "{ran:?}");
}

#[test]
fn all_grants_of_a_plugin_hold_after_a_change_of_one() {
    let world = World::new();
    let mut served = Served::start(&world);
    served.wait_until(true);
    // A second entry for the same bytes, as one for the signer is.
    let file = world.home().join(".config/palisade/grants.toml");
    let mut second = GrantFile::default();
    let holder = Holder::Digest(Digest::of(&fs::read(NET_FETCH.file()).unwrap()));
    second.add("net_fetch", &holder, Grant::env("PATH").unwrap());
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{text}\n{}", second.to_text().unwrap())).unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    while !served.has_variable() {
        assert!(Instant::now() < until, "the change is never noticed");
        let _ = served.client.receive_within(Duration::from_millis(100));
    }
    assert!(served.arrives(), "the first entry holds as well");
    let _ = served.client.end();
}

#[test]
fn running_server_without_plugin_files_obeys_a_revocation() {
    let (world, web) = (World::new(), Server::echo());
    let rule = web.rule("GET");
    let run = |words: &[&str]| Program::new(&world).args(words.to_vec()).run();
    let _ = run(&["grant", "web", "net", &rule]).exits_with(0);
    let mut client = Client::start(Program::new(&world)).shake_hands(&json!({}));
    let url = format!("http://{}/", web.authority());
    let call = json!({"name": "web_fetch", "arguments": {"url": url}});
    let arrives = |client: &mut Client| {
        let before = web.requests().len();
        let _ = client.request("tools/call", &call);
        web.requests().len() > before
    };
    assert!(arrives(&mut client));
    let _ = run(&["grant", "web", "revoke"]).exits_with(0);
    let until = Instant::now() + Duration::from_secs(60);
    while arrives(&mut client) {
        assert!(Instant::now() < until, "the revocation is never noticed");
        let _ = client.receive_within(Duration::from_millis(100));
    }
    let _ = client.end();
}

#[test]
fn grants_that_can_be_read_no_more_are_gone() {
    let world = World::new();
    let mut served = Served::start(&world);
    served.wait_until(true);
    let file = world.home().join(".config/palisade/grants.toml");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    served.wait_until(false);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    served.wait_until(true);
    fs::remove_file(&file).unwrap();
    served.wait_until(false);
    let (ran, _) = served.client.end();
    assert!(ran.stderr.contains("no plugin has a grant now"), "{ran:?}");
}
