//! The program's side of the tests that the dispatcher's specification requires. The library's side
//! is `dispatcher/required.rs`; cancellation is in `interrupt.rs`.

use crate::terminal::Terminal;
use crate::{program, user_file, with_guest};
use palisade_tests::World;
use palisade_tests::guest::DISPATCHER_GATE;
use palisade_tests::program::finish;
use palisade_tests::world::SECRET;

const QUESTION: &str = "Allow this call?";
const WRITE: &str = r#"{"path": "made.txt", "content": "made"}"#;
const CLASSES: [&str; 5] = ["none", "read", "write", "execute", "network"];

#[test]
fn duplicate_name_rejection() {
    let world = World::new();
    let copy = world.plugins().join("same.wasm");
    std::fs::copy(DISPATCHER_GATE.file(), copy).unwrap();
    let plugins = world.plugins();
    let words = ["list", "--json", "--plugins", plugins.to_str().unwrap()];
    let listed = with_guest(&world, DISPATCHER_GATE, &words).run().exits_with(0).json();
    assert_eq!(listed["rejected"].as_array().map(Vec::len), Some(1), "{listed}");
    assert!(listed["rejected"][0]["reason"].as_str().unwrap().contains("already exists"));
}

#[test]
fn input_validation() {
    for class in CLASSES {
        let words = ["call", &format!("of_{class}"), r#"{"number": "one"}"#];
        let ran = with_guest(&World::new(), DISPATCHER_GATE, &words).run().exits_with(6);
        ran.stderr_contains(&["validation_error:", "number"]);
    }
}

#[test]
fn workspace_boundary_enforcement() {
    let world = World::new();
    world.link("out", "@/secret.txt");
    for path in ["../secret.txt", "out", "/etc/passwd"] {
        let ran = program(&world, &["call", "read_file", &format!(r#"{{"path": "{path}"}}"#)])
            .run()
            .exits_with(4);
        ran.stderr_contains(&["permission_denied:", "escapes the workspace boundary"]);
    }
}

#[test]
fn confirmation_prompt_and_user_allow_and_user_deny() {
    for (keys, code) in [("y\n", 0), ("a\n", 0), ("n\n", 4)] {
        let (world, mut terminal) = (World::new(), Terminal::new());
        let child = terminal.start(&world, &["call", "write_file", WRITE]);
        terminal.shows(QUESTION);
        terminal.types(keys);
        let _ = finish(child).exits_with(code);
        assert_eq!(world.read("made.txt").is_some(), code == 0, "{keys:?}");
    }
}

#[test]
fn confirmation_timeout() {
    let (world, mut terminal) = (World::new(), Terminal::new());
    user_file(&world, "[confirm]\ntimeout = \"1s\"");
    let child = terminal.start(&world, &["call", "write_file", WRITE, "--json"]);
    terminal.shows(QUESTION);
    let result = finish(child).exits_with(4).json();
    assert_eq!(result["error"]["class"], "confirmation_timeout");
    assert_eq!(world.read("made.txt"), None);
}

#[test]
fn shell_cancellation_via_sigterm_sigkill() {
    let world = World::new();
    let input = serde_json::json!({"command": "trap '' TERM; echo begun; touch begun; while :; do sleep 0.01; done"})
        .to_string();
    let words = ["call", "shell", &input, "--allow", "execute", "--json"];
    let child = program(&world, &words).stdout(std::process::Stdio::piped()).start();
    world.wait_for("begun");
    let begun = std::time::Instant::now();
    crate::interrupt::interrupt(&child);
    let result = finish(child).exits_with(130).json();
    assert!(
        begun.elapsed() >= std::time::Duration::from_secs(5),
        "SIGKILL comes 5 s after SIGTERM"
    );
    assert_eq!(
        (&result["error"]["class"], &result["metadata"]["signal"]),
        (&"cancelled".into(), &9.into())
    );
    assert!(result["content"][0]["text"].as_str().unwrap().contains("begun"), "{result}");
}

#[test]
fn workspace_scoped_file_api_enforcement() {
    let world = World::new();
    for command in ["cat ../secret.txt", "cat /etc/shadow", "echo x > ../new.txt"] {
        let input = serde_json::json!({"command": command}).to_string();
        let ran =
            program(&world, &["call", "shell", &input, "--allow", "execute"]).run().exits_with(5);
        assert!(!ran.stdout.contains(SECRET) && !ran.stderr.contains(SECRET), "{ran:?}");
        ran.stderr_contains(&["denied"]);
    }
    assert!(!world.outer().join("new.txt").exists());
}

#[test]
fn trusted_workspace_lowers_the_bar() {
    let world = World::new();
    user_file(
        &world,
        &format!("[[trusted]]\nworkspace = {:?}\nexecute = \"prompt\"", world.root()),
    );
    let _ = program(&world, &["call", "write_file", WRITE]).run().exits_with(0);
    program(&world, &["call", "shell", r#"{"command": "true"}"#])
        .run()
        .exits_with(4)
        .stderr_contains(&["nobody can be asked"]);
}

/// The built-in tools with their classes, and an input of each.
const BUILT_IN: [(&str, &str, &str); 9] = [
    ("read_file", "read", r#"{"path": "f.txt"}"#),
    ("list_dir", "read", "{}"),
    ("find_files", "read", r#"{"pattern": "*.txt"}"#),
    ("search_files", "read", r#"{"pattern": "text"}"#),
    ("calculate", "none", r#"{"expression": "1"}"#),
    ("write_file", "write", r#"{"path": "g.txt", "content": ""}"#),
    ("patch_file", "write", r#"{"path": "f.txt", "old": "text", "new": "new"}"#),
    ("delete_file", "write", r#"{"path": "f.txt"}"#),
    ("shell", "execute", r#"{"command": "true"}"#),
];

#[test]
fn side_effect_classification_matches_event_payload() {
    let of_gate = CLASSES.map(|class| (format!("of_{class}"), class));
    let of_gate = of_gate.iter().map(|(tool, class)| (tool.as_str(), *class, r#"{"number": 1}"#));
    for (tool, class, input) in BUILT_IN.into_iter().chain(of_gate) {
        let world = World::new();
        world.file("f.txt", "text");
        let events = world.home().join("events.jsonl");
        let words = ["call", tool, input, "--events", events.to_str().unwrap()];
        let program = match tool.starts_with("of_") {
            true => with_guest(&world, DISPATCHER_GATE, &words),
            false => program(&world, &words),
        };
        let _ = program.args(["--allow", "write,execute,network"]).run().exits_with(0);
        let text = std::fs::read_to_string(events).unwrap();
        let own: Vec<&str> =
            text.lines().filter(|line| line.contains("\"event\":\"tool.")).collect();
        let called = own.iter().filter(|line| line.contains("\"event\":\"tool.called\"")).count();
        assert!(called == 1 && own.len() >= 2, "{tool}: {text}");
        let field = format!("\"side_effects\":\"{class}\"");
        assert!(own.iter().all(|line| line.contains(&field)), "{tool}: {text}");
    }
}
