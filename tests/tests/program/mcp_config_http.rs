//! `palisade mcp config --http`: the snippet for a running server, without its token.

use crate::mcp_config::{CLIENTS, URL, YAML, config, server};
use palisade_tests::World;
use serde_json::{Value, json};

#[test]
fn running_server_has_its_address_without_token() {
    let world = World::new();
    for client in CLIENTS {
        let ran = config(&world, client)
            .args(["--http", URL])
            .env("PALISADE_SERVE_TOKEN", "hush")
            .run()
            .exits_with(0);
        if YAML.contains(&client) {
            assert!(ran.stdout.contains(&format!(": \"{URL}\"\n")), "{}", ran.stdout);
        } else {
            let server = server(client, &ran);
            let key = match client {
                "gemini-cli" => "httpUrl",
                "windsurf" => "serverUrl",
                _ => "url",
            };
            let (address, command) = match client {
                "claude-desktop" => (&server["args"][2], json!("npx")),
                _ => (&server[key], Value::Null),
            };
            assert_eq!((address, &server["command"]), (&json!(URL), &command), "{client}");
        }
        assert!(!ran.stdout.contains("hush") && !ran.stderr.contains("hush"), "{ran:?}");
        ran.stderr_contains(&["palisade serve --http", "token"]);
    }
    for client in ["claude-code", "cursor", "codex", "gemini-cli", "opencode", "continue"] {
        let ran = config(&world, client).args(["--http", URL]).run().exits_with(0);
        assert!(ran.stdout.contains("PALISADE_SERVE_TOKEN"), "{ran:?}");
    }
}

#[test]
fn claude_desktop_reaches_an_address_by_mcp_remote() {
    let world = World::new();
    let ran = config(&world, "claude-desktop").args(["--http", URL]).run().exits_with(0);
    let server = server("claude-desktop", &ran);
    assert_eq!(server["args"][1], "mcp-remote");
    ran.stderr_contains(&["Node.js", "`<token>`", "start it again"]);
}

#[test]
fn console_of_a_running_server_is_refused_as_an_option() {
    let world = World::new();
    let ran = config(&world, "zed").args(["--http", URL, "--console"]).run().exits_with(2);
    ran.stderr_contains(&["--console", "palisade serve"]);
}
