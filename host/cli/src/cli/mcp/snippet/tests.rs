//! Tests of the configuration snippets of each client.

use super::*;
use palisade::plugins::Shipped;

const CLIENTS: [Client; 6] = [
    Client::ClaudeCode,
    Client::ClaudeDesktop,
    Client::VsCode,
    Client::Cursor,
    Client::Zed,
    Client::Codex,
];

fn program(workspace: &str, allow: &[SideEffects]) -> Launch {
    Launch::Program(Program {
        path: "/opt/my tools/palisade".to_owned(),
        workspace: workspace.to_owned(),
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

/// Parses the text of the snippet.
fn read(client: Client, launch: &Launch) -> Value {
    let text = made(client, launch).text;
    match client {
        Client::Codex => toml::from_str(&text).expect("TOML"),
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
    ] {
        let launch = program("/srv/my \"own\"", &[]);
        assert_eq!(read(client, &launch), json!({servers: {"palisade": expected}}), "{client:?}");
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
    ] {
        assert_eq!(read(client, &server()), json!({servers: {"palisade": expected}}), "{client:?}");
    }
    let name = Name::parse("palisade").expect("a name");
    assert!(matches!(of(Client::ClaudeDesktop, &name, &server()), Err(NoSnippet::StartsOnly)));
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
        for client in CLIENTS {
            let whole = read(client, &program(path, &[])).to_string();
            assert!(
                whole.contains(&format!(r#"["serve","--workspace",{}]"#, json!(path))),
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
                + &step(Client::Zed, &there),
            "",
        ),
    ] {
        assert_eq!(line, expected);
    }
}

#[test]
fn other_clients_are_warned_about_missing_forms() {
    for client in CLIENTS.into_iter().filter(|client| *client != Client::Zed) {
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
fn token_file_is_noted_and_absent_from_snippets() {
    let Launch::Http { address, .. } = server() else { panic!("it runs already") };
    let kept = Launch::Http { address, token: Some("/run/user/it's/127.0.0.1-8080.token".into()) };
    let file = r"'/run/user/it'\''s/127.0.0.1-8080.token'";
    for client in CLIENTS.into_iter().filter(|client| *client != Client::ClaudeDesktop) {
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
