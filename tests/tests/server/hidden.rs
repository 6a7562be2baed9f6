//! No tool reads or changes a journal, wherever it is, and no project decides about it.

use palisade_tests::api::{Api, token_file};
use palisade_tests::{Program, World};
use serde_json::{Value, json};
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// Returns the path of a file in the workspace as a tool names it.
fn inside(world: &World, path: &Path) -> String {
    path.strip_prefix(world.root()).unwrap().to_str().unwrap().to_owned()
}

fn calls(path: &str) -> [Value; 3] {
    [
        json!({"tool": "read_file", "input": {"path": path}}),
        json!({"tool": "write_file", "input": {"path": path, "content": "mine"}}),
        json!({"tool": "delete_file", "input": {"path": path}}),
    ]
}

/// Checks that no tool of the server, nor of another run, reaches these files.
#[track_caller]
fn are_hidden(world: &World, home: &Path, api: &Api, files: &[PathBuf]) {
    api.session("s1");
    for file in files {
        assert!(file.is_file(), "{file:?}");
        let path = inside(world, file);
        for call in calls(&path) {
            let result = api.client.call("s1", &call);
            assert_eq!(result["error"]["class"], "permission_denied", "{call} {result}");
            let words = ["call", call["tool"].as_str().unwrap(), &call["input"].to_string()];
            let other = Program::new(world).env("HOME", home).args(words);
            let _ = other.args(["--allow", "write"]).run().exits_with(4);
        }
        assert!(file.is_file(), "{file:?}");
    }
}

/// Makes a directory of this user alone in the workspace.
fn private_folder(world: &World) -> PathBuf {
    let folder = world.root().join("kept");
    DirBuilder::new().mode(0o700).create(&folder).unwrap();
    folder
}

/// Returns the paths of what is in a directory.
fn entries(folder: &Path) -> Vec<PathBuf> {
    folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// Returns the file of a journal, and those that SQLite and the server keep beside it.
fn beside(file: &Path) -> Vec<PathBuf> {
    let name = |suffix: &str| PathBuf::from(format!("{}{suffix}", file.display()));
    vec![file.to_owned(), name("-wal"), name("-shm"), name(".lock")]
}

#[test]
fn journal_in_its_usual_place_is_hidden_from_tools() {
    let world = World::new();
    // As if the workspace were the home directory.
    let home = world.root().join("home");
    std::fs::create_dir(&home).unwrap();
    let program = Program::new(&world).env("HOME", &home);
    let api = Api::of(program, &home, &["--allow", "write"]);
    let file = home.join(".local/state/palisade/journal/journal.db");
    are_hidden(&world, &home, &api, &beside(&file));
}

#[test]
fn journal_in_a_named_place_is_hidden_from_tools_of_every_run() {
    let world = World::new();
    let file = private_folder(&world).join("own.db");
    let words = ["--allow", "write", "--journal", file.to_str().unwrap()];
    let api = Api::start(&world, &words);
    are_hidden(&world, &world.home(), &api, &beside(&file));
}

#[test]
fn state_directory_of_one_run_is_hidden_from_tools_of_every_run() {
    let world = World::new();
    let home = world.root().join("other");
    let state = home.join(".local/state");
    std::fs::create_dir_all(&state).unwrap();
    let program = Program::new(&world).env("XDG_STATE_HOME", &state);
    let api = Api::of(program, &home, &["--allow", "write"]);
    let mut files = beside(&state.join("palisade/journal/journal.db"));
    files.push(token_file(&home, &api.endpoint.address, ".operator"));
    are_hidden(&world, &world.home(), &api, &files);
}

#[test]
fn no_tool_plants_the_journal_of_calls_beside_a_configured_one() {
    let world = World::new();
    let folder = private_folder(&world);
    let own = world.home().join(".config/palisade");
    std::fs::create_dir_all(&own).unwrap();
    let settings = format!("[journal]\nfile = \"{}\"\n", folder.join("own.db").display());
    std::fs::write(own.join("palisade.toml"), settings).unwrap();
    let api = Api::start(&world, &["--allow", "write"]);
    api.session("s1");
    let input = json!({"path": "kept/calls.db", "content": "mine"});
    let planted = api.client.call("s1", &json!({"tool": "write_file", "input": input}));
    assert_eq!(planted["error"]["class"], "permission_denied", "{planted}");
    assert_eq!(world.read("kept/calls.db"), None);
}

#[test]
fn temporary_journal_in_the_workspace_is_hidden_from_tools_of_every_run() {
    let world = World::new();
    let program = Program::new(&world).env("TMPDIR", world.root());
    let api = Api::of(program, &world.home(), &["--allow", "write", "--journal", "none"]);
    let mut folders: Vec<PathBuf> = entries(&world.root());
    folders.retain(|path| path.is_dir());
    let [folder] = folders.as_slice() else { panic!("{folders:?}") };
    are_hidden(&world, &world.home(), &api, &entries(folder));
    let listed = json!({"tool": "list_dir", "input": {"path": inside(&world, folder)}});
    let listed = api.client.call("s1", &listed);
    assert_eq!(listed["error"]["class"], "permission_denied", "{listed}");
}

#[test]
fn no_tool_plants_a_file_that_would_be_played_back_into_the_journal() {
    let world = World::new();
    let file = private_folder(&world).join("own.db");
    let words = ["--allow", "write", "--journal", file.to_str().unwrap()];
    let api = Api::start(&world, &words);
    api.session("s1");
    let input = json!({"path": "kept/own.db-journal", "content": "mine"});
    let planted = api.client.call("s1", &json!({"tool": "write_file", "input": input}));
    assert_eq!(planted["error"]["class"], "permission_denied", "{planted}");
    assert_eq!(world.read("kept/own.db-journal"), None);
}

#[test]
fn project_cannot_decide_about_the_journal() {
    let world = World::new();
    let settings = ["file = \"~/x.db\"", "inputs = \"digest\"", "max_age = \"1h\"", "calls = true"];
    for setting in settings {
        world.file("palisade.toml", format!("[journal]\n{setting}\n"));
        let ran = Program::new(&world).args(["serve", "--http", "127.0.0.1:0"]).run().exits_with(2);
        ran.stderr_contains(&["palisade.toml", "`journal` would loosen a setting"]);
    }
    assert!(!world.home().join("x.db").exists());
}
