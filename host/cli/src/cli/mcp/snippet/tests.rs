//! Tests of the configuration snippets of each client.

mod yaml;

use super::notes::ASKING;
use super::*;
use crate::cli::mcp::Address;
use clap::ValueEnum as _;
use palisade::SideEffects;
use palisade::plugins::Shipped;
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn program(workspace: &str, allow: &[SideEffects]) -> Launch {
    Launch::Program(Program {
        path: "/opt/my tools/palisade".to_owned(),
        workspace: workspace.to_owned(),
        adapted: Vec::new(),
        plugins: Vec::new(),
        shipped: Shipped::Included,
        config: None,
        allow: allow.iter().copied().collect(),
        timeout: None,
        switches: Vec::new(),
        environment: BTreeMap::new(),
    })
}

fn server() -> Launch {
    Launch::Http {
        address: Address::parse("http://127.0.0.1:8080/mcp").expect("an address"),
        token: None,
    }
}

fn made(client: Client, launch: &Launch) -> Snippet {
    of(client, &Name::parse("palisade").expect("a name"), launch).expect("a snippet")
}

fn clients() -> impl Iterator<Item = Client> {
    Client::value_variants().iter().copied()
}

/// Parses the text of the snippet in the format of the client's file.
fn read(client: Client, launch: &Launch) -> Value {
    let text = made(client, launch).text;
    match client {
        Client::Codex => toml::from_str(&text).expect("TOML"),
        Client::Goose | Client::Continue => yaml::read(&text),
        _ => serde_json::from_str(&text).expect("JSON"),
    }
}

#[test]
fn local_server_snippet_matches_each_client() {
    let path = "/opt/my tools/palisade";
    let args = ["serve", "--workspace", "/srv/my \"own\""];
    let plain = json!({"command": path, "args": args, "env": {}});
    let codex =
        json!({"command": path, "args": args, "startup_timeout_sec": 20, "tool_timeout_sec": 600});
    let bare = json!({"command": path, "args": args});
    let whole = [path, args[0], args[1], args[2]];
    for (client, servers, expected) in [
        // Source: code.claude.com/docs/en/mcp, project scope.
        (
            Client::ClaudeCode,
            "mcpServers",
            json!({"type": "stdio", "command": path, "args": args, "env": {}}),
        ),
        // Source: modelcontextprotocol.io/quickstart/user.
        (Client::ClaudeDesktop, "mcpServers", plain.clone()),
        // Source: code.visualstudio.com/docs/copilot/reference/mcp-configuration.
        (Client::VsCode, "servers", json!({"type": "stdio", "command": path, "args": args})),
        // Source: cursor.com/docs/mcp.
        (Client::Cursor, "mcpServers", plain),
        // Source: zed.dev/docs/ai/mcp; `source` as in its versions of 2025.
        (
            Client::Zed,
            "context_servers",
            json!({"source": "custom", "command": path, "args": args, "env": {}}),
        ),
        // Source: developers.openai.com/codex/mcp.
        (Client::Codex, "mcp_servers", codex),
        // The sources of these are in `file.rs`.
        (Client::GeminiCli, "mcpServers", bare.clone()),
        (Client::Opencode, "mcp", json!({"type": "local", "command": whole, "enabled": true})),
        (Client::Windsurf, "mcpServers", bare.clone()),
        (
            Client::Cline,
            "mcpServers",
            json!({"type": "stdio", "command": path, "args": args, "timeout": 600}),
        ),
        (
            Client::Goose,
            "extensions",
            json!({
                "enabled": true, "type": "stdio", "name": "palisade",
                "description": "Tools in a sandbox", "cmd": path, "args": args, "timeout": 600,
            }),
        ),
        (Client::LmStudio, "mcpServers", json!({"command": path, "args": args, "env": {}})),
        (
            Client::CopilotCli,
            "mcpServers",
            json!({"type": "local", "command": path, "args": args, "tools": ["*"]}),
        ),
        (Client::JetBrains, "mcpServers", bare),
    ] {
        let launch = program("/srv/my \"own\"", &[]);
        assert_eq!(read(client, &launch), json!({servers: {"palisade": expected}}), "{client:?}");
    }
    let block = json!({
        "name": "palisade", "version": "0.0.1", "schema": "v1",
        "mcpServers": [{"name": "palisade", "type": "stdio", "command": path, "args": args}],
    });
    assert_eq!(read(Client::Continue, &program("/srv/my \"own\"", &[])), block);
}

#[test]
fn environment_is_in_every_file() {
    let Launch::Program(mut here) = program("/srv", &[]) else { panic!("it starts a program") };
    here.environment = BTreeMap::from([("PALISADE_CACHE", "off".to_owned())]);
    let launch = Launch::Program(here);
    for client in clients() {
        let text = read(client, &launch).to_string();
        assert!(text.contains(r#"{"PALISADE_CACHE":"off"}"#), "{client:?}: {text}");
    }
}

#[test]
fn path_that_a_client_would_change_is_refused() {
    let name = Name::parse("palisade").expect("a name");
    for (client, path) in [
        (Client::GeminiCli, "/srv/$HOME"),
        (Client::GeminiCli, "/srv/a$_b"),
        (Client::Opencode, "/srv/{env:HOME}"),
        (Client::Opencode, "/srv/{file:a}"),
    ] {
        let refused = of(client, &name, &program(path, &[])).err().expect("no snippet");
        assert!(matches!(refused, NoSnippet::Variable { .. }), "{refused}");
        assert!(refused.to_string().contains(path), "{refused}");
        assert!(of(Client::Cursor, &name, &program(path, &[])).is_ok());
    }
    assert!(of(Client::GeminiCli, &name, &program("/srv/5$ a$1", &[])).is_ok());
}

#[test]
fn name_is_a_string_in_yaml() {
    for name in ["true", "no", "Off", "null", "y", "7", "1e3", "my-tools", "a_b"] {
        let parsed = Name::parse(name).expect("a name");
        for (client, place) in [
            (Client::Goose, format!("/extensions/{name}/name")),
            (Client::Continue, "/mcpServers/0/name".to_owned()),
        ] {
            let text = of(client, &parsed, &server()).expect("a snippet").text;
            assert_eq!(yaml::read(&text).pointer(&place), Some(&json!(name)), "{text}");
        }
    }
}

#[test]
fn http_server_snippet_matches_each_client_without_token() {
    let url = "http://127.0.0.1:8080/mcp";
    let bearer = |token: &str| json!({"Authorization": format!("Bearer {token}")});
    let code = json!({"type": "http", "url": url, "headers": bearer("${PALISADE_SERVE_TOKEN}")});
    let codex = json!({"url": url, "bearer_token_env_var": TOKEN, "startup_timeout_sec": 20, "tool_timeout_sec": 600});
    // The sources are the same as above.
    for (client, servers, expected) in [
        (Client::ClaudeCode, "mcpServers", code),
        (Client::VsCode, "servers", json!({"type": "http", "url": url})),
        (
            Client::Cursor,
            "mcpServers",
            json!({"url": url, "headers": bearer("${env:PALISADE_SERVE_TOKEN}")}),
        ),
        (Client::Zed, "context_servers", json!({"url": url, "headers": bearer("<token>")})),
        (Client::Codex, "mcp_servers", codex),
        (
            Client::GeminiCli,
            "mcpServers",
            json!({"httpUrl": url, "headers": bearer("${PALISADE_SERVE_TOKEN}")}),
        ),
        (
            Client::Opencode,
            "mcp",
            json!({
                "type": "remote", "url": url, "enabled": true, "oauth": false,
                "headers": bearer("{env:PALISADE_SERVE_TOKEN}"),
            }),
        ),
        (
            Client::Windsurf,
            "mcpServers",
            json!({"serverUrl": url, "headers": bearer("${env:PALISADE_SERVE_TOKEN}")}),
        ),
        (
            Client::Cline,
            "mcpServers",
            json!({"type": "streamableHttp", "url": url, "headers": bearer("<token>"), "timeout": 600}),
        ),
        (
            Client::Goose,
            "extensions",
            json!({
                "enabled": true, "type": "streamable_http", "name": "palisade",
                "description": "Tools in a sandbox", "uri": url, "timeout": 600,
                "env_keys": ["PALISADE_SERVE_TOKEN"], "headers": bearer("${PALISADE_SERVE_TOKEN}"),
            }),
        ),
        (Client::LmStudio, "mcpServers", json!({"url": url, "headers": bearer("<token>")})),
        (
            Client::CopilotCli,
            "mcpServers",
            json!({
                "type": "http", "url": url, "tools": ["*"],
                "headers": bearer("${PALISADE_SERVE_TOKEN}"),
            }),
        ),
        (Client::JetBrains, "mcpServers", json!({"url": url, "headers": bearer("<token>")})),
    ] {
        assert_eq!(read(client, &server()), json!({servers: {"palisade": expected}}), "{client:?}");
    }
    let block = json!({
        "name": "palisade", "version": "0.0.1", "schema": "v1",
        "mcpServers": [{
            "name": "palisade", "type": "streamable-http", "url": url,
            "requestOptions": {"headers": bearer("${{ secrets.PALISADE_SERVE_TOKEN }}")},
        }],
    });
    assert_eq!(read(Client::Continue, &server()), block);
}

#[test]
fn claude_desktop_connects_by_mcp_remote() {
    let url = "http://127.0.0.1:8080/mcp";
    let mut args = vec!["-y", "mcp-remote", url, "--transport", "http-only"];
    args.extend(["--header", "Authorization:${PALISADE_AUTHORIZATION}", "--allow-http"]);
    let environment = json!({"PALISADE_AUTHORIZATION": "Bearer <token>"});
    let expected = json!({"command": "npx", "args": args, "env": environment});
    let seen = read(Client::ClaudeDesktop, &server());
    assert_eq!(seen, json!({"mcpServers": {"palisade": expected}}));
    let address = Address::parse("https://tools.example.org/mcp").expect("an address");
    let seen = read(Client::ClaudeDesktop, &Launch::Http { address, token: None });
    assert!(!seen.to_string().contains("--allow-http"), "{seen}");
    let told = made(Client::ClaudeDesktop, &server()).notes.join("\n");
    assert!(told.contains("Node.js") && told.contains("<token>"), "{told}");
}

#[test]
fn displayed_snippet_has_one_word_per_line() {
    let launch = program("/srv/my \"own\"", &[]);
    let json = r#"{
  "mcpServers": {
    "palisade": {
      "command": "/opt/my tools/palisade",
      "args": [
        "serve",
        "--workspace",
        "/srv/my \"own\""
      ],
      "env": {}
    }
  }
}
"#;
    assert_eq!(made(Client::Cursor, &launch).text, json);
    let toml = r#"[mcp_servers.palisade]
command = "/opt/my tools/palisade"
args = [
    "serve",
    "--workspace",
    '/srv/my "own"',
]
startup_timeout_sec = 20
tool_timeout_sec = 600
"#;
    assert_eq!(made(Client::Codex, &launch).text, toml);
}

#[test]
fn every_format_round_trips_any_path() {
    for path in [
        "/a b",
        "/it's",
        "/it's \"x\"",
        "/'''\"\"\"",
        "/a\\b\\u0041",
        "/ünï 日本",
        "/# [x] = {}",
        "/$HOME `id` !",
    ] {
        for client in clients() {
            if client == Client::GeminiCli && path.contains('$') {
                continue;
            }
            let whole = read(client, &program(path, &[])).to_string();
            assert!(
                whole.contains(&format!(r#""serve","--workspace",{}]"#, json!(path))),
                "{client:?}: {whole}"
            );
        }
    }
}

#[test]
fn one_step_command_exists_for_supporting_clients() {
    let step = |client, launch: &Launch| made(client, launch).one_step.unwrap_or_default();
    let here = program("/srv/it's", &[]);
    let there = server();
    for (line, expected) in [
        (
            step(Client::ClaudeCode, &here),
            r"claude mcp add --transport stdio --scope user palisade -- '/opt/my tools/palisade' serve --workspace '/srv/it'\''s'",
        ),
        (
            step(Client::ClaudeCode, &there),
            "claude mcp add --transport http --scope project palisade http://127.0.0.1:8080/mcp --header 'Authorization: Bearer ${PALISADE_SERVE_TOKEN}'",
        ),
        (
            step(Client::VsCode, &here),
            r#"code --add-mcp '{"name":"palisade","type":"stdio","command":"/opt/my tools/palisade","args":["serve","--workspace","/srv/it'\''s"]}'"#,
        ),
        (
            step(Client::VsCode, &there),
            r#"code --add-mcp '{"name":"palisade","type":"http","url":"http://127.0.0.1:8080/mcp"}'"#,
        ),
        (
            step(Client::Codex, &here),
            r"codex mcp add palisade -- '/opt/my tools/palisade' serve --workspace '/srv/it'\''s'",
        ),
        (
            step(Client::Codex, &there),
            "codex mcp add palisade --url http://127.0.0.1:8080/mcp --bearer-token-env-var PALISADE_SERVE_TOKEN",
        ),
        (
            step(Client::ClaudeDesktop, &here)
                + &step(Client::Cursor, &here)
                + &step(Client::Zed, &there)
                + &step(Client::Goose, &here),
            "",
        ),
    ] {
        assert_eq!(line, expected);
    }
}

#[test]
fn other_clients_are_warned_about_missing_forms() {
    for client in clients().filter(|client| *client != Client::Zed) {
        let told = made(client, &program("/srv", &[])).notes.join("\n");
        assert!(
            told.contains("refused where your client shows none") && told.contains("--allow write"),
            "{told}"
        );
        assert!(
            !made(client, &program("/srv", &ASKING)).notes.join("\n").contains("--allow"),
            "{client:?}"
        );
    }
}

#[test]
fn zed_note_lists_classes_not_yet_allowed() {
    let told = |launch: &Launch| made(Client::Zed, launch).notes.join("\n");
    assert!(
        told(&program("/srv", &[]))
            .contains("`palisade mcp config` `--allow write,execute,network`")
    );
    assert!(told(&program("/srv", &[SideEffects::Write])).contains("`--allow execute,network`"));
    assert!(!told(&program("/srv", &ASKING)).contains("cannot ask"));
    assert!(told(&server()).contains("`palisade serve` `--allow write,execute,network`"));
}

#[test]
fn console_of_a_running_server_asks_where_the_client_shows_no_form() {
    for client in clients() {
        let (there, here) = (made(client, &server()), made(client, &program("/srv", &[])));
        let (there, here) = (there.notes.join("\n"), here.notes.join("\n"));
        let console = "wait in the server's console while it is open, and are refused otherwise";
        assert!(there.contains(console), "{client:?}: {there}");
        assert!(here.contains("--console") && !here.contains(console), "{client:?}: {here}");
    }
}

#[test]
fn token_file_is_noted_and_absent_from_snippets() {
    let Launch::Http { address, .. } = server() else { panic!("it runs already") };
    let kept = Launch::Http { address, token: Some("/run/user/it's/127.0.0.1-8080.token".into()) };
    let file = r"'/run/user/it'\''s/127.0.0.1-8080.token'";
    for client in clients() {
        let snippet = made(client, &kept);
        assert_eq!(snippet.text, made(client, &server()).text, "{client:?}");
        let told = snippet.notes.join("\n");
        assert!(told.contains(file) && !told.contains("--token none"), "{client:?}: {told}");
        let told = made(client, &server()).notes.join("\n");
        assert!(told.contains("the server says it when it starts"), "{client:?}: {told}");
    }
    let told = made(Client::Codex, &kept).notes.join("\n");
    assert!(told.contains(&format!("`PALISADE_SERVE_TOKEN=\"$(cat {file})\"`")), "{told}");
}
