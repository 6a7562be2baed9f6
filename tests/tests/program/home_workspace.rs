//! The warning about a workspace that contains the home directory.

use crate::program;
use palisade_tests::World;
use palisade_tests::program::Program;
use std::path::Path;

const REACH: &str = "your home directory: tools of class read can read your keys and the settings of other programs without a question";

/// Returns the program with this directory as the home of its user.
fn at_home<'w>(world: &'w World, home: &Path, words: &[&str]) -> Program<'w> {
    program(world, words).env("HOME", home)
}

const CALL: [&str; 3] = ["call", "calculate", r#"{"expression": "1"}"#];
const VERBS: [&[&str]; 3] = [&CALL, &["serve"], &["mcp", "config", "--client", "cursor"]];

#[test]
fn tool_verbs_warn_of_a_home_workspace() {
    let world = World::new();
    let below = world.root().join("ann");
    std::fs::create_dir(&below).expect("a directory can be made");
    for (home, holds) in [(world.root(), "is"), (below, "contains")] {
        let said = format!("the workspace {holds} {REACH}; name a project with --workspace");
        for words in VERBS {
            at_home(&world, &home, words).run().exits_with(0).stderr_contains(&[&said]);
        }
        let checks = at_home(&world, &home, &["doctor", "--json"]).run().exits_with(0).json();
        let checks = checks["checks"].as_array().expect("a list");
        let check = checks.iter().find(|check| check["name"] == "workspace").expect("the check");
        assert_eq!(
            (&check["state"], &check["advice"]),
            (&"note".into(), &"name a project with --workspace".into())
        );
        assert!(
            check["found"]
                .as_str()
                .is_some_and(|found| found.contains(&format!("{holds} {REACH}"))),
            "{check}"
        );
    }
}

#[test]
fn project_workspace_and_other_verbs_cause_no_warning() {
    let world = World::new();
    for words in VERBS {
        let ran = program(&world, words).run().exits_with(0);
        assert!(!ran.stderr.contains("home directory"), "{ran:?}");
    }
    for words in [&["list"][..], &["config", "show"]] {
        let ran = at_home(&world, &world.root(), words).run().exits_with(0);
        assert!(!ran.stderr.contains("home directory"), "{ran:?}");
    }
}

#[test]
fn settings_of_later_runs_are_hidden_from_tools() {
    let world = World::new();
    let own = world.root().join(".config/palisade");
    std::fs::create_dir_all(&own).expect("a directory can be made");
    std::fs::write(own.join("palisade.toml"), "").expect("a file can be written");
    let other = world.root().join("other.toml");
    std::fs::write(&other, "").expect("a file can be written");
    let other = other.to_str().expect("the path is UTF-8");
    let write = |path: &str| format!(r#"{{"path": "{path}", "content": "[confirm]\n"}}"#);
    let other_runs = [
        ["--config", other, "XDG_UNUSED", "x"],
        ["--allow", "write", "XDG_CONFIG_HOME", "/elsewhere"],
    ];
    for [flag, value, variable, directory] in other_runs {
        let call = |path: &str| {
            let input = write(path);
            let words = ["call", flag, value, "--allow", "write", "write_file", &input];
            at_home(&world, &world.root(), &words).env(variable, directory).run()
        };
        let refused = call(".config/palisade/palisade.toml").exits_with(4);
        assert!(refused.stderr.contains("permission_denied"), "{refused:?}");
        assert_eq!(std::fs::read(own.join("palisade.toml")).expect("it can be read"), b"");
        let written = call(".config/palisade/other.toml").exits_with(0);
        assert!(written.stdout.contains("other.toml"), "{written:?}");
    }
}

/// A home directory that is used as a workspace, and another workspace.
struct Home {
    home: World,
    elsewhere: World,
}

impl Home {
    fn new() -> Self {
        Self { home: World::new(), elsewhere: World::new() }
    }

    fn at(&self, path: &str) -> String {
        self.home.root().join(path).display().to_string()
    }

    /// Runs a command of the user in another workspace.
    fn other_run<'w>(&'w self, words: &[&str]) -> Program<'w> {
        at_home(&self.elsewhere, &self.home.root(), &[words, &CALL].concat())
    }

    /// Calls a tool in the home directory, and returns the exit code.
    fn call(&self, tool: &str, path: &str) -> i32 {
        let input = match tool {
            "write_file" => format!(r#"{{"path": "{path}", "content": ""}}"#),
            _ => format!(r#"{{"path": "{path}"}}"#),
        };
        let words = ["call", tool, "--allow", "write", &input];
        at_home(&self.home, &self.home.root(), &words).run().code
    }
}

#[test]
fn settings_that_another_run_names_are_hidden_from_tools() {
    let world = Home::new();
    world.home.file("other.toml", "").file("xdg/palisade/palisade.toml", "").file("free.toml", "");
    let _ = world.other_run(&["--config", &world.at("other.toml")]).run().exits_with(0);
    let _ = world.other_run(&[]).env("XDG_CONFIG_HOME", world.at("xdg")).run().exits_with(0);
    let _ = world.other_run(&[]).env("XDG_CONFIG_HOME", world.at("later")).run().exits_with(0);
    for path in ["other.toml", "xdg/palisade/palisade.toml"] {
        for tool in ["read_file", "write_file", "delete_file"] {
            assert_eq!(world.call(tool, path), 4, "{tool} {path}");
        }
    }
    assert_eq!(world.call("write_file", "later/palisade/palisade.toml"), 4, "it can be planted");
    assert_eq!(
        (world.call("write_file", "free.toml"), world.call("read_file", "free.toml")),
        (0, 0)
    );
}

#[test]
fn plugin_directories_that_another_run_names_are_protected() {
    let world = Home::new();
    let names = |path: &str, directory: &str| {
        let text = format!("[plugins]\ndirectories = [\"{}\"]\n", world.at(directory));
        world.home.file(path, text).folder(directory).file(&format!("{directory}/readme"), "");
    };
    names("other.toml", "by-file");
    for directory in ["by-flag", "by-variable"] {
        world.home.folder(directory).file(&format!("{directory}/readme"), "");
    }
    let flags = ["--config", &world.at("other.toml"), "--plugins", &world.at("by-flag")];
    let _ = world.other_run(&flags).run().exits_with(0);
    let variable = world.other_run(&[]).env("PALISADE_PLUGINS", world.at("by-variable"));
    let _ = variable.run().exits_with(0);
    // Another directory that the file names since, also if its run would refuse the file.
    names("other.toml", "since");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o664);
    std::fs::set_permissions(world.at("other.toml"), mode).expect("a mode can be set");
    for directory in ["by-file", "by-flag", "by-variable", "since"] {
        assert_eq!(world.call("write_file", &format!("{directory}/new.wasm")), 4, "{directory}");
        assert_eq!(world.call("delete_file", &format!("{directory}/readme")), 4, "{directory}");
        assert_eq!(world.call("read_file", &format!("{directory}/readme")), 0, "{directory}");
    }
    // The default file names a directory that no run has used.
    names(".config/palisade/palisade.toml", "by-default");
    world.home.file("own.toml", "");
    let input = r#"{"path": "by-default/new.wasm", "content": ""}"#;
    let own = world.at("own.toml");
    let words = ["call", "--config", &own, "--allow", "write", "write_file", input];
    let ran = at_home(&world.home, &world.home.root(), &words).run().exits_with(4);
    assert!(ran.stderr.contains("`by-default` is protected"), "{ran:?}");
    assert_eq!(world.call("write_file", "free/new.wasm"), 0);
}

#[test]
fn workspace_that_was_a_plugin_directory_stays_writable() {
    let world = Home::new();
    let _ = world.other_run(&["--plugins", &world.at("")]).run().exits_with(0);
    assert_eq!(world.call("write_file", "x"), 0);
}
