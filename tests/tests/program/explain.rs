//! `palisade policy explain`: the decision on a call and its reason, without running anything.

use crate::terminal::Terminal;
use crate::{program, user_file};
use palisade_tests::World;
use palisade_tests::program::finish;

const WRITE: &str = r#"{"path": "sub/../made.txt", "content": "made"}"#;

/// Explains a call, and checks that nothing was run.
#[track_caller]
fn explained(world: &World, code: i32, more: &[&str]) -> serde_json::Value {
    let words = [&["policy", "explain", "write_file", WRITE, "--json"], more].concat();
    let said = program(world, &words).run().exits_with(code).json();
    assert_eq!(world.read("made.txt"), None, "nothing is run");
    said
}

#[test]
fn explanation_names_rule_origin_and_changes() {
    let world = World::new();
    let terminal = Terminal::new();
    let child = terminal.start(&world, &["policy", "explain", "write_file", WRITE, "--json"]);
    let said = finish(child).exits_with(0).json();
    assert_eq!(
        (&said["outcome"], &said["mode"], &said["rule"]),
        (&"asks".into(), &"prompt".into(), &"class".into())
    );
    assert_eq!((&said["side_effects"], &said["origin"]), (&"write".into(), &"default".into()));
    assert_eq!(said["projected_modifications"], serde_json::json!(["made.txt"]));
    let advice = said["advice"].as_str().expect("a question has advice");
    assert!(advice.starts_with("allow it with `--allow write`, or set"), "{advice}");
}

#[test]
fn path_over_a_link_is_that_of_the_file_that_changes() {
    let world = World::new();
    world.folder("docs").folder(".vscode");
    std::os::unix::fs::symlink("../.vscode", world.root().join("docs/notes")).unwrap();
    for (path, changes) in [
        ("docs/notes/tasks.json", ".vscode/tasks.json"),
        ("docs/notes/new/deep/tasks.json", ".vscode/new/deep/tasks.json"),
        ("docs/tasks.json", "docs/tasks.json"),
    ] {
        let input = serde_json::json!({"path": path, "content": "x"}).to_string();
        let words = ["policy", "explain", "write_file", &input, "--json", "--allow", "write"];
        let said = program(&world, &words).run().exits_with(0).json();
        assert_eq!(said["projected_modifications"], serde_json::json!([changes]), "{path}");
    }
}

#[test]
fn call_that_runs_needs_no_advice() {
    let said = explained(&World::new(), 0, &["--allow", "write"]);
    assert!(said["advice"].is_null(), "{said}");
}

#[test]
fn refusal_without_a_terminal_is_explained_with_its_exit_code() {
    let world = World::new();
    let said = explained(&world, 4, &[]);
    assert_eq!(
        (&said["outcome"], &said["mode"], &said["rule"]),
        (&"refused".into(), &"prompt".into(), &"class".into())
    );
    assert!(
        said["advice"].as_str().unwrap().starts_with("allow it with `--allow write`, or set"),
        "{said}"
    );
    let call = program(&world, &["call", "write_file", WRITE]).run().exits_with(4);
    call.stderr_contains(&[said["advice"].as_str().unwrap()]);
}

#[test]
fn tool_that_path_rules_do_not_bind_is_refused_with_every_input() {
    let world = World::new();
    world.file("palisade.toml", "[paths]\ndeny = [\"secrets/**\"]\n");
    for input in [None, Some(r#"{"command": "ls"}"#)] {
        let words = ["policy", "explain", "shell"].into_iter().chain(input);
        let words: Vec<&str> = words.chain(["--allow", "execute"]).collect();
        let said = program(&world, &words).run().exits_with(4).stdout;
        assert!(said.contains("there are path rules") && !said.contains("would run"), "{said}");
        // No advice about a rule that does not decide.
        assert!(!said.contains("because") && !said.contains("--allow"), "{said}");
    }
    // The advice names the file that has the rules.
    let words = ["policy", "explain", "read_file", r#"{"path": "secrets/a"}"#];
    let said = program(&world, &words).run().exits_with(4).stdout;
    assert!(
        said.contains("in ./palisade.toml") || said.contains("workspace/palisade.toml"),
        "{said}"
    );
}

#[test]
fn link_to_a_denied_path_is_refused_as_in_a_call() {
    let world = World::new();
    world.file("palisade.toml", "[paths]\ndeny = [\"secrets/**\"]\n");
    world.file("secrets/key", "secret");
    world.file("docs/a", "text");
    world.link("to_secrets", "secrets").link("to_docs", "docs");
    for (path, code) in [("to_secrets/key", 4), ("to_secrets/new", 4), ("to_docs/a", 0)] {
        let write = serde_json::json!({ "path": path, "content": "new" }).to_string();
        let read = serde_json::json!({ "path": path }).to_string();
        for words in [&["write_file", &write, "--allow", "write"][..], &["read_file", &read]] {
            let fate = program(&world, &[&["policy", "explain"], words].concat());
            let said = fate.run().exits_with(code).stdout;
            assert_eq!(said.contains("would be refused"), code == 4, "{said}");
            if path != "to_secrets/new" {
                let _ = program(&world, &[&["call"], words].concat()).run().exits_with(code);
            }
        }
    }
    assert_eq!(world.read("secrets/key").as_deref(), Some("secret"));
}

#[test]
fn second_name_of_a_file_is_refused_as_in_a_call() {
    let world = World::new();
    world.file("palisade.toml", "[paths]\ndeny = [\"secrets/**\"]\n");
    world.file("a.txt", "text");
    for (name, code) in [("a.txt", 0), ("b.txt", 4)] {
        if name == "b.txt" {
            std::fs::hard_link(world.root().join("a.txt"), world.root().join(name)).unwrap();
        }
        let read = serde_json::json!({ "path": name }).to_string();
        for words in [&["policy", "explain", "read_file", &read][..], &["call", "read_file", &read]]
        {
            let _ = program(&world, words).run().exits_with(code);
        }
    }
}

#[test]
fn explanation_without_valid_input_is_partial() {
    let world = World::new();
    let words = ["policy", "explain", "write_file", "--json"];
    let said = program(&world, &words).run().exits_with(4).json();
    assert_eq!((&said["outcome"], &said["rule"]), (&"refused".into(), &"class".into()));
    assert!(said["projected_modifications"].is_null() && said["error"].is_null(), "{said}");
    let said = program(&world, &words).args(["--allow", "write"]).run().exits_with(0).json();
    assert_eq!((&said["outcome"], &said["rule"]), (&"runs".into(), &"allow".into()));
    let words = ["policy", "explain", "write_file", "{}", "--allow", "write"];
    let said = program(&world, &words).args(["--json"]).run().exits_with(6).json();
    assert_eq!((&said["outcome"], &said["rule"]), (&"refused".into(), &"allow".into()));
    assert_eq!(
        (&said["error"]["class"], &said["timeout_ms"]),
        (&"validation_error".into(), &60_000.into())
    );
    let text = program(&world, &words).run().exits_with(6).stdout;
    assert!(text.contains("refused before the policy is asked: the input is not valid"), "{text}");
    assert!(text.contains(
        "With another input it would run without a question\n  because  the class write is allowed"
    ));
}

#[test]
fn deciding_flag_mode_or_trusted_workspace_is_named() {
    let world = World::new();
    assert_eq!(explained(&world, 0, &["--allow", "write"])["rule"], "allow");
    let file = user_file(&world, "[confirm.tools]\nwrite_file = \"auto\"");
    let said = explained(&world, 0, &[]);
    assert_eq!((&said["outcome"], &said["rule"]), (&"runs".into(), &"tool".into()));
    assert_eq!(said["origin"], file.to_string_lossy().as_ref());
    user_file(
        &world,
        &format!("[[trusted]]\nworkspace = {:?}\nexecute = \"prompt\"", world.root()),
    );
    assert_eq!(explained(&world, 0, &[])["rule"], "trusted_workspace");
    user_file(&world, &format!("[[trusted]]\nworkspace = {:?}\nwrite = \"prompt\"", world.root()));
    let said = explained(&world, 4, &[]);
    assert_eq!(said["rule"], "trusted_override");
    assert_eq!(said["origin"], "[[trusted]] in ~/.config/palisade/palisade.toml");
}

#[test]
fn deny_is_explained_with_its_exit_code() {
    let world = World::new();
    world.file("palisade.toml", "[confirm]\nwrite = \"deny\"");
    let said = explained(&world, 4, &["--allow", "write"]);
    assert_eq!((&said["outcome"], &said["rule"]), (&"refused".into(), &"class".into()));
    assert!(said["origin"].as_str().unwrap().ends_with("palisade.toml"), "{said}");
}

#[test]
fn error_before_the_policy_is_reported() {
    let world = World::new();
    for (tool, input, code, class) in [
        ("writ_file", "{}", 3, "not_found"),
        ("write_file", "{}", 6, "validation_error"),
        ("write_file", "not JSON", 6, "validation_error"),
        ("write_file", r#"{"path": "../x", "content": ""}"#, 4, "permission_denied"),
    ] {
        let said = program(&world, &["policy", "explain", tool, input, "--json"])
            .run()
            .exits_with(code)
            .json();
        assert_eq!(
            (&said["outcome"], &said["error"]["class"]),
            (&"refused".into(), &class.into()),
            "{tool} {input}"
        );
    }
}

#[test]
fn text_explanation_is_a_few_lines() {
    let ran =
        program(&World::new(), &["policy", "explain", "write_file", WRITE]).run().exits_with(4);
    let expected = "write_file would be refused: it needs a confirmation, and there is no terminal here to ask at\n  because  the class write is `prompt`\n  says     default\n  changes  `made.txt`\n  time     1m\n  advice   allow it with `--allow write`, or set `write_file = \"auto\"` under `[confirm.tools]` in ~/.config/palisade/palisade.toml\n";
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), (expected, ""));
}

#[test]
fn unreadable_policy_is_an_error_and_no_empty_policy() {
    for text in ["[confirm]\nwrite = \"ask\"", "[confirm\n", "[confirm]\nwirte = \"auto\""] {
        let world = World::new();
        user_file(&world, text);
        for words in [
            &["policy", "explain", "write_file", WRITE][..],
            &["call", "write_file", WRITE, "--allow", "write"],
        ] {
            program(&world, words).run().exits_with(2).stderr_contains(&["palisade.toml"]);
        }
        assert_eq!(world.read("made.txt"), None, "{text}");
    }
}

#[test]
fn text_from_a_model_is_escaped() {
    let input =
        r#"{"path": "a\u001b[2J\u0007b\nwrite_file would run without a question", "content": "x"}"#;
    let words = ["policy", "explain", "write_file", input, "--allow", "write"];
    let ran = program(&World::new(), &words).run().exits_with(0);
    assert!(
        !ran.stdout.contains(['\u{1b}', '\u{7}']) && ran.stdout.lines().count() == 5,
        "{:?}",
        ran.stdout
    );
    let ran =
        program(&World::new(), &["policy", "explain", "x\u{1b}[2J", "{}"]).run().exits_with(3);
    assert!(!ran.stdout.contains('\u{1b}'), "{:?}", ran.stdout);
}

#[test]
fn path_protected_by_name_is_reported_before_the_run() {
    let world = World::new();
    let input = r#"{"path": ".git/config", "content": "x"}"#;
    for verb in [&["policy", "explain"][..], &["call"]] {
        let words = [verb, &["write_file", input, "--allow", "write"]].concat();
        let ran = program(&world, &words).run().exits_with(4);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(said.contains("`.git`") && said.contains("protected"), "{said}");
    }
    for path in ["palisade.toml", "./palisade.toml"] {
        let input = format!(r#"{{"path": "{path}", "content": "x"}}"#);
        for verb in [&["policy", "explain"][..], &["call"]] {
            let words = [verb, &["write_file", &input, "--allow", "write"]].concat();
            let ran = program(&world, &words).run().exits_with(4);
            let said = format!("{}{}", ran.stdout, ran.stderr);
            assert!(said.contains("`palisade.toml`") && said.contains("protected"), "{said}");
        }
    }
    world.file("home/palisade.toml", "");
    let config = world.root().join("home/palisade.toml");
    let input = r#"{"path": "home/palisade.toml"}"#;
    for verb in [&["policy", "explain"][..], &["call"]] {
        let words = [verb, &["read_file", input, "--config"]].concat();
        let ran = program(&world, &words).args([&config]).run().exits_with(4);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(said.contains("`home/palisade.toml`") && said.contains("not for tools"), "{said}");
    }
    let input = r#"{"path": "notes.txt", "content": "x"}"#;
    let explained =
        program(&world, &["policy", "explain", "write_file", input, "--allow", "write"])
            .run()
            .exits_with(0);
    assert!(explained.stdout.contains("notes.txt"), "{explained:?}");
}

/// A plugin of another author may claim to act on links themselves, and follow them all the same.
#[test]
fn claim_of_a_plugin_file_about_links_is_not_believed() {
    let world = World::new();
    world.file("real.txt", "");
    std::os::unix::fs::symlink("real.txt", world.root().join("link")).unwrap();
    let shipped = palisade_plugins::all().iter().find(|plugin| plugin.name == "files").unwrap();
    std::fs::create_dir_all(world.plugins()).unwrap();
    std::fs::write(world.plugins().join("mine.wasm"), shipped.bytes()).unwrap();
    let plugins = world.plugins();
    let changes = |more: &[&str]| {
        let words = ["policy", "explain", "delete_file", r#"{"path": "link"}"#, "--json"];
        let words = [&words[..], more].concat();
        program(&world, &words).run().json()["projected_modifications"].clone()
    };
    assert_eq!(changes(&[]), serde_json::json!(["link"]));
    let of_a_file = ["--no-builtin", "--plugins", plugins.to_str().unwrap()];
    assert_eq!(changes(&of_a_file), serde_json::json!(["real.txt"]));
}
