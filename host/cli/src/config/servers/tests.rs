//! Tests of the tables of MCP servers.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use super::*;

fn servers(text: &str) -> Result<BTreeMap<ServerName, McpServer>, String> {
    checked(toml::from_str(text).map_err(|error: toml::de::Error| error.to_string())?)
}

fn only(text: &str) -> McpServer {
    servers(text).unwrap().into_values().next().unwrap()
}

fn command(server: &McpServer, variable: impl Fn(&str) -> Option<String>) -> ServerCommand {
    match server.reach(ShellLimits::default(), HttpNetwork::default, variable).unwrap() {
        Reach::Command(command) => command,
        other => panic!("{other:?}"),
    }
}

#[test]
fn server_is_of_class_network_without_confinement_by_default() {
    let git = only("[servers.git]\ncommand = \"git-server\"\nargs = [\"--all\"]");
    assert_eq!(git.classes.of("status"), SideEffects::Network);
    let reached = command(&git, |name| (name == "PATH").then(|| "/bin".to_owned()));
    assert_eq!(reached.options.rights(), (Confinement::Unconfined, Network::Closed));
    assert_eq!(reached.command.arguments, ["--all"]);
    assert_eq!(reached.command.variables, [("PATH".to_owned(), "/bin".to_owned())]);
}

#[test]
fn confined_server_inherits_only_what_is_named() {
    let git = only(
        "[servers.git]\ncommand = \"x\"\nconfined = true\npass = [\"TOKEN\"]\nenv = { A = \"1\" }\nread = [\"/opt/x\"]\nclass = \"read\"\nclasses = { push = \"execute\" }",
    );
    assert_eq!(git.classes.of("status"), SideEffects::Read);
    assert_eq!(git.classes.of("push"), SideEffects::Execute);
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let reached = command(&git, |name| Some(format!("<{name}>")));
    assert_eq!(reached.options.rights(), (Confinement::Landlock, Network::Closed));
    assert_eq!(reached.command.variables, [pair("TOKEN", "<TOKEN>"), pair("A", "1")]);
}

#[test]
fn token_of_a_server_at_a_url_is_a_sensitive_header() {
    let text = "[servers.far]\nurl = \"https://example.org/mcp\"\nheaders = { X-Key = \"k\" }\ntoken_env = \"TOKEN\"";
    let variable = |name: &str| (name == "TOKEN").then(|| "hush".to_owned());
    let reach = only(text).reach(ShellLimits::default(), HttpNetwork::default, variable).unwrap();
    assert!(!format!("{reach:?}").contains("hush"), "{reach:?}");
    assert_eq!(reach.identity(), "https://example.org/mcp");
    let Reach::Url(server) = reach else { panic!("it has a URL") };
    assert_eq!(server.headers["authorization"], "Bearer hush");
    assert!(server.headers["authorization"].is_sensitive());
    assert_eq!(server.headers["x-key"], "k");
    let broken = only(text).reach(ShellLimits::default(), HttpNetwork::default, |_| {
        Some("hush\nHost: other".to_owned())
    });
    let error = broken.unwrap_err();
    assert!(error.contains("TOKEN") && !error.contains("hush"), "{error}");
}

#[test]
fn type_of_other_clients_is_accepted_where_it_is_true() {
    for accepted in [
        "type = \"stdio\"\ncommand = \"x\"",
        "type = \"http\"\nurl = \"https://a.org\"",
        "type = \"streamable-http\"\nurl = \"https://a.org\"",
    ] {
        assert!(servers(&format!("[servers.git]\n{accepted}")).is_ok(), "{accepted}");
    }
    for refused in [
        "type = \"http\"\ncommand = \"x\"",
        "type = \"stdio\"\nurl = \"https://a.org\"",
        "type = \"sse\"\nurl = \"https://a.org\"",
        "type = \"\"\ncommand = \"x\"",
    ] {
        let error = servers(&format!("[servers.git]\n{refused}")).unwrap_err();
        for said in ["`mcp.servers.git.type`", "`stdio`", "`http`", "`streamable-http`"] {
            assert!(error.contains(said), "{refused}: {error}");
        }
    }
}

#[test]
fn wrong_table_is_refused_with_its_key() {
    for (text, key) in [
        ("[servers.Git]\ncommand = \"x\"", "mcp.servers"),
        ("[servers.git]\nargs = []", "`command`"),
        ("[servers.git]\ncommand = \"x\"\nurl = \"https://a.org\"", "either"),
        ("[servers.git]\ncommand = \" \"", "mcp.servers.git.command"),
        ("[servers.git]\ncommand = \"./x\"", "whole path"),
        ("[servers.git]\ncommand = \"bin/x\"", "whole path"),
        ("[servers.git]\ncommand = \"x\"\nenv = { A = \"${A}\" }", "pass"),
        ("[servers.git]\ncommand = \"x\"\nclass = \"all\"", "mcp.servers.git.class"),
        ("[servers.git]\ncommand = \"x\"\nclasses = { a = \"b\" }", "mcp.servers.git.classes.a"),
        ("[servers.git]\ncommand = \"x\"\nnetwork = true", "confined"),
        ("[servers.git]\ncommand = \"x\"\npass = [\"A=B\"]", "A=B"),
        ("[servers.git]\ncommand = \"x\"\nconfined = true\nread = [\"x\"]", "read"),
        ("[servers.git]\ncommand = \"x\"\ntoken_env = \"T\"", "token_env"),
        ("[servers.git]\nurl = \"http://example.org\"", "https://"),
        ("[servers.git]\nurl = \"example.org\"", "mcp.servers.git.url"),
        ("[servers.git]\nurl = \"https://a.org\"\nargs = []", "`args`"),
        ("[servers.git]\nurl = \"https://a.org\"\nheaders = { \"a b\" = \"\" }", "a b"),
    ] {
        let error = servers(text).unwrap_err();
        assert!(error.contains(key), "{text}: {error}");
    }
    let secret = "[servers.git]\nurl = \"https://ann:hush@example.org/mcp\"";
    let error = servers(secret).unwrap_err();
    assert!(error.contains("user") && !error.contains("hush"), "{error}");
    for accepted in ["http://127.0.0.1:8080/mcp", "http://localhost/mcp", "http://[::1]/mcp"] {
        assert!(servers(&format!("[servers.git]\nurl = \"{accepted}\"")).is_ok(), "{accepted}");
    }
}
