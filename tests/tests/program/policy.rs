//! Who decides what may run: the user's configuration, a flag for one run, and nobody in the workspace.

use crate::{program, user_file};
use palisade_tests::World;

const WRITE: &str = r#"{"path": "made.txt", "content": "made"}"#;

#[test]
fn allow_lifts_a_prompt_for_its_class_only() {
    let world = World::new();
    let _ = program(&world, &["call", "write_file", WRITE, "--allow", "execute,network"]).run().left_with(4);
    assert_eq!(world.read("made.txt"), None);
    let _ = program(&world, &["call", "write_file", WRITE, "--allow", "execute,write"]).run().left_with(0);
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
        let ran = program(&world, &["call", "write_file", WRITE, "--allow", "write", "--json"]).run().left_with(4);
        assert_eq!(ran.json()["error"]["detail"]["reason"], "policy", "{text}");
        program(&world, &["call", "write_file", WRITE, "--allow", "write"])
            .run()
            .left_with(4)
            .complains(&["deny", "palisade.toml"]);
        assert_eq!(world.read("made.txt"), None, "{text}");
    }
}

#[test]
fn a_project_can_deny_and_no_flag_lifts_that() {
    let world = World::new();
    world.file("palisade.toml", "[confirm]\nread = \"deny\"");
    program(&world, &["call", "list_dir", "--allow", "read"]).run().left_with(4).complains(&["policy"]);
}

#[test]
fn the_user_can_set_a_tool_or_a_class_to_auto() {
    for text in ["[confirm.tools]\nwrite_file = \"auto\"", "[confirm]\nwrite = \"auto\""] {
        let world = World::new();
        user_file(&world, text);
        let _ = program(&world, &["call", "write_file", WRITE]).run().left_with(0);
        assert_eq!(world.read("made.txt").as_deref(), Some("made"), "{text}");
    }
}

#[test]
fn a_mode_of_a_tool_wins_over_that_of_its_class() {
    let world = World::new();
    user_file(&world, "[confirm]\nwrite = \"auto\"\n[confirm.tools]\nwrite_file = \"prompt\"");
    program(&world, &["call", "write_file", WRITE]).run().left_with(4).complains(&["nobody can be asked"]);
}

#[test]
fn in_a_trusted_workspace_a_prompt_becomes_auto_unless_it_says_otherwise() {
    for (more, code) in [("", 0), ("write = \"prompt\"", 4)] {
        let world = World::new();
        user_file(&world, &format!("[[trusted]]\nworkspace = {:?}\n{more}", world.root()));
        let _ = program(&world, &["call", "write_file", WRITE]).run().left_with(code);
    }
}
