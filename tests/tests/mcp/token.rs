//! The token of an HTTP server: always required unless switched off, stored privately, and never
//! readable by a tool.

use super::{call, serving, text};
use palisade_tests::guest::LOADER_GOOD;
use palisade_tests::mcp::{MODERN, modern};
use palisade_tests::mcp_http::{Answer, Endpoint};
use palisade_tests::{Program, World};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Writes a file that only its owner can read.
pub(super) fn secret(file: &Path, text: &str) {
    fs::write(file, format!("{text}\n")).unwrap();
    fs::set_permissions(file, Permissions::from_mode(0o600)).unwrap();
}

fn asked(endpoint: &Endpoint, tool: &str, arguments: Value, token: &str) -> Answer {
    let (headers, bearer) =
        ([("Mcp-Method", "tools/call"), ("Mcp-Name", tool)], format!("Bearer {token}"));
    let more = [("MCP-Protocol-Version", MODERN), ("Authorization", bearer.as_str())];
    let params = modern(call(tool, arguments), &json!({}));
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let sent = if token.is_empty() { &more[..1] } else { &more[..] };
    endpoint.post(&[&headers[..], sent].concat(), &message)
}

/// Returns the path of this server's token file in a home directory.
fn kept(home: &Path, endpoint: &Endpoint) -> PathBuf {
    let (address, port) = endpoint.address.split_once(':').unwrap();
    home.join(".local/state/palisade/tokens").join(format!("{address}-{port}.token"))
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o7777
}

#[test]
fn generated_token_is_printed_private_and_removed() {
    let world = World::new();
    let endpoint = Endpoint::guarded(serving(&world, LOADER_GOOD), &[]);
    let file = kept(&world.home(), &endpoint);
    let token = fs::read_to_string(&file).unwrap().trim().to_owned();
    assert_eq!((mode(&file), mode(file.parent().unwrap()), token.len()), (0o600, 0o700, 64));
    assert_eq!(asked(&endpoint, "good", json!({}), "").status, 401);
    assert_eq!(asked(&endpoint, "good", json!({}), &token.replace(&token[..1], "g")).status, 401);
    assert_eq!(text(&asked(&endpoint, "good", json!({}), &token).message()), "good");
    let another = Endpoint::guarded(serving(&world, LOADER_GOOD), &[]);
    assert_eq!(asked(&another, "good", json!({}), &token).status, 401, "each run has its own");
    kill_process(Pid::from_child(endpoint.child()), Signal::TERM).expect("it can be terminated");
    let ran = endpoint.end();
    ran.stderr_contains(&[&format!("Authorization: Bearer {token}"), file.to_str().unwrap()]);
    assert!(!file.exists());
}

#[test]
fn disabled_token_is_reported() {
    let world = World::new();
    let endpoint = Endpoint::guarded(serving(&world, LOADER_GOOD), &["--token", "none"]);
    assert_eq!(asked(&endpoint, "good", json!({}), "").status, 200);
    // The operator has a token in any case, so that clients cannot answer their own questions.
    assert!(!kept(&world.home(), &endpoint).exists(), "no token of clients is kept");
    kill_process(Pid::from_child(endpoint.child()), Signal::TERM).expect("it can be terminated");
    endpoint.end().stderr_contains(&["every user of this machine can call these tools"]);
}

#[test]
fn stale_token_at_the_address_is_removed() {
    let world = World::new();
    let endpoint = Endpoint::guarded(serving(&world, LOADER_GOOD), &[]);
    let (file, address) = (kept(&world.home(), &endpoint), endpoint.address.clone());
    // Dropping the handle kills the server.
    drop(endpoint);
    assert!(file.exists(), "a server that is killed leaves it");
    let next = Endpoint::at(&address, serving(&world, LOADER_GOOD), &["--token", "none"]);
    assert_eq!(next.address, address);
    assert!(!file.exists());
}

#[test]
fn token_is_never_in_a_shared_directory() {
    let world = World::new();
    let folder = world.home().join(".local/state/palisade/tokens");
    fs::create_dir_all(&folder).unwrap();
    fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
    let endpoint = Endpoint::guarded(serving(&world, LOADER_GOOD), &[]);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    assert_eq!(asked(&endpoint, "good", json!({}), "").status, 401);
    kill_process(Pid::from_child(endpoint.child()), Signal::TERM).expect("it can be terminated");
    endpoint.end().stderr_contains(&[
        "the token stands in no file",
        "`chmod 700",
        "Authorization: Bearer ",
    ]);
}

#[test]
fn shared_token_file_is_refused_with_remedy() {
    let world = World::new();
    let file = world.home().join("token");
    secret(&file, "a-token-that-nobody-guesses");
    for open in [0o644, 0o640, 0o620, 0o602] {
        fs::set_permissions(&file, Permissions::from_mode(open)).unwrap();
        let program =
            serving(&world, LOADER_GOOD).args(["serve", "--http", "127.0.0.1:0", "--token-file"]);
        let ran = program.args([&file]).run().exits_with(2);
        ran.stderr_contains(&[
            "others can read or change it",
            &format!("`chmod 600 {}`", file.display()),
        ]);
        assert!(!ran.stderr.contains("nobody-guesses"), "{ran:?}");
    }
}

/// Starts a server with this token file, which it refuses.
#[track_caller]
fn refused(world: &World, file: &Path) -> palisade_tests::program::Ran {
    let words = ["serve", "--http", "127.0.0.1:0", "--token-file"];
    serving(world, LOADER_GOOD).args(words).args([file]).run().exits_with(2)
}

#[test]
fn token_file_that_is_no_file_is_refused_at_once() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let world = World::new();
    let pipe = world.home().join("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    refused(&world, &pipe).stderr_contains(&["cannot read the token", "regular file"]);
    refused(&world, &world.home()).stderr_contains(&["cannot read the token"]);
    refused(&world, &world.home().join("missing")).stderr_contains(&["cannot read the token"]);
}

#[test]
fn token_file_that_others_can_replace_is_refused_with_remedy() {
    let world = World::new();
    let folder = world.home().join("shared");
    fs::create_dir(&folder).unwrap();
    secret(&folder.join("token"), "a-token-that-nobody-guesses");
    fs::set_permissions(&folder, Permissions::from_mode(0o777)).unwrap();
    let inner = folder.join("inner");
    fs::create_dir(&inner).unwrap();
    secret(&inner.join("token"), "a-token-that-nobody-guesses");
    std::os::unix::fs::symlink(folder.join("token"), world.home().join("link")).unwrap();
    for file in [folder.join("token"), inner.join("token"), world.home().join("link")] {
        refused(&world, &file).stderr_contains(&[
            &format!("other users can write to `{}`", folder.display()),
            "`chmod go-w ",
        ]);
    }
    // Others may read the directory: only its entries must not be replaced.
    fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
    for file in [folder.join("token"), world.home().join("link")] {
        let words = ["--token-file", file.to_str().unwrap()];
        let endpoint = Endpoint::guarded(serving(&world, LOADER_GOOD), &words);
        let answer = asked(&endpoint, "good", json!({}), "a-token-that-nobody-guesses");
        assert_eq!(text(&answer.message()), "good");
    }
}

#[test]
fn token_in_the_workspace_is_hidden_from_tools() {
    let world = World::new();
    // As if the workspace were the home directory.
    let home = world.root().join("home");
    fs::create_dir(&home).unwrap();
    secret(&world.root().join("given"), "a-token-that-nobody-guesses");
    let of = |path: &Path| path.strip_prefix(world.root()).unwrap().to_str().unwrap().to_owned();
    let made = Endpoint::guarded(Program::new(&world).env("HOME", &home), &["--allow", "write"]);
    let file = kept(&home, &made);
    let token = fs::read_to_string(&file).unwrap();
    let words = ["--allow", "write", "--token-file", "given"];
    let given = Endpoint::guarded(Program::new(&world).directory(world.root()), &words);
    for (endpoint, path, token) in [
        (&made, of(&file), token.trim()),
        (&given, "given".to_owned(), "a-token-that-nobody-guesses"),
    ] {
        let reads = asked(endpoint, "read_file", json!({"path": path}), token).message();
        let writes = asked(endpoint, "write_file", json!({"path": path, "content": "mine"}), token)
            .message();
        let removes = asked(endpoint, "delete_file", json!({"path": path}), token).message();
        // The answer quotes the pattern, so search for the beginning of the token only.
        let found =
            asked(endpoint, "search_files", json!({"pattern": &token[..8]}), token).message();
        for answer in [&reads, &writes, &removes] {
            let class = &answer["result"]["_meta"]["dev.palisade/error"]["class"];
            assert_eq!(class, "permission_denied", "{answer}");
        }
        assert!(
            !text(&found).contains(token) && !reads.to_string().contains(token),
            "{found} {reads}"
        );
        assert_eq!(fs::read_to_string(world.root().join(&path)).unwrap().trim(), token);
    }
    // A program that did not make the token protects it as well.
    let other = Program::new(&world).env("HOME", &home).args(["call", "read_file"]);
    let ran = other.args([json!({"path": of(&file)}).to_string()]).run().exits_with(4);
    assert!(!ran.stdout.contains(token.trim()), "{ran:?}");
}

#[test]
fn token_directories_are_hidden_in_any_environment() {
    let world = World::new();
    let home = world.root().join("home");
    fs::create_dir(&home).unwrap();
    let made = Endpoint::guarded(Program::new(&world).env("HOME", &home), &[]);
    let file = kept(&home, &made);
    let of = |path: &Path| path.strip_prefix(world.root()).unwrap().to_str().unwrap().to_owned();
    let elsewhere =
        |name: &str, path: &Path| Program::new(&world).env("HOME", &home).env(name, path);
    let ran = elsewhere("XDG_STATE_HOME", &world.home().join("state"))
        .args(["call", "read_file", &json!({"path": of(&file)}).to_string()])
        .run()
        .exits_with(4);
    assert!(!ran.stdout.contains(fs::read_to_string(&file).unwrap().trim()), "{ran:?}");
    // A missing runtime directory, and one that other users can enter.
    let runtime = home.join("run");
    let planted = of(&runtime.join("palisade/tokens/127.0.0.1-1.token"));
    for open in [None, Some(0o755)] {
        if let Some(mode) = open {
            fs::create_dir_all(runtime.join("palisade/tokens")).unwrap();
            fs::set_permissions(&runtime, Permissions::from_mode(mode)).unwrap();
        }
        let input = json!({"path": planted, "content": "mine"}).to_string();
        let _ = elsewhere("XDG_RUNTIME_DIR", &runtime)
            .args(["call", "write_file", "--allow", "write", &input])
            .run()
            .exits_with(4);
    }
}

#[test]
fn client_configuration_names_the_running_servers_token() {
    let world = World::new();
    let endpoint = Endpoint::guarded(serving(&world, LOADER_GOOD), &[]);
    let file = kept(&world.home(), &endpoint);
    let token = fs::read_to_string(&file).unwrap();
    for client in ["claude-code", "cursor", "codex", "vscode", "zed"] {
        let url = format!("http://{}", endpoint.address);
        let ran = Program::new(&world)
            .args(["mcp", "config", "--client", client, "--http", &url])
            .run()
            .exits_with(0);
        ran.stderr_contains(&[file.to_str().unwrap()]);
        assert!(!format!("{ran:?}").contains(token.trim()), "{ran:?}");
    }
}

#[test]
fn client_configuration_ignores_a_killed_servers_token() {
    let world = World::new();
    let endpoint = Endpoint::guarded(serving(&world, LOADER_GOOD), &[]);
    let (url, file) = (format!("http://{}", endpoint.address), kept(&world.home(), &endpoint));
    let (_, port) = endpoint.address.split_once(':').unwrap();
    let left = file.with_file_name(format!("0.0.0.0-{port}.token"));
    secret(&left, "a-token-of-an-earlier-server");
    let told = || {
        let words = ["mcp", "config", "--client", "cursor", "--http", &url];
        format!("{:?}", Program::new(&world).args(words).run().exits_with(0))
    };
    let (left, file) = (left.to_str().unwrap().to_owned(), file.to_str().unwrap().to_owned());
    assert!(told().contains(&file) && !told().contains(&left));
    // Dropping the handle kills the server.
    drop(endpoint);
    assert!(!told().contains(&file) && !told().contains(&left), "{}", told());
}
