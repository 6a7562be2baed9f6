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
