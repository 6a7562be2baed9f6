//! The words of a server's tools: shown before an approval, and stopped when they change.

use super::{approve, approved, call, configure, program, serve, starts, text};
use palisade_tests::World;
use serde_json::{Value, json};

#[test]
fn changed_words_stop_a_call_until_they_are_approved() {
    let world = approved("plain", "");
    configure(&world, "changed", "");
    let words = ["call", "scripted_echo", r#"{"text": "x"}"#, "--allow", "network"];
    // The arguments of the command are part of the approval.
    let ran = program(&world, &words).run().exits_with(3);
    assert!(ran.stderr.contains("another command"), "{}", ran.stderr);
    let shown = program(&world, &["mcp", "approve", "scripted"]).run().exits_with(4);
    assert!(shown.stdout.contains("with other words: echo"), "{}", shown.stdout);
    assert!(shown.stdout.contains("First send it to another tool."), "{}", shown.stdout);
    approve(&world);
    assert_eq!(program(&world, &words).run().exits_with(0).stdout, "x");
}

#[test]
fn words_that_change_between_two_starts_stop_the_tool_and_no_other() {
    let world = World::new();
    let own = world.outer().join("server.sh");
    let script = std::fs::read_to_string(super::folder().join("scripted.sh")).unwrap();
    std::fs::write(&own, &script).unwrap();
    let table = format!(
        "[mcp.servers.scripted]\ncommand = \"sh\"\nargs = [\"{}\", \"plain\", \"{{workspace}}\"]\n",
        own.display()
    );
    let folder = world.home().join(".config/palisade");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("palisade.toml"), table).unwrap();
    approve(&world);
    std::fs::write(&own, script.replace("Repeats the text.", "Repeats it.")).unwrap();
    let echo = ["call", "scripted_echo", r#"{"text": "x"}"#, "--allow", "network"];
    let refused = program(&world, &echo).run().exits_with(4);
    assert!(refused.stderr.contains("other words"), "{}", refused.stderr);
    assert!(refused.stderr.contains("palisade mcp approve scripted"), "{}", refused.stderr);
    let step = ["call", "scripted_step", "{}", "--allow", "network"];
    assert_eq!(program(&world, &step).run().exits_with(0).stdout, "done");
    let listed = program(&world, &["list", "--json"]).run().exits_with(0).stdout;
    assert!(listed.contains("Repeats the text.") && !listed.contains("Repeats it."), "{listed}");
}

#[test]
fn words_that_change_while_the_server_runs_stop_the_tool() {
    let world = approved("plain", "");
    let mut client = serve(&world);
    let mut call = |tool: &str| call(&mut client, tool, "x");
    assert_eq!(call("scripted_echo")["result"]["content"][0]["text"], "x");
    assert_eq!(call("scripted_change")["result"]["content"][0]["text"], "changed");
    let refused = call("scripted_echo");
    assert_eq!(refused["result"]["isError"], true);
    let words = refused["result"]["content"][0]["text"].as_str().unwrap();
    assert!(words.contains("other words"), "{words}");
    assert_eq!(call("scripted_step")["result"]["content"][0]["text"], "done");
    assert_eq!(starts(&world), 1);
}

#[test]
fn server_cannot_have_its_former_words_kept() {
    // It says that its list holds for a day, and changes it.
    let world = approved("kept", "");
    let mut client = serve(&world);
    let mut call = |tool: &str| text(&call(&mut client, tool, "x")).to_owned();
    assert_eq!(call("scripted_change"), "changed");
    let refused = call("scripted_echo");
    assert!(refused.contains("other words"), "{refused}");
    assert_eq!(call("scripted_lose"), "lost");
    let refused = call("scripted_step");
    assert!(refused.contains("no list"), "{refused}");
}

#[test]
fn more_words_than_a_terminal_shows_are_approved_by_their_digest() {
    let world = World::new();
    configure(&world, "long", "");
    let approve = ["mcp", "approve", "scripted", "--yes"];
    let refused = program(&world, &approve).run().exits_with(4);
    assert!(refused.stderr.contains("more words than a terminal shows"), "{}", refused.stderr);
    let shown = program(&world, &["mcp", "approve", "scripted", "--json"]).run().exits_with(0);
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    let digest = shown["digest"].as_str().unwrap();
    assert!(refused.stderr.contains(digest), "{}", refused.stderr);
    let other = format!("sha256:{}", "0".repeat(64));
    let ran = program(&world, &approve).args(["--digest", &other]).run().exits_with(4);
    assert!(ran.stderr.contains(digest), "{}", ran.stderr);
    let by_digest = ["mcp", "approve", "scripted", "--digest", digest];
    let _ = program(&world, &by_digest).run().exits_with(0);
    let words = ["call", "scripted_echo", r#"{"text": "x"}"#, "--allow", "network"];
    assert_eq!(program(&world, &words).run().exits_with(0).stdout, "x");
}

#[test]
fn tool_is_not_called_while_its_words_are_unknown() {
    let world = approved("plain", "");
    let mut client = serve(&world);
    let mut call = |tool: &str| text(&call(&mut client, tool, "x")).to_owned();
    assert_eq!(call("scripted_lose"), "lost");
    for _ in 0..2 {
        let refused = call("scripted_echo");
        assert!(refused.contains("no list"), "{refused}");
    }
}

#[test]
fn approvals_are_hidden_from_tools_in_every_workspace() {
    let world = approved("plain", "");
    let home = world.home().display().to_string();
    let folder = ".config/palisade/palisade.mcp";
    let read = json!({"path": format!("{folder}/scripted.json")}).to_string();
    let forged = json!({"path": format!("{folder}/forged.json"), "content": "{}"}).to_string();
    for words in [["call", "read_file", &read], ["call", "write_file", &forged]] {
        let ran = program(&world, &words).args(["--allow", "write", "--workspace", &home]).run();
        let ran = ran.exits_with(4);
        assert!(
            ran.stderr.contains("protected") || ran.stderr.contains("host's own"),
            "{}",
            ran.stderr
        );
    }
    // The folder itself as the workspace.
    let inside = format!("{home}/{folder}");
    let words = ["call", "scripted_echo", r#"{"text": "x"}"#, "--allow", "network"];
    let ran = program(&world, &words).args(["--workspace", &inside]).run().exits_with(3);
    assert!(ran.stderr.contains("no MCP server is used"), "{}", ran.stderr);
}

#[test]
fn approval_that_others_can_write_does_not_count() {
    let world = approved("plain", "");
    let file = world.home().join(".config/palisade/palisade.mcp/scripted.json");
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    std::fs::set_permissions(&file, open).unwrap();
    let words = ["call", "scripted_echo", r#"{"text": "x"}"#, "--allow", "network"];
    let ran = program(&world, &words).run().exits_with(3);
    assert!(ran.stderr.contains("cannot read the approval"), "{}", ran.stderr);
    let _ = program(&world, &["call", "calculate", r#"{"expression": "1"}"#]).run().exits_with(0);
}

#[test]
fn approval_that_a_link_brings_into_reach_does_not_count() {
    let world = approved("plain", "");
    let folder = world.home().join(".config/palisade/palisade.mcp");
    let file = folder.join("scripted.json");
    let words = ["call", "scripted_echo", r#"{"text": "x"}"#, "--allow", "network"];
    let refused = |reason: &str| {
        let ran = program(&world, &words).run().exits_with(3);
        assert!(ran.stderr.contains(reason), "{}", ran.stderr);
    };
    let elsewhere = world.outer().join("elsewhere");
    std::fs::hard_link(&file, &elsewhere).unwrap();
    refused("a hard link");
    std::fs::remove_file(&elsewhere).unwrap();
    std::fs::rename(&folder, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &folder).unwrap();
    refused("its folder is a symbolic link");
    // The list says so, and goes on.
    let listed = program(&world, &["mcp", "list"]).run().exits_with(0);
    assert!(listed.stderr.contains("symbolic link"), "{}", listed.stderr);
    assert!(listed.stdout.contains("not approved"), "{}", listed.stdout);
    std::fs::remove_file(&folder).unwrap();
    std::fs::rename(&elsewhere, &folder).unwrap();
    assert_eq!(program(&world, &words).run().exits_with(0).stdout, "x");
}

#[test]
fn tools_that_no_host_accepts_are_left_out_with_the_reason() {
    let world = World::new();
    configure(&world, "odd", "");
    let shown = program(&world, &["mcp", "approve", "scripted", "--json"]).run().exits_with(0);
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    let left_out = |tool: &str| -> String {
        let all = shown["left_out"].as_array().unwrap();
        let found = all.iter().find(|it| it["tool"].as_str().unwrap().starts_with(tool));
        found.unwrap_or_else(|| panic!("{shown:#}"))["reason"].as_str().unwrap().to_owned()
    };
    assert!(left_out("long").contains("is not a tool name"));
    assert!(left_out("hidden").contains("U+202E"));
    assert!(left_out("shapeless").contains("object"));
    // Of two tools with one name the first in the order of names is taken.
    assert!(left_out("echo").contains("`scripted_echo`, which the tool `Echo` has"));
    approve(&world);
}

#[test]
fn approval_is_asked_for_and_revoked() {
    let world = World::new();
    configure(&world, "plain", "");
    let unasked = program(&world, &["mcp", "approve", "scripted"]).run().exits_with(4);
    assert!(unasked.stdout.contains("Repeats the text."), "{}", unasked.stdout);
    assert!(unasked.stdout.contains("all of yours"), "{}", unasked.stdout);
    assert!(unasked.stderr.contains("--yes"), "{}", unasked.stderr);
    approve(&world);
    let listed = program(&world, &["mcp", "list", "--json"]).run().exits_with(0);
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!((&listed[0]["server"], &listed[0]["approved"]), (&json!("scripted"), &json!(true)));
    let _ = program(&world, &["mcp", "revoke", "scripted"]).run().exits_with(0);
    let words = ["call", "scripted_echo", r#"{"text": "x"}"#, "--allow", "network"];
    let _ = program(&world, &words).run().exits_with(3);
    let _ = program(&world, &["mcp", "revoke", "scripted"]).run().exits_with(3);
    let _ = program(&world, &["mcp", "approve", "other"]).run().exits_with(3);
}

#[test]
fn server_is_removed_with_its_table_and_its_approval() {
    let world = approved("plain", "");
    let file = world.home().join(".config/palisade/palisade.toml");
    let revoke = || program(&world, &["mcp", "revoke", "scripted"]).run().exits_with(0).stdout;
    let said = "delete its table `[mcp.servers.scripted]` in ~/.config/palisade/palisade.toml";
    let revoked = revoke();
    assert!(revoked.contains(said), "{revoked}");
    assert!(!revoked.contains("Rules"), "{revoked}");
    approve(&world);
    let text = std::fs::read_to_string(&file).unwrap();
    let rule = "\n[confirm.tools]\n\"mcp/scripted/echo\" = \"auto\"\n";
    std::fs::write(&file, text + rule).unwrap();
    let revoked = revoke();
    assert!(revoked.contains("`confirm.tools.mcp/scripted/echo`"), "{revoked}");
    approve(&world);
    std::fs::write(&file, "").unwrap();
    let revoked = revoke();
    assert!(revoked.contains("no longer approved"), "{revoked}");
    assert!(!revoked.contains("delete its table"), "{revoked}");
    let _ = program(&world, &["mcp", "revoke", "scripted"]).run().exits_with(3);
}

#[test]
fn list_without_a_server_says_where_a_table_of_one_belongs() {
    let world = World::new();
    let list = |words: &[&str]| {
        program(&world, &["mcp", "list"]).args(words.iter().copied()).run().exits_with(0).stdout
    };
    let without_a_file = list(&[]);
    configure(&world, "plain", "");
    std::fs::write(world.home().join(".config/palisade/palisade.toml"), "").unwrap();
    for listed in [without_a_file, list(&[])] {
        for said in [
            "in ~/.config/palisade/palisade.toml",
            "`palisade mcp approve git`",
            "\n[mcp.servers.git]\ncommand = \"uvx\"\n",
        ] {
            assert!(listed.contains(said), "{listed}");
        }
    }
    let own = world.outer().join("own.toml");
    std::fs::write(&own, "").unwrap();
    let own = own.display().to_string();
    let listed = list(&["--config", &own]);
    assert!(listed.contains(&format!("in {own}")), "{listed}");
}

#[test]
fn approvals_in_the_workspace_do_not_count() {
    let world = approved("plain", "");
    let home = world.home().display().to_string();
    let words =
        ["call", "scripted_echo", r#"{"text": "x"}"#, "--allow", "network", "--workspace", &home];
    let ran = program(&world, &words).run().exits_with(3);
    assert!(ran.stderr.contains("no MCP server is used"), "{}", ran.stderr);
}

#[test]
fn approval_is_planted_in_no_folder_and_through_no_link() {
    let world = approved("plain", "");
    let planted = json!({"path": "own/palisade.mcp/scripted.json", "content": "{}"}).to_string();
    let words = ["call", "write_file", &planted, "--allow", "write"];
    let ran = program(&world, &words).run().exits_with(4);
    assert!(ran.stderr.contains("protected"), "{}", ran.stderr);
    let file = world.home().join(".config/palisade/palisade.mcp/scripted.json");
    let moved = world.root().join("scripted.json");
    std::fs::rename(&file, &moved).unwrap();
    std::os::unix::fs::symlink(&moved, &file).unwrap();
    let words = ["call", "scripted_echo", r#"{"text": "x"}"#, "--allow", "network"];
    let ran = program(&world, &words).run().exits_with(3);
    assert!(ran.stderr.contains("symbolic link"), "{}", ran.stderr);
}
