//! Configuration: sources of settings, their precedence, and errors for invalid files.

use crate::{program, user_file};
use palisade_tests::World;
use palisade_tests::program::Ran;
use serde_json::Value;
use std::fs;

#[track_caller]
fn origin(ran: Ran, key: &str) -> (String, String) {
    let shown = ran.exits_with(0).json();
    let text = |field: &str| {
        shown[key][field].as_str().map(str::to_owned).unwrap_or_else(|| panic!("{key}: {shown:#}"))
    };
    (text("value"), text("origin"))
}

#[test]
fn every_value_is_shown_with_its_origin() {
    let world = World::new();
    let ran = program(&world, &["config", "show", "--json"]).run().exits_with(0);
    let shown = ran.json();
    for (key, value) in [
        ("confirm.none", "auto"),
        ("confirm.read", "auto"),
        ("confirm.write", "prompt"),
        ("confirm.execute", "prompt"),
        ("confirm.network", "prompt"),
        ("limits.memory", "128.0 MiB"),
        ("plugins.builtin", "true"),
    ] {
        assert_eq!(shown[key]["value"], value, "{key}");
        assert_eq!(shown[key]["origin"], "default", "{key}");
    }
    let text = program(&world, &["config", "show"]).run().exits_with(0).stdout;
    for key in shown.as_object().expect("an object").keys() {
        assert!(
            text.lines().any(|line| line.starts_with(key.as_str()) && line.contains("# default")),
            "{key}: {text}"
        );
    }
}

#[test]
fn every_file_key_is_shown_with_its_file() {
    let world = World::new();
    let file = user_file(
        &world,
        "[confirm]\nwrite = \"deny\"\ntimeout = \"1m\"\n[confirm.tools]\nread_file = \"prompt\"\n[limits]\nconcurrency = 2\ntimeout = \"5s\"\n",
    );
    let shown = program(&world, &["config", "show", "--json"]).run().exits_with(0).json();
    for (key, value) in [
        ("confirm.write", "deny"),
        ("confirm.tools.read_file", "prompt"),
        ("limits.timeout", "5s"),
        ("confirm.timeout", "1m"),
        ("limits.concurrency", "2"),
    ] {
        assert_eq!(
            (&shown[key]["value"], &shown[key]["origin"]),
            (&Value::from(value), &Value::from(&*file.to_string_lossy())),
            "{key}: {shown:#}"
        );
    }
}

#[test]
fn precedence_is_flag_environment_project_user_default() {
    let world = World::new();
    let show = || program(&world, &["config", "show", "--json"]);
    let memory = |ran| origin(ran, "limits.memory");
    assert_eq!(memory(show().run()).1, "default");
    let user = user_file(&world, "[limits]\nmemory = \"96MiB\"");
    assert_eq!(memory(show().run()), ("96.0 MiB".to_owned(), user.to_string_lossy().into_owned()));
    world.file("palisade.toml", "[limits]\nmemory = \"64MiB\"");
    let (value, from) = memory(show().run());
    assert!(value == "64.0 MiB" && from.ends_with("workspace/palisade.toml"), "{value} {from}");
    let set = show().env("PALISADE_MEMORY", "200MiB").run();
    assert_eq!(memory(set), ("200.0 MiB".to_owned(), "PALISADE_MEMORY".to_owned()));
    let flag = show().args(["--no-builtin"]).run();
    assert_eq!(origin(flag, "plugins.builtin"), ("false".to_owned(), "--no-builtin".to_owned()));
    let flag = show().args(["--plugins"]).args([world.plugins()]).run();
    assert_eq!(origin(flag, "plugins.directories").1, "--plugins");
}

#[test]
fn named_file_replaces_the_users() {
    let world = World::new();
    user_file(&world, "[limits]\nmemory = \"96MiB\"");
    let other = world.outer().join("other.toml");
    fs::write(&other, "[limits]\ntimeout = \"9s\"").expect("a file can be written");
    let ran = program(&world, &["config", "show", "--json", "--config"])
        .args([&other])
        .run()
        .exits_with(0);
    assert_eq!(
        (&ran.json()["limits.memory"]["value"], &ran.json()["limits.timeout"]["value"]),
        (&"128.0 MiB".into(), &"9s".into())
    );
    let ran = program(&world, &["config", "show", "--config", "missing.toml"]).run().exits_with(2);
    ran.stderr_contains(&["missing.toml", "does not exist"]);
}

#[test]
fn loosening_project_is_refused_by_every_verb() {
    for (text, key) in [
        ("[confirm]\nwrite = \"auto\"", "confirm.write"),
        ("[confirm.tools]\nwrite_file = \"auto\"", "confirm.tools.write_file"),
        ("[[trusted]]\nworkspace = \"/\"", "trusted"),
        ("[limits]\nmemory = \"256MiB\"", "limits.memory"),
        ("[limits]\ntimeout = \"300s\"", "limits.timeout"),
        ("[limits]\nconcurrency = 200", "limits.concurrency"),
        ("[confirm]\ntimeout = \"60m\"", "confirm.timeout"),
        ("[plugins]\ndirectories = [\"evil\"]", "plugins.directories"),
    ] {
        let world = World::new();
        world.file("palisade.toml", text);
        for words in
            [&["call", "list_dir"][..], &["list"], &["config", "show"], &["export", "-f", "mcp"]]
        {
            let ran = program(&world, words).run();
            assert_eq!(ran.code, 2, "{text} {words:?}: {ran:?}");
            ran.stderr_contains(&[
                "may only tighten",
                &format!("`{key}`"),
                ".config/palisade/palisade.toml",
            ]);
            assert_eq!(ran.stdout, "");
        }
    }
}

#[test]
fn project_may_tighten_everything() {
    let world = World::new();
    world.file("palisade.toml", "[confirm]\nread = \"prompt\"\nwrite = \"deny\"\n[limits]\nmemory = \"16MiB\"\ntimeout = \"5s\"\n[plugins]\nbuiltin = false");
    let ran = program(&world, &["list", "--json"]).run().exits_with(0);
    assert_eq!(ran.json()["tools"], Value::Array(Vec::new()));
}

#[test]
fn invalid_file_is_refused_with_place_and_suggestion() {
    for (text, said) in [
        ("[limits]\nmemroy = \"1MiB\"", &["memroy", "did you mean `memory`?"][..]),
        ("[confrim]\nwrite = \"auto\"", &["confrim", "did you mean `confirm`?"]),
        ("[confirm]\nwirte = \"deny\"", &["wirte", "did you mean `write`?"]),
        ("[limits\nmemory", &["line 1"]),
        ("[limits]\nmemory = 5", &["line 2", "memory"]),
        ("[limits]\ntimeout = 60", &["line 2", "timeout = 60", "write \"60s\""]),
        ("[confirm]\nwrite = \"maybe\"", &["confirm.write", "auto, prompt, prompt_once and deny"]),
        ("[limits]\nmemory = \"1TiB\"", &["limits.memory", "512MiB"]),
    ] {
        let world = World::new();
        let file = user_file(&world, text);
        let ran = program(&world, &["call", "list_dir"]).run().exits_with(2);
        ran.stderr_contains(said).stderr_contains(&["error:", &*file.to_string_lossy()]);
        let world = World::new();
        world.file("palisade.toml", text);
        program(&world, &["list"])
            .run()
            .exits_with(2)
            .stderr_contains(said)
            .stderr_contains(&["palisade.toml"]);
    }
}

#[test]
fn rule_for_an_unknown_tool_has_a_suggestion() {
    let world = World::new();
    let file = user_file(
        &world,
        "[confirm.tools]\nraed_file = \"deny\"\nshell = \"deny\"\n[limits.tool_timeout]\nqqqq = \"5s\"",
    );
    let slip = format!(
        "`confirm.tools.raed_file` ({}) holds for no tool that is loaded; did you mean `read_file`?\n",
        file.display()
    );
    let other = format!(
        "`limits.tool_timeout.qqqq` ({}) holds for no tool that is loaded; `palisade list` shows",
        file.display()
    );
    for words in [&["config", "show"][..], &["config", "show", "--json"], &["doctor"]] {
        let ran = program(&world, words).run().exits_with(0);
        ran.stderr_contains(&[&slip, &other]);
        assert_eq!(ran.stderr.lines().count(), 2, "{ran:?}");
    }
    let ran = program(&world, &["call", "list_dir"]).run().exits_with(0);
    assert_eq!(ran.stderr, slip, "a name without a similar tool is not reported at every call");
}

#[test]
fn misspelt_rule_is_reported_without_other_plugins() {
    let world = World::new();
    user_file(&world, "[confirm.tools]\ncalculat = \"deny\"\nraed_file = \"deny\"");
    let call = program(&world, &["call", "calculate", r#"{"expression": "1"}"#]);
    let ran = call.env("PALISADE_CACHE", world.outer().join("empty")).run().exits_with(0);
    ran.stderr_contains(&["calculat`", "did you mean `calculate`?"]);
    assert_eq!(
        ran.stderr.lines().count(),
        1,
        "the names of other tools are not known yet: {ran:?}"
    );
}

#[test]
fn applicable_rules_are_silent_and_load_nothing() {
    let world = World::new();
    user_file(&world, "[confirm.tools]\nread_file = \"auto\"\nshell = \"deny\"");
    for words in [&["config", "show"][..], &["doctor"], &["call", "list_dir"]] {
        assert_eq!(program(&world, words).run().exits_with(0).stderr, "", "{words:?}");
    }
    user_file(
        &world,
        "[confirm.tools]\nraed_file = \"auto\"\n[plugins]\ndirectories = [\"/nowhere\"]",
    );
    assert_eq!(
        program(&world, &["config", "show"]).run().exits_with(0).stderr,
        "",
        "`call` reports the error"
    );
}

#[test]
fn unreadable_file_is_an_error_and_no_empty_policy() {
    let world = World::new();
    world.folder("palisade.toml");
    program(&world, &["list"])
        .run()
        .exits_with(2)
        .stderr_contains(&["palisade.toml", "not a regular file"]);
    let world = World::new();
    world.file("palisade.toml", [0xff, 0xfe]);
    program(&world, &["list"]).run().exits_with(2).stderr_contains(&["palisade.toml", "UTF-8"]);
    let world = World::new();
    world.file("palisade.toml", "#".repeat((1 << 20) + 1));
    program(&world, &["list"]).run().exits_with(2).stderr_contains(&["palisade.toml", "1 MiB"]);
}

#[test]
fn long_rule_list_is_cut_and_counted() {
    let world = World::new();
    let rules =
        |count: usize| (0..count).map(|n| format!("t{n:05} = \"deny\"\n")).collect::<String>();
    user_file(&world, "[confirm.tools]\nzzz_mine = \"deny\"");
    world.file("palisade.toml", format!("[confirm.tools]\n{}", rules(20_000)));
    let ran = program(&world, &["config", "show"]).run().exits_with(0);
    assert!(ran.stdout.lines().count() < 100 && ran.stderr.lines().count() < 30, "{ran:?}");
    let line = |part: &str| {
        ran.stdout.lines().find(|line| line.contains(part)).unwrap_or_default().to_owned()
    };
    assert!(
        line("19950 more").starts_with("confirm.tools.… ")
            && line("19950 more").contains("workspace/palisade.toml")
    );
    assert!(
        !line("confirm.tools.zzz_mine").is_empty(),
        "the rules of a project do not hide the user's rules"
    );
    ran.stderr_contains(&["19981 more rules hold for no tool"]);
    let all = program(&world, &["config", "show", "--json"]).run().exits_with(0).json();
    assert!(all.get("confirm.tools.t19999").is_some(), "a program reads all of them");
    world.file("palisade.toml", format!("[confirm.tools]\n{}", rules(20)));
    let ran = program(&world, &["config", "show"]).run().exits_with(0);
    assert!(
        !ran.stdout.contains(" more") && ran.stdout.contains("confirm.tools.t00019"),
        "{ran:?}"
    );
}

#[test]
fn unsupported_project_timeout_is_refused_with_the_file() {
    let world = World::new();
    world.file("palisade.toml", "[limits]\ntimeout = \"1ns\"");
    program(&world, &["call", "list_dir"])
        .run()
        .exits_with(2)
        .stderr_contains(&["workspace/palisade.toml", "at least 1ms"]);
}
