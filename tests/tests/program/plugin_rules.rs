//! Rules are bound to the tools that they were written for: a file that takes over a name gets no
//! permission from it.

use crate::{program, user_file};
use palisade_tests::program::Ran;
use palisade_tests::wat::Told;
use palisade_tests::{Program, Wat, World};
use std::path::PathBuf;

/// Installs and approves a plugin with these tools, all of class `write`, and returns its file.
/// Without the approval no rule would loosen the policy for them. Other plugins are away meanwhile:
/// without a person no approval takes a name from them.
fn offering(world: &World, name: &str, tools: &[&str]) -> String {
    let others = std::fs::read_dir(world.plugins()).unwrap().map(|file| file.unwrap().path());
    let away = |file: &PathBuf| world.outer().join(file.file_name().unwrap());
    let moved: Vec<PathBuf> = others.inspect(|it| std::fs::rename(it, away(it)).unwrap()).collect();
    let file = installed(world, name, tools);
    let _ = with_plugins(world, &["approve", "--all", "--yes"]).run().exits_with(0);
    moved.iter().for_each(|file| std::fs::rename(away(file), file).unwrap());
    file
}

/// Installs a plugin without an approval, so that nothing has compiled it.
fn installed(world: &World, name: &str, tools: &[&str]) -> String {
    let told = |name: &&str| Told { class: 2, ..Told::new(name) };
    world
        .install(name, &Wat::with_tools(tools.iter().map(told).collect()).build())
        .display()
        .to_string()
}

fn with_plugins<'w>(world: &'w World, words: &[&str]) -> Program<'w> {
    program(world, words).args(["--plugins"]).args([world.plugins()])
}

#[track_caller]
fn call(world: &World, more: &[&str], code: i32) -> Ran {
    with_plugins(world, &[&["call", "csv_chart"], more].concat()).run().exits_with(code)
}

#[test]
fn bare_loosening_rule_does_not_apply_to_a_plugin_file() {
    for mode in ["auto", "prompt_once"] {
        let world = World::new();
        let file = offering(&world, "aaa", &["csv_chart"]);
        let own = user_file(&world, &format!("[confirm.tools]\ncsv_chart = \"{mode}\""));
        let said = format!(
            "`csv_chart = \"{mode}\"` ({}) loosens nothing for the tool of {file}, which stays `prompt`: a rule that loosens \
             names the plugin of a file, as in `\"aaa/csv_chart\" = \"{mode}\"`",
            own.display()
        );
        let ran = call(&world, &[], 4);
        ran.stderr_contains(&[&said, "set `\"aaa/csv_chart\" = \"auto\"` under `[confirm.tools]`"]);
        for words in [&["policy", "explain", "csv_chart"][..], &["config", "show"], &["doctor"]] {
            with_plugins(&world, words).run().stderr_contains(&[&said]);
        }
        let explained = with_plugins(&world, &["policy", "explain", "csv_chart", "--json"])
            .run()
            .exits_with(4)
            .json();
        assert_eq!((&explained["mode"], &explained["rule"]), (&"prompt".into(), &"class".into()));
        let other = with_plugins(&world, &["call", "calculate", r#"{"expression": "1"}"#])
            .run()
            .exits_with(0);
        assert!(
            !other.stderr.contains("csv_chart"),
            "calls of other tools do not report it: {other:?}"
        );
    }
}

#[test]
fn advice_repeats_no_rule_that_is_present() {
    for (own, idle, holds) in [
        (
            "csv_chart = \"prompt\"\n\"aaa/csv_chart\" = \"auto\"",
            "`aaa/csv_chart = \"auto\"`",
            "`csv_chart = \"prompt\"`",
        ),
        (
            "csv_chart = \"auto\"\n\"aaa/csv_chart\" = \"prompt\"",
            "`csv_chart = \"auto\"`",
            "`\"aaa/csv_chart\" = \"prompt\"`",
        ),
    ] {
        let world = World::new();
        offering(&world, "aaa", &["csv_chart"]);
        let file = user_file(&world, &format!("[confirm.tools]\n{own}"));
        let ran = call(&world, &[], 4);
        ran.stderr_contains(&[
            idle,
            &format!("{holds} ({}) holds, so change that", file.display()),
        ]);
        assert!(!ran.stderr.contains("as in"), "{ran:?}");
    }
}

#[test]
fn hint_for_an_idle_rule_repeats_no_rule_that_is_present() {
    let world = World::new();
    offering(&world, "aaa", &["csv_chart", "csv_sum"]);
    let rules = |own: &str| user_file(&world, &format!("[confirm.tools]\n{own}"));
    rules("aaa = \"deny\"\n\"aaa/csv_sum\" = \"deny\"");
    call(&world, &[], 2).stderr_contains(&["write `\"aaa/csv_chart\"`"]);
    rules("aaa = \"deny\"\n\"aaa/csv_sum\" = \"deny\"\ncsv_chart = \"deny\"");
    call(&world, &[], 2).stderr_contains(&["its tools have rules already, so take this one out"]);
    rules("csv_chrt = \"prompt\"\ncsv_chart = \"prompt\"");
    let ran = call(&world, &["--allow", "write"], 0);
    ran.stderr_contains(&["`csv_chart` has a rule already, so take this one out"]);
    rules("csv_chrt = \"prompt\"");
    let ran = call(&world, &["--allow", "write"], 0);
    ran.stderr_contains(&["did you mean `csv_chart`?"]);
}

#[test]
fn qualified_rule_applies_to_its_plugin_only() {
    let world = World::new();
    offering(&world, "csv", &["csv_chart"]);
    user_file(&world, "[confirm.tools]\n\"csv/csv_chart\" = \"auto\"");
    let ran = call(&world, &[], 0);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("done", ""));
    let explained = with_plugins(&world, &["policy", "explain", "csv_chart"]).run().exits_with(0);
    assert!(
        explained.stdout.contains("the tool csv_chart of the plugin csv is `auto`"),
        "{explained:?}"
    );
    offering(&world, "aaa", &["csv_chart"]);
    assert_eq!(call(&world, &[], 4).stdout, "");
}

#[test]
fn name_clash_is_reported_at_every_call_with_both_files() {
    let world = World::new();
    let right = offering(&world, "csv", &["csv_chart", "csv_sum"]);
    // The plugin is cached by an earlier run, before the other file is added.
    let _ = with_plugins(&world, &["list"]).run().exits_with(0);
    let wrong = offering(&world, "aaa", &["csv_chart"]);
    let said = format!(
        "rejected {right}: the tool `csv_chart` already exists, in {wrong}; use another name"
    );
    for _ in 0..2 {
        call(&world, &["--allow", "write"], 0).stderr_contains(&[&said]);
        call(&world, &[], 4).stderr_contains(&[&said]);
    }
    with_plugins(&world, &["call", "calculate", r#"{"expression": "1"}"#])
        .run()
        .exits_with(0)
        .stderr_contains(&[&said]);
    with_plugins(&world, &["policy", "explain", "csv_chart"])
        .run()
        .exits_with(4)
        .stderr_contains(&[&said]);
    let reply = r#"{"content": [{"type": "tool_use", "id": "t", "name": "calculate", "input": {"expression": "1"}}]}"#;
    let dispatched = with_plugins(&world, &["dispatch", "--from", "anthropic"]).stdin(reply);
    dispatched.run().exits_with(0).stderr_contains(&[&said]);
    let served = with_plugins(&world, &["serve"]).stdin("");
    served.run().exits_with(0).stderr_contains(&[&said]);
}

#[test]
fn bare_name_tightens_any_plugin_file() {
    let world = World::new();
    offering(&world, "aaa", &["csv_chart"]);
    user_file(
        &world,
        "[confirm]\nwrite = \"auto\"\n[confirm.tools]\ncsv_chart = \"deny\"\n\"aaa/csv_chart\" = \"auto\"",
    );
    call(&world, &["--allow", "write"], 4)
        .stderr_contains(&["no flag lifts `confirm.tools.csv_chart = \"deny\"`"]);
    user_file(&world, "[confirm]\nwrite = \"auto\"");
    world.file("palisade.toml", "[confirm.tools]\ncsv_chart = \"prompt\"");
    call(&world, &[], 4)
        .stderr_contains(&["nobody can be asked", "or change `confirm.tools.csv_chart` in "]);
    world.file("palisade.toml", "[confirm.tools]\n\"aaa/csv_chart\" = \"prompt\"");
    call(&world, &[], 4).stderr_contains(&["or change `confirm.tools.aaa/csv_chart` in "]);
}

#[test]
fn shipped_tool_is_named_with_or_without_its_plugin() {
    for name in ["write_file", "files/write_file"] {
        let world = World::new();
        user_file(&world, &format!("[confirm.tools]\n\"{name}\" = \"auto\""));
        let words = ["call", "write_file", r#"{"path": "made.txt", "content": "made"}"#];
        assert_eq!(program(&world, &words).run().exits_with(0).stderr, "", "{name}");
    }
}

#[test]
fn misspelt_plugin_name_has_a_suggestion() {
    let world = World::new();
    offering(&world, "csv", &["csv_chart"]);
    user_file(&world, "[confirm.tools]\n\"cvs/csv_chart\" = \"auto\"");
    let said = "holds for no tool that is loaded; did you mean `csv/csv_chart`?";
    call(&world, &[], 4).stderr_contains(&["`confirm.tools.cvs/csv_chart`", said]);
    with_plugins(&world, &["config", "show"]).run().exits_with(0).stderr_contains(&[said]);
}

#[test]
fn namesake_files_match_no_rule_that_loosens() {
    let world = World::new();
    let right = offering(&world, "csv", &["csv_chart"]);
    user_file(&world, "[confirm.tools]\n\"csv/csv_chart\" = \"auto\"");
    let other = world.outer().join("other");
    std::fs::create_dir(&other).unwrap();
    let call = || {
        program(&world, &["call", "csv_chart", "--plugins"])
            .args([&other])
            .args(["--plugins"])
            .args([world.plugins()])
    };
    let _ = call().run().exits_with(0);
    let wrong = other.join("csv.wasm");
    std::fs::copy(&right, &wrong).unwrap();
    let ran = call().run().exits_with(4);
    ran.stderr_contains(&[
        &format!(
            "loosens nothing for the tool of {}, which stays `prompt`: several files bear",
            wrong.display()
        ),
        &format!("rejected {right}: the tool `csv_chart` already exists, in {}", wrong.display()),
    ]);
}

#[test]
fn plugin_of_the_command_line_comes_before_that_of_the_configuration() {
    let world = World::new();
    let installed = offering(&world, "csv", &["csv_chart"]);
    let settings = format!("[plugins]\ndirectories = [{:?}]", world.plugins());
    user_file(&world, &settings);
    let built = world.outer().join("dist");
    std::fs::create_dir(&built).unwrap();
    std::fs::copy(&installed, built.join("csv.wasm")).unwrap();
    let ran = program(&world, &["call", "csv_chart", "--allow", "write", "--plugins"])
        .args([&built])
        .run();
    let said = format!(
        "rejected {installed}: the tool `csv_chart` already exists, in {}",
        built.display()
    );
    ran.exits_with(0).stderr_contains(&[&said]);
}

#[test]
fn first_file_owns_a_name_regardless_of_the_cache() {
    let world = World::new();
    // No other test has these bytes: a file that another process compiles goes last.
    let wrong = installed(&world, "zzz", &["csv_chart", "csv_wrong"]);
    // A large file, and a small one.
    let many: Vec<String> = (0..40).map(|number| format!("csv_{number}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    // The cache holds the wrong file, and the right one is new.
    call(&world, &["--allow", "write"], 0);
    for tools in [many, vec!["csv_right"]] {
        let right = installed(&world, "charts", &[&["csv_chart"], &tools[..]].concat());
        let said = format!("rejected {wrong}: the tool `csv_chart` already exists, in {right}");
        call(&world, &["--allow", "write"], 0).stderr_contains(&[&said]);
        std::fs::remove_file(&right).unwrap();
        call(&world, &["--allow", "write"], 0);
    }
}

#[test]
fn read_tool_is_called_from_the_cache_at_once() {
    let world = World::new();
    let path = world.plugins().join("good.wasm");
    std::fs::write(&path, Wat::new(Told::new("good")).build()).unwrap();
    let good = || with_plugins(&world, &["call", "good"]).run().exits_with(0);
    assert_eq!(good().stderr, "");
    let before = installed(&world, "aaa", &["good"]);
    let after = installed(&world, "zzz", &["good"]);
    let said = format!(
        "`good` is the tool of {}, but {before} stands before that, is not compiled",
        path.display()
    );
    good().stderr_contains(&[&said]);
    assert!(!good().stderr.contains(&after), "a file behind it cannot take the name");
    let _ = with_plugins(&world, &["list"]).run().exits_with(0);
    with_plugins(&world, &["call", "good"])
        .run()
        .exits_with(4)
        .stderr_contains(&[&format!("already exists, in {before}")]);
}

#[test]
fn rule_for_one_plugin_is_not_suggested_to_a_namesake() {
    // However similar the name of the other plugin is.
    for near in ["aaa", "chart"] {
        let world = World::new();
        let wrong = offering(&world, near, &["csv_chart"]);
        offering(&world, "charts", &["csv_chart"]);
        user_file(&world, "[confirm.tools]\n\"charts/csv_chart\" = \"auto\"");
        let hint = format!("the tool `csv_chart` is of {wrong}, and not of a plugin `charts`");
        let ran = call(&world, &[], 4);
        ran.stderr_contains(&[&hint, "the rule for `charts/csv_chart` is about another plugin"]);
        assert!(
            !ran.stderr.contains("did you mean") && !ran.stderr.contains("= \"auto\"` under"),
            "{ran:?}"
        );
    }
}

#[cfg(target_os = "linux")]
#[test]
fn file_whose_name_can_be_taken_for_another_is_no_plugin() {
    use std::os::unix::ffi::OsStrExt as _;
    let world = World::new();
    let made = installed(&world, "made", &["csv_chart"]);
    for name in [&b"a\xff.wasm"[..], b"a\xfe.wasm", b"files .wasm", "\u{441}harts.wasm".as_bytes()]
    {
        std::fs::copy(&made, world.plugins().join(std::ffi::OsStr::from_bytes(name))).unwrap();
    }
    std::fs::remove_file(&made).unwrap();
    user_file(&world, "[confirm.tools]\n\"a\u{fffd}/csv_chart\" = \"auto\"");
    let ran = call(&world, &[], 3);
    assert_eq!(ran.stderr.matches("rename the file").count(), 4, "{ran:?}");
}

#[test]
fn explicit_deny_gets_no_advice_to_loosen() {
    for own in [
        "[confirm]\nwrite = \"deny\"\n\n[confirm.tools]\ncsv_chart = \"auto\"",
        "[confirm.tools]\ncsv_chart = \"auto\"\n\"aaa/csv_chart\" = \"deny\"",
    ] {
        let world = World::new();
        offering(&world, "aaa", &["csv_chart"]);
        user_file(&world, own);
        let ran = call(&world, &[], 4);
        assert!(!ran.stderr.contains("loosens nothing"), "{ran:?}");
        ran.stderr_contains(&["permission_denied: the policy denies `csv_chart`"]);
    }
}
