//! `palisade mcp config`: the snippet for a client's configuration, alone on standard output.

use crate::program;
use palisade_tests::World;
use palisade_tests::program::{Program, Ran, executable};
use serde_json::{Map, Value, json};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::process::Command;

pub(crate) const CLIENTS: [&str; 15] = [
    "claude-code",
    "claude-desktop",
    "vscode",
    "cursor",
    "zed",
    "codex",
    "gemini-cli",
    "opencode",
    "windsurf",
    "cline",
    "goose",
    "lmstudio",
    "continue",
    "copilot-cli",
    "jetbrains",
];
/// The clients whose file is YAML, which the unit tests of the snippets read.
pub(crate) const YAML: [&str; 2] = ["goose", "continue"];
pub(crate) const URL: &str = "http://127.0.0.1:8080/mcp";

pub(crate) fn config<'w>(world: &'w World, client: &str) -> Program<'w> {
    program(world, &["mcp", "config", "--client", client])
}

/// Returns the entry of the server `palisade`, which has to be the only output.
#[track_caller]
pub(crate) fn server(client: &str, ran: &Ran) -> Value {
    let (servers, whole) = match client {
        "codex" => return table(&ran.stdout),
        "vscode" => ("servers", ran.json()),
        "zed" => ("context_servers", ran.json()),
        "opencode" => ("mcp", ran.json()),
        _ => ("mcpServers", ran.json()),
    };
    let server = whole[servers]["palisade"].clone();
    assert_eq!(whole, json!({servers: {"palisade": server}}), "{client}");
    server
}

/// Parses Codex's table: TOML whose values are valid JSON, except for a list's trailing comma.
#[track_caller]
fn table(toml: &str) -> Value {
    let members =
        toml.strip_prefix("[mcp_servers.palisade]\n").expect("the table").replace(",\n]", "\n]");
    let (mut found, mut rest) = (Map::new(), members.as_str());
    while let Some((key, after)) = rest.split_once(" = ") {
        let mut values = serde_json::Deserializer::from_str(after).into_iter::<Value>();
        let value = values.next().expect("a value").expect("a value as in JSON");
        found.insert(key.trim().to_owned(), value);
        rest = &after[values.byte_offset()..];
    }
    assert_eq!(rest.trim(), "", "{toml}");
    Value::Object(found)
}

/// Returns the shell command on standard error: the only indented line.
fn one_step(ran: &Ran) -> Option<&str> {
    ran.stderr.lines().find_map(|line| line.strip_prefix("  "))
}

#[test]
fn each_client_starts_this_program_by_absolute_paths() {
    let world = World::new();
    let here = world.outer().canonicalize().expect("a directory");
    let expected = json!([
        "serve",
        "--workspace",
        world.root(),
        "--plugins",
        here.join("my plugins"),
        "--plugins",
        world.plugins(),
        "--no-builtin",
        "--config",
        here.join("my.toml"),
        "--allow",
        "write,execute",
    ]);
    for client in CLIENTS {
        let ran = config(&world, client)
            .args(["--plugins", "my plugins", "--plugins"])
            .args([world.plugins()])
            .args(["--no-builtin", "--config", "my.toml", "--allow", "execute,write"])
            .run()
            .exits_with(0);
        if YAML.contains(&client) {
            let lines: String =
                expected.as_array().unwrap().iter().map(|word| format!("- {word}\n")).collect();
            let printed: Vec<&str> = ran.stdout.lines().map(str::trim_start).collect();
            assert!((printed.join("\n") + "\n").contains(&lines), "{client}: {}", ran.stdout);
            continue;
        }
        let server = server(client, &ran);
        if client == "opencode" {
            let whole = [&[json!(executable())], &expected.as_array().unwrap()[..]].concat();
            assert_eq!(server["command"], json!(whole));
            continue;
        }
        assert_eq!(server["command"], json!(executable()), "{client}");
        assert_eq!(server["args"], expected, "{client}");
    }
}

#[test]
fn environment_is_written_into_the_snippet() {
    let world = World::new();
    let ran = config(&world, "cursor")
        .args(["--plugins", "/third"])
        .env("PALISADE_PLUGINS", "/first::/second")
        .env("PALISADE_CONFIG", "/my.toml")
        .run()
        .exits_with(0);
    let words = [
        "--plugins",
        "/first",
        "--plugins",
        "/second",
        "--plugins",
        "/third",
        "--config",
        "/my.toml",
    ];
    let args = server("cursor", &ran)["args"].as_array().expect("a list").clone();
    assert_eq!(args[3..], words.map(Value::from));
}

/// Sets the variables that a user may have set while trying the program.
fn tried_by_hand<'w>(world: &'w World, client: &str) -> Program<'w> {
    config(world, client)
        .env("PALISADE_MEMORY", "64MiB")
        .env("PALISADE_TIMEOUT", "90s")
        .env("PALISADE_CACHE", "my cache")
        .env("PALISADE_SERVE_TOKEN", "hush")
        .env("PALISADE_LOG", "debug")
}

#[test]
fn only_token_and_log_variables_are_excluded() {
    let world = World::new();
    let cache = world.outer().canonicalize().expect("a directory").join("my cache");
    let expected =
        json!({"PALISADE_CACHE": cache, "PALISADE_MEMORY": "64MiB", "PALISADE_TIMEOUT": "90s"});
    for client in CLIENTS.into_iter().filter(|client| *client != "codex") {
        let ran = tried_by_hand(&world, client).run().exits_with(0);
        if YAML.contains(&client) {
            assert!(ran.stdout.contains("PALISADE_MEMORY: \"64MiB\"\n"), "{}", ran.stdout);
        } else {
            let variables = if client == "opencode" { "environment" } else { "env" };
            assert_eq!(server(client, &ran)[variables], expected, "{client}");
        }
        assert!(!ran.stdout.contains("hush") && !ran.stderr.contains("hush"), "{ran:?}");
    }
    let ran = tried_by_hand(&world, "codex").run().exits_with(0);
    let (server, environment) =
        ran.stdout.split_once("\n[mcp_servers.palisade.env]\n").expect("a table of its own");
    assert!(server.contains("tool_timeout_sec"), "{ran:?}");
    let lines: Vec<&str> = environment.lines().collect();
    let cache = format!("PALISADE_CACHE = {}", json!(cache));
    assert_eq!(
        lines,
        [cache.as_str(), "PALISADE_MEMORY = \"64MiB\"", "PALISADE_TIMEOUT = \"90s\""]
    );
}

#[test]
fn one_step_command_sets_the_same_variables() {
    let world = World::new();
    for (client, before) in
        [("claude-code", "claude mcp add --env "), ("codex", "codex mcp add palisade --env ")]
    {
        let ran = tried_by_hand(&world, client).env("PALISADE_CACHE", "off").run().exits_with(0);
        let command = one_step(&ran).expect("a command");
        let expected =
            "PALISADE_CACHE=off' --env 'PALISADE_MEMORY=64MiB' --env 'PALISADE_TIMEOUT=90s' -";
        assert_eq!(
            command.strip_prefix(before).and_then(|rest| rest.get(1..=expected.len())),
            Some(expected),
            "{command}"
        );
    }
}

#[test]
fn serve_options_are_written_into_the_snippet() {
    let world = World::new();
    let ran =
        config(&world, "cursor").args(["--watch", "--code-mode", "--timeout", "90s", "-v"]).run();
    let args = server("cursor", &ran.exits_with(0))["args"].as_array().expect("a list").clone();
    let given = ["--timeout", "90s", "--watch", "--code-mode", "--verbose"];
    assert_eq!(args[3..], given.map(Value::from));
}

#[test]
fn missing_directory_is_noted() {
    let world = World::new();
    let ran = config(&world, "cursor").args(["--plugins", "/surely/not/there"]).run().exits_with(0);
    assert!(ran.stderr.contains("there is no directory /surely/not/there: make it"), "{ran:?}");
    assert!(!config(&world, "cursor").run().exits_with(0).stderr.contains("there is no directory"));
}

#[test]
fn invalid_timeout_or_variable_is_refused() {
    let world = World::new();
    config(&world, "cursor")
        .args(["--timeout", "2h"])
        .run()
        .exits_with(2)
        .stderr_contains(&["--timeout", "600s"]);
    config(&world, "cursor")
        .env("PALISADE_MEMORY", "much")
        .run()
        .exits_with(2)
        .stderr_contains(&["PALISADE_MEMORY"]);
    for words in [&["--watch"][..], &["--code-mode"], &["--timeout", "90s"]] {
        let ran = config(&world, "cursor").args(["--http", URL]).args(words).run().exits_with(2);
        ran.stderr_contains(&[words[0], "palisade serve"]);
    }
}

#[test]
fn claude_code_notes_explain_the_scopes() {
    let world = World::new();
    let ran = config(&world, "claude-code").run().exits_with(0);
    ran.stderr_contains(&[
        "`--scope user`",
        "every project",
        "`--scope local`",
        "`--scope project`",
        ".mcp.json",
    ]);
    let seen = format!("the tools see `{}`, not the project that is open", world.root().display());
    ran.stderr_contains(&[&seen, "its paths are those of this machine"]);
}

#[test]
fn snippet_without_options_names_only_the_workspace() {
    let world = World::new();
    // Unset the suite's own cache.
    let ran = config(&world, "claude-desktop").env("PALISADE_CACHE", "").run().exits_with(0);
    let expected =
        json!({"command": executable(), "args": ["serve", "--workspace", world.root()], "env": {}});
    assert_eq!(server("claude-desktop", &ran), expected);
}

#[test]
fn destination_is_on_stderr() {
    let world = World::new();
    for (client, place) in CLIENTS.into_iter().zip([
        ".mcp.json",
        "claude_desktop_config.json",
        ".vscode/mcp.json",
        "~/.cursor/mcp.json",
        "settings.json",
        "~/.codex/config.toml",
        "~/.gemini/settings.json",
        "~/.config/opencode/opencode.json",
        "~/.codeium/windsurf/mcp_config.json",
        "cline_mcp_settings.json",
        "~/.config/goose/config.yaml",
        "mcp.json",
        ".continue/mcpServers",
        "~/.copilot/mcp-config.json",
        "AI Assistant",
    ]) {
        let ran = config(&world, client).run().exits_with(0);
        ran.stderr_contains(&["goes into", place, "tools see", &*world.root().to_string_lossy()]);
    }
    config(&world, "claude-desktop").run().exits_with(0).stderr_contains(&["start it again"]);
    config(&world, "zed").run().exits_with(0).stderr_contains(&["--allow write,execute,network"]);
}

#[test]
fn one_step_command_is_correctly_quoted() {
    let world = World::new();
    for (client, name) in [("claude-code", "claude"), ("vscode", "code"), ("codex", "codex")] {
        let odd = "/srv/it's \"my\" own; $HOME `id`";
        let ran = config(&world, client).args(["--plugins", odd]).run().exits_with(0);
        let command = one_step(&ran).unwrap_or_else(|| panic!("no command: {ran:?}"));
        let script = format!("{name}() {{ printf '%s\\n' \"$@\"; }}; {command}");
        let shell = Command::new("sh").args(["-c", &script]).output().expect("a shell");
        let words = String::from_utf8(shell.stdout).expect("UTF-8");
        assert_eq!(String::from_utf8_lossy(&shell.stderr), "", "{command}");
        let words: Vec<&str> = words.lines().collect();
        let last = *words.last().expect("a word");
        if client == "vscode" {
            let told: Value = serde_json::from_str(last).expect("JSON");
            assert_eq!((&told["name"], &told["args"][4]), (&json!("palisade"), &json!(odd)));
        } else {
            let begin =
                words.iter().position(|word| *word == "--").expect("the last option of the client")
                    + 1;
            let program = executable();
            assert_eq!(
                (OsStr::new(words[begin]), words[begin + 1], last),
                (program.as_os_str(), "serve", odd)
            );
        }
    }
    for client in ["claude-desktop", "cursor", "zed", "gemini-cli", "goose"] {
        let ran = config(&world, client).run().exits_with(0);
        assert_eq!(one_step(&ran), None, "{client}");
    }
}

#[test]
fn server_name_can_be_chosen() {
    let world = World::new();
    let ran = config(&world, "vscode").args(["--name", "my-tools"]).run().exits_with(0);
    assert!(ran.json()["servers"]["my-tools"].is_object(), "{ran:?}");
    assert!(
        one_step(&ran).is_some_and(|command| command.contains(r#""name":"my-tools""#)),
        "{ran:?}"
    );
}

#[test]
fn unknown_client_is_2_with_the_known() {
    let world = World::new();
    let ran = config(&world, "emacs").run().exits_with(2);
    assert_eq!(ran.stdout, "");
    ran.stderr_contains(&["emacs"]).stderr_contains(&CLIENTS);
    program(&world, &["mcp", "config"]).run().exits_with(2).stderr_contains(&["--client"]);
    program(&world, &["mcp"]).run().exits_with(2).stderr_contains(&["config"]);
}

#[test]
fn unrepresentable_value_is_2() {
    let world = World::new();
    for (words, said) in [
        (["--name", "two words"], "no name for a server"),
        (["--name", "a\"b"], "no name for a server"),
        (["--http", "127.0.0.1:8080"], "http://127.0.0.1:8080/mcp"),
        (["--http", "http://ann:hush@host/mcp"], "http://127.0.0.1:8080/mcp"),
        (["--plugins", "a\u{202e}b"], "nobody sees"),
        (["--plugins", "a\nb"], "break a line"),
        (["--plugins", "${HOME}/plugins"], "variable"),
        (["--allow", "everything"], "everything"),
    ] {
        let ran = config(&world, "codex").args(words).run().exits_with(2);
        assert_eq!(ran.stdout, "", "{words:?}");
        ran.stderr_contains(&["error:", said]);
        assert!(!ran.stderr.contains(['\u{202e}']) && !ran.stderr.contains("hush"), "{ran:?}");
    }
    let ran = config(&world, "codex").args(["--http", URL, "--allow", "write"]).run().exits_with(2);
    ran.stderr_contains(&["--allow", "palisade serve"]);
    let bytes =
        config(&world, "codex").args([OsStr::new("--plugins"), OsStr::from_bytes(b"a\xffb")]).run();
    bytes.exits_with(2).stderr_contains(&["UTF-8"]);
}

#[test]
fn named_paths_need_not_exist() {
    let world = World::new();
    fs::remove_dir(world.root()).expect("it can be removed");
    let ran = config(&world, "zed")
        .args(["--plugins", "/nowhere", "--config", "/nowhere.toml"])
        .run()
        .exits_with(0);
    assert_eq!(server("zed", &ran)["args"][2], json!(world.root()));
}

#[test]
fn console_is_an_argument_of_the_server() {
    let world = World::new();
    let ran = config(&world, "zed").args(["--console"]).run().exits_with(0);
    assert_eq!(server("zed", &ran)["args"][3], "--console");
    ran.stderr_contains(&["wait for your answer in the server's console"]);
}

/// Client libraries pass a part of the environment only, such as `PATH` and `HOME`.
#[test]
fn users_own_settings_hold_in_a_reduced_environment() {
    let world = World::new();
    let own = world.outer().join("elsewhere");
    fs::create_dir_all(own.join("palisade")).unwrap();
    let file = own.join("palisade/palisade.toml");
    let none = config(&world, "cursor").env("XDG_CONFIG_HOME", &own).run().exits_with(0);
    assert!(!none.stdout.contains("--config"), "{}", none.stdout);
    fs::write(&file, "[tools]\nonly = [\"read_file\"]\n").unwrap();
    let ran = config(&world, "cursor").env("XDG_CONFIG_HOME", &own).run().exits_with(0);
    let args = &ran.json()["mcpServers"]["palisade"]["args"];
    let args: Vec<&str> = args.as_array().unwrap().iter().filter_map(|it| it.as_str()).collect();
    let place = args.iter().position(|word| *word == "--config").expect("the file is named");
    assert_eq!(args[place + 1], file.to_str().unwrap());
}
