//! The sources of policy: the user's configuration, and a flag for one run, but not the workspace.

use crate::{program, user_file, with_guest};
use palisade_tests::wat::Told;
use palisade_tests::{Wat, World, guest};

const WRITE: &str = r#"{"path": "made.txt", "content": "made"}"#;

#[test]
fn allow_lifts_prompts_of_its_class_only() {
    let world = World::new();
    let _ = program(&world, &["call", "write_file", WRITE, "--allow", "execute,network"])
        .run()
        .exits_with(4);
    assert_eq!(world.read("made.txt"), None);
    let _ = program(&world, &["call", "write_file", WRITE, "--allow", "execute,write"])
        .run()
        .exits_with(0);
    assert_eq!(world.read("made.txt").as_deref(), Some("made"));
}

#[test]
fn allow_never_lifts_a_deny() {
    for text in [
        "[confirm]\nwrite = \"deny\"",
        "[confirm.tools]\nwrite_file = \"deny\"",
        "[confirm]\nwrite = \"deny\"\n[confirm.tools]\nwrite_file = \"auto\"",
    ] {
        let world = World::new();
        user_file(&world, text);
        let ran = program(&world, &["call", "write_file", WRITE, "--allow", "write", "--json"])
            .run()
            .exits_with(4);
        assert_eq!(ran.json()["error"]["detail"]["reason"], "policy", "{text}");
        program(&world, &["call", "write_file", WRITE, "--allow", "write"])
            .run()
            .exits_with(4)
            .stderr_contains(&["deny", "palisade.toml"]);
        assert_eq!(world.read("made.txt"), None, "{text}");
    }
}

#[test]
fn refusal_names_the_file_with_the_setting() {
    let own = "in ~/.config/palisade/palisade.toml";
    let auto = format!(
        "allow it with `--allow write`, or set `write_file = \"auto\"` under `[confirm.tools]` {own}"
    );
    let project = "[confirm.tools]\nwrite_file = \"prompt\"";
    for (user, project, said) in [
        ("", "", auto.clone()),
        ("", "[confirm]\nwrite = \"prompt\"", auto),
        (
            "[confirm.tools]\nwrite_file = \"prompt\"",
            "",
            format!("or change `confirm.tools.write_file` {own}"),
        ),
        ("", project, "or change `confirm.tools.write_file` in @/palisade.toml".to_owned()),
        (
            "[confirm]\nwrite = \"deny\"",
            "",
            format!("no flag lifts `confirm.write = \"deny\"`, which stands {own}"),
        ),
        (
            "",
            "[confirm]\nwrite = \"deny\"",
            "`confirm.write = \"deny\"`, which stands in @/palisade.toml".to_owned(),
        ),
        (
            "[[trusted]]\nworkspace = \"@\"\nwrite = \"deny\"",
            "",
            format!("which stands under `[[trusted]]` {own}"),
        ),
    ] {
        let world = World::new();
        let root = world.root().to_string_lossy().into_owned();
        user_file(&world, &user.replace('@', &root));
        world.file("palisade.toml", project);
        let ran = program(&world, &["call", "write_file", WRITE]).run().exits_with(4);
        ran.stderr_contains(&[&said.replace('@', &root)]);
        let ran =
            program(&world, &["call", "write_file", WRITE, "--json"]).run().exits_with(4).json();
        assert!(
            ran["error"]["message"].as_str().unwrap().contains(&said.replace('@', &root)),
            "{ran:#}"
        );
    }
    let world = World::new();
    let other = world.outer().join("mine.toml");
    std::fs::write(&other, "").unwrap();
    let ran = program(&world, &["call", "write_file", WRITE, "--config"])
        .args([&other])
        .run()
        .exits_with(4);
    ran.stderr_contains(&[&format!("under `[confirm.tools]` in {}", other.display())]);
}

#[test]
fn limit_error_names_the_place_of_its_setting() {
    fn take(world: &World) -> palisade_tests::Program<'_> {
        with_guest(world, guest::LIMITS_MEMORY, &["call", "take", r#"{"mib": 20}"#])
    }
    let world = World::new();
    let ran = take(&world).env("PALISADE_MEMORY", "16MiB").run().exits_with(7);
    ran.stderr_contains(&["raise `limits.memory` (at most 512MiB) with PALISADE_MEMORY"]);
    world.file("palisade.toml", "[limits]\nmemory = \"16MiB\"");
    take(&world)
        .run()
        .exits_with(7)
        .stderr_contains(&["(at most 512MiB) in ", "/workspace/palisade.toml"]);
    let world = World::new();
    user_file(&world, "[limits]\nmemory = \"16MiB\"");
    take(&world)
        .run()
        .exits_with(7)
        .stderr_contains(&["(at most 512MiB) in ~/.config/palisade/palisade.toml"]);
    let sleep = with_guest(&world, guest::CANCEL_SLEEP, &["call", "sleep", "--timeout", "60ms"])
        .run()
        .exits_with(7);
    sleep.stderr_contains(&[
        "with --timeout, or with `limits.tool_timeout.sleep` in ~/.config/palisade/palisade.toml",
    ]);
}

#[test]
fn restricting_rule_without_a_matching_tool_is_reported() {
    let world = World::new();
    user_file(&world, "[confirm.tools]\n\"native/shell\" = \"deny\"");
    let shell = ["call", "shell", r#"{"command": "true"}"#, "--allow", "execute"];
    program(&world, &shell)
        .run()
        .exits_with(4)
        .stderr_contains(&["`confirm.tools.native/shell = \"deny\"`"]);
    for (rule, hint) in
        [("shell/shell", "did you mean `native/shell`?"), ("qq/wwww", "`palisade list` shows")]
    {
        user_file(&world, &format!("[confirm.tools]\n\"{rule}\" = \"deny\""));
        for words in [&["call", "list_dir"][..], &["policy", "explain", "list_dir"]] {
            let said = format!("`confirm.tools.{rule}`");
            program(&world, words).run().exits_with(0).stderr_contains(&[
                &said,
                "holds for no tool that is loaded",
                hint,
            ]);
        }
    }
}

#[test]
fn restricting_rule_under_a_plugin_name_is_refused() {
    let world = World::new();
    for (plugin, tool) in [("files", "write_file"), ("search", "search_files"), ("native", "shell")]
    {
        let rule = format!("`confirm.tools.{plugin}`");
        let hint =
            format!("`{plugin}` is a plugin, and rules name tools: write `\"{plugin}/{tool}\"`");
        let said = [rule.as_str(), &hint];
        for mode in ["deny", "prompt"] {
            user_file(&world, &format!("[confirm.tools]\n{plugin} = \"{mode}\""));
            for words in [
                &["call", "list_dir"][..],
                &["call", "calculate"],
                &["policy", "explain", "list_dir"],
            ] {
                program(&world, words).run().exits_with(2).stderr_contains(&said);
            }
            for words in [&["config", "show"][..], &["serve"], &["doctor"]] {
                program(&world, words).run().exits_with(0).stderr_contains(&said);
            }
        }
        user_file(&world, &format!("[confirm.tools]\n{plugin} = \"auto\""));
        program(&world, &["call", "list_dir"]).run().exits_with(0).stderr_contains(&said);
    }
    user_file(&world, "[confirm.tools]\ncalculate = \"deny\"");
    let ran = program(&world, &["call", "list_dir"]).run().exits_with(0);
    assert_eq!(ran.stderr, "");
}

#[test]
fn input_timeout_is_not_raised_by_a_flag() {
    let world = World::new();
    let input = r#"{"command": "sleep 30", "timeout_ms": 50}"#;
    let ran = program(&world, &["call", "shell", input, "--allow", "execute"]).run().exits_with(7);
    ran.stderr_contains(&["give a larger `timeout_ms`"]);
    assert!(!ran.stderr.contains("--timeout"), "{ran:?}");
}

#[test]
fn project_may_deny_and_no_flag_lifts_that() {
    let world = World::new();
    world.file("palisade.toml", "[confirm]\nread = \"deny\"");
    program(&world, &["call", "list_dir", "--allow", "read"])
        .run()
        .exits_with(4)
        .stderr_contains(&["policy"]);
}

#[test]
fn user_may_set_a_tool_or_class_to_auto() {
    for text in ["[confirm.tools]\nwrite_file = \"auto\"", "[confirm]\nwrite = \"auto\""] {
        let world = World::new();
        user_file(&world, text);
        let _ = program(&world, &["call", "write_file", WRITE]).run().exits_with(0);
        assert_eq!(world.read("made.txt").as_deref(), Some("made"), "{text}");
    }
}

#[test]
fn tool_mode_overrides_its_class() {
    let world = World::new();
    user_file(&world, "[confirm]\nwrite = \"auto\"\n[confirm.tools]\nwrite_file = \"prompt\"");
    program(&world, &["call", "write_file", WRITE])
        .run()
        .exits_with(4)
        .stderr_contains(&["nobody can be asked"]);
}

#[test]
fn trusted_workspace_turns_prompts_into_auto_by_default() {
    for (more, code) in [("", 0), ("write = \"prompt\"", 4)] {
        let world = World::new();
        user_file(&world, &format!("[[trusted]]\nworkspace = {:?}\n{more}", world.root()));
        let _ = program(&world, &["call", "write_file", WRITE]).run().exits_with(code);
    }
}

/// Installs a plugin whose tool has the name of a shipped one, of class `write`.
fn namesake(world: &World, name: &str) {
    let told = Told { class: 2, ..Told::new(name) };
    std::fs::write(world.plugins().join("namesake.wasm"), Wat::new(told).build()).unwrap();
}

#[test]
fn project_disabling_shipped_tools_keeps_their_names_reserved() {
    for (name, user) in
        [("read_file", ""), ("shell", ""), ("read_file", "[plugins]\nbuiltin = true")]
    {
        let world = World::new();
        namesake(&world, name);
        user_file(&world, &format!("[confirm.tools]\n{name} = \"auto\"\n{user}"));
        world.file("palisade.toml", "[plugins]\nbuiltin = false");
        let ran = program(&world, &["call", name, "{}", "--plugins"])
            .args([world.plugins()])
            .run()
            .exits_with(3);
        ran.stderr_contains(&[
            "rejected ",
            &format!("the name `{name}` stays with the shipped tool"),
            "`plugins.builtin = false`",
        ]);
        let listed = program(&world, &["list", "--json", "--plugins"])
            .args([world.plugins()])
            .run()
            .exits_with(0)
            .json();
        assert_eq!(listed["tools"], serde_json::json!([]));
    }
}

#[test]
fn user_disabling_shipped_tools_frees_their_names() {
    let project = "[plugins]\nbuiltin = false";
    for (user, project, flags) in [
        ("", "", &["--no-builtin"][..]),
        ("", project, &["--no-builtin"]),
        (project, "", &[]),
        (project, project, &[]),
    ] {
        let world = World::new();
        namesake(&world, "read_file");
        world.file("palisade.toml", project);
        let approve =
            program(&world, &["approve", "--all", "--yes", "--plugins"]).args([world.plugins()]);
        let _ = approve.args(flags).run().exits_with(0);
        // A rule for the bare name covers the shipped tool only; a rule with the plugin's name
        // covers it.
        for (rule, code, output) in [("read_file", 4, ""), ("\"namesake/read_file\"", 0, "done")] {
            user_file(&world, &format!("[confirm.tools]\n{rule} = \"auto\"\n{user}"));
            let call = program(&world, &["call", "read_file", "{}", "--plugins"])
                .args([world.plugins()])
                .args(flags);
            assert_eq!(
                call.run().exits_with(code).stdout,
                output,
                "{rule} {user:?} {project:?} {flags:?}"
            );
        }
    }
}
