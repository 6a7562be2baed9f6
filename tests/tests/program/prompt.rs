//! Prompts before a tool that writes appear on the terminal, so that standard input and output stay
//! free.

use crate::program;
use crate::terminal::Terminal;
use palisade_tests::World;
use palisade_tests::program::{Ran, finish};
use serde_json::json;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const QUESTION: &str = "Allow this call? [y]es, [N]o, [a]lways, everywhere: ";
const OF_SEVERAL: &str = "Allow this call? [y]es, [N]o, [s]ession, [a]lways, everywhere: ";
const WRITE: &str = r#"{"path": "made.txt", "content": "made"}"#;

/// Starts a call and waits for its prompt.
#[track_caller]
fn asked(world: &World, words: &[&str]) -> (Terminal, Child) {
    let mut terminal = Terminal::new();
    let child = terminal.start(world, words);
    terminal.shows(QUESTION);
    assert_eq!(world.read("made.txt"), None, "nothing is done before the answer");
    (terminal, child)
}

#[track_caller]
fn answered(world: &World, keys: &str) -> Ran {
    let (mut terminal, child) = asked(world, &["call", "write_file", WRITE, "--json"]);
    terminal.types(keys);
    finish(child)
}

#[test]
fn question_names_tool_class_input_changes_and_plugin() {
    let world = World::new();
    let (mut terminal, child) = asked(&world, &["call", "write_file", WRITE]);
    terminal.types("y\n");
    let ran = finish(child).exits_with(0);
    let transcript = terminal.transcript();
    for part in [
        "write_file wants to run (class write)",
        "input: {",
        "would change: `made.txt`",
        "plugin: files (sha256:",
    ] {
        assert!(transcript.contains(part), "{part}: {transcript}");
    }
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("Created `made.txt` (4 bytes).", ""));
    assert_eq!(world.read("made.txt").as_deref(), Some("made"));
}

#[test]
fn question_shows_the_difference_that_the_call_would_make() {
    let world = World::new();
    world.file("a.txt", "one\ntwo\nthree\n");
    let patch = r#"{"path": "a.txt", "old": "two", "new": "2"}"#;
    let (mut terminal, child) = asked(&world, &["call", "patch_file", patch]);
    terminal.types("y\n");
    let _ = finish(child).exits_with(0);
    let transcript = terminal.transcript();
    for line in ["would change: `a.txt`", "       one", "      -two", "      +2"] {
        assert!(transcript.lines().any(|it| it.trim_end().ends_with(line)), "{line}: {transcript}");
    }
    assert_eq!(world.read("a.txt").as_deref(), Some("one\n2\nthree\n"));
}

#[test]
fn difference_that_is_out_of_date_is_not_made() {
    let world = World::new();
    world.file("made.txt", "before");
    let mut terminal = Terminal::new();
    let child = terminal.start(&world, &["call", "write_file", WRITE]);
    terminal.shows(QUESTION);
    world.file("made.txt", "edited by its owner");
    terminal.types("y\n");
    let ran = finish(child).exits_with(4);
    assert!(ran.stderr.contains("`made.txt` has changed since the user was shown"), "{ran:?}");
    assert_eq!(world.read("made.txt").as_deref(), Some("edited by its owner"));
}

#[test]
fn link_that_is_deleted_shows_and_loses_no_other_file() {
    let world = World::new();
    world.file("real.txt", "hello");
    std::os::unix::fs::symlink("real.txt", world.root().join("link")).unwrap();
    let (mut terminal, child) = asked(&world, &["call", "delete_file", r#"{"path": "link"}"#]);
    terminal.types("y\n");
    let _ = finish(child).exits_with(0);
    assert!(!terminal.transcript().contains("hello"));
    assert!(std::fs::symlink_metadata(world.root().join("link")).is_err());
    assert_eq!(world.read("real.txt").as_deref(), Some("hello"));
}

#[test]
fn only_a_clear_yes_is_a_yes() {
    for keys in ["y\n", "Y\n", "yes\n", " YES \n"] {
        let world = World::new();
        let _ = answered(&world, keys).exits_with(0);
        assert_eq!(world.read("made.txt").as_deref(), Some("made"), "{keys:?}");
    }
}

#[test]
fn no_and_the_end_of_input_deny() {
    for keys in ["n\n", "\n", "no\n", "\u{4}"] {
        let world = World::new();
        let result = answered(&world, keys).exits_with(4).json();
        assert_eq!(result["error"]["class"], "user_denied", "{keys:?}");
        assert_eq!(world.read("made.txt"), None, "{keys:?}");
    }
}

#[test]
fn end_of_input_is_named() {
    let world = World::new();
    let (mut terminal, child) = asked(&world, &["call", "write_file", WRITE]);
    terminal.types("\u{4}");
    let ran = finish(child).exits_with(4);
    let said = "user_denied: the question got no answer (its input ended, or it was closed), so the call was refused\n";
    assert_eq!(ran.stderr, said);
    assert!(terminal.transcript().ends_with(&format!("{QUESTION}\r\n")), "the line is ended");
}

/// Starts the writes of these files in one reply.
#[track_caller]
fn dispatched(world: &World, files: &[&str]) -> (Terminal, Child) {
    let call = |file: &&str| json!({"type": "tool_use", "id": file, "name": "write_file", "input": {"path": file, "content": "made"}});
    let reply = json!({"content": files.iter().map(call).collect::<Vec<_>>()}).to_string();
    let file = world.home().join("reply.json");
    std::fs::write(&file, reply).expect("a file can be written");
    let terminal = Terminal::new();
    let words = ["dispatch", "--from", "anthropic", file.to_str().unwrap()];
    let child = terminal.start(world, &words);
    (terminal, child)
}

#[test]
fn no_question_is_shown_that_a_standing_answer_has_settled() {
    for keys in ["s\n", "a\n"] {
        let world = World::new();
        let (mut terminal, child) = dispatched(&world, &["a.txt", "b.txt", "c.txt"]);
        terminal.shows(OF_SEVERAL);
        terminal.types(keys);
        let _ = finish(child).exits_with(0);
        let transcript = terminal.transcript();
        assert_eq!(transcript.matches("wants to run").count(), 1, "{keys:?}: {transcript}");
        assert!(!transcript.contains("no longer asked"), "{keys:?}: {transcript}");
        for file in ["a.txt", "b.txt", "c.txt"] {
            assert_eq!(world.read(file).as_deref(), Some("made"), "{keys:?} {file}");
        }
    }
}

#[test]
fn questions_come_in_the_order_of_the_calls() {
    let world = World::new();
    let (mut terminal, child) = dispatched(&world, &["a.txt", "b.txt", "c.txt"]);
    for file in ["a.txt", "b.txt", "c.txt"] {
        terminal.shows(&format!("would change: `{file}`"));
        terminal.shows(if file == "c.txt" { QUESTION } else { OF_SEVERAL });
        terminal.types("y\n");
    }
    let _ = finish(child).exits_with(0);
    let transcript = terminal.transcript();
    assert_eq!(transcript.matches("[s]ession").count(), 2, "the last has none after it");
    assert_eq!(world.read("c.txt").as_deref(), Some("made"));
}

#[test]
fn whole_time_of_a_question_is_told() {
    let world = World::new();
    let (mut terminal, child) = asked(&world, &["call", "write_file", WRITE]);
    terminal.types("n\n");
    let _ = finish(child).exits_with(4);
    let transcript = terminal.transcript();
    assert!(transcript.contains("it is refused after 5m\r\n"), "{transcript}");
    assert!(!transcript.contains("until palisade ends"), "a single call has none after it");
}

#[test]
fn mistyped_answer_is_asked_again() {
    let pasted = "yes please\ny\ny\n";
    let long = "y".repeat(200) + "\n";
    for keys in ["yep\n", pasted, "да\n", "1\n", &long] {
        for (keys_then, code) in [("y\n", 0), ("n\n", 4), ("\u{4}", 4)] {
            let world = World::new();
            let (mut terminal, child) = asked(&world, &["call", "write_file", WRITE]);
            terminal.types(keys);
            terminal.shows(&format!("please answer y, n or a\r\n{QUESTION}"));
            assert_eq!(world.read("made.txt"), None, "{keys:?}");
            terminal.types(keys_then);
            let _ = finish(child).exits_with(code);
            assert_eq!(world.read("made.txt").is_some(), code == 0, "{keys:?}");
        }
    }
}

/// Returns the contents of the user's configuration file.
fn own_file(world: &World) -> Option<String> {
    std::fs::read_to_string(world.home().join(".config/palisade/palisade.toml")).ok()
}

#[test]
fn always_here_writes_a_rule_for_plugin_and_tool() {
    let world = World::new();
    let (mut terminal, child) = asked(&world, &["call", "write_file", WRITE]);
    terminal.types("a\n");
    let _ = finish(child).exits_with(0);
    let transcript = terminal.transcript();
    let adds = "it adds `\"files/write_file\" = \"auto\"` to ~/.config/palisade/palisade.toml";
    assert!(transcript.contains(adds), "the question says so: {transcript}");
    assert!(transcript.contains("added to ~/.config/palisade/palisade.toml"), "{transcript}");
    assert_eq!(
        own_file(&world).as_deref(),
        Some("[confirm.tools]\n\"files/write_file\" = \"auto\"\n")
    );
    let _ = program(&world, &["call", "write_file", WRITE]).run().exits_with(0);
    let other = r#"{"path": "made.txt"}"#;
    let _ = program(&world, &["call", "delete_file", other]).run().exits_with(4);
}

#[test]
fn no_other_answer_writes_a_rule() {
    for keys in ["y\n", "n\n", "\u{4}"] {
        let world = World::new();
        let _ = answered(&world, keys);
        assert_eq!(own_file(&world), None, "{keys:?}");
    }
}

#[test]
fn rule_is_offered_only_where_it_would_decide() {
    let without = "Allow this call? [y]es, [N]o: ";
    let shows = |world: &World, words: &[&str]| {
        let mut terminal = Terminal::new();
        let words = [&["call", "write_file", WRITE], words].concat();
        let child = terminal.start(world, &words);
        terminal.shows(without);
        terminal.types("a\n");
        terminal.shows(&format!("please answer y or n\r\n{without}"));
        terminal.types("n\n");
        let _ = finish(child).exits_with(4);
    };
    // The project's own rule for the tool would hold.
    let world = World::new();
    world.file("palisade.toml", "[confirm.tools]\nwrite_file = \"prompt\"\n");
    shows(&world, &[]);
    assert_eq!(own_file(&world), None);
    // The user has decided about the tool already.
    let world = World::new();
    let own = "[confirm.tools]\n\"files/write_file\" = \"prompt\"\n";
    crate::user_file(&world, own);
    shows(&world, &[]);
    assert_eq!(own_file(&world).as_deref(), Some(own));
    // The file lies in the workspace, where others could have put it.
    let world = World::new();
    world.file("own.toml", "");
    let file = world.root().join("own.toml");
    shows(&world, &["--config", file.to_str().unwrap()]);
    assert_eq!(world.read("own.toml").as_deref(), Some(""));
}

#[test]
fn question_fits_into_the_terminal() {
    let world = World::new();
    let mut terminal = Terminal::with_columns(60);
    let path = format!("{}.txt", "long-name-".repeat(12));
    let input = serde_json::json!({"path": path, "content": "words ".repeat(50)}).to_string();
    let child = terminal.start(&world, &["call", "write_file", &input]);
    terminal.shows(QUESTION);
    terminal.types("n\n");
    let _ = finish(child).exits_with(4);
    let transcript = terminal.transcript();
    for line in transcript.lines().map(str::trim_end) {
        assert!(line.chars().count() <= 60, "{line:?} in:\n{transcript}");
    }
    // Only the question itself begins at the left edge.
    let first = |line: &&str| !line.starts_with(' ') && !line.trim().is_empty();
    let starts: Vec<&str> = transcript.lines().filter(first).map(|line| &line[..10]).collect();
    assert_eq!(starts, ["write_file", "Allow this"], "{transcript}");
}

#[test]
fn stdin_is_the_input_and_never_the_answer() {
    let world = World::new();
    let mut terminal = Terminal::new();
    let mut command = terminal.command(&world, &["call", "write_file", "-"]);
    let mut child = command.stdin(Stdio::piped()).spawn().expect("the program can be started");
    let mut stdin = child.stdin.take().expect("standard input is a pipe");
    let input = format!("{WRITE}\n");
    std::io::Write::write_all(&mut stdin, input.as_bytes()).expect("it can be written");
    drop(stdin);
    terminal.shows(QUESTION);
    terminal.types("y\n");
    let ran = finish(child).exits_with(0);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("Created `made.txt` (4 bytes).", ""));
}

#[test]
fn yes_on_stdin_is_no_answer() {
    let world = World::new();
    let ran =
        program(&world, &["call", "write_file", WRITE]).stdin("y\ny\ny\n").run().exits_with(4);
    ran.stderr_contains(&["permission_denied:"]);
    assert_eq!(world.read("made.txt"), None);
}

#[test]
fn closed_terminal_is_no_yes() {
    let world = World::new();
    let (terminal, child) = asked(&world, &["call", "write_file", WRITE]);
    drop(terminal);
    let ran = finish(child);
    assert!(matches!(ran.code, 4 | 130), "neither a refusal nor the end by SIGHUP: {ran:?}");
    assert_eq!((world.read("made.txt"), ran.stdout.as_str()), (None, ""));
}

#[test]
fn ctrl_c_at_the_question_cancels_the_call() {
    let world = World::new();
    let result = answered(&world, "\u{3}").exits_with(130).json();
    assert_eq!(result["error"]["class"], "cancelled");
    assert_eq!(world.read("made.txt"), None);
}

#[test]
fn refusal_without_terminal_names_flag_and_setting() {
    let world = World::new();
    let ran = program(&world, &["call", "write_file", WRITE]).run().exits_with(4);
    ran.stderr_contains(&[
        "permission_denied:",
        "`--allow write`",
        "[confirm.tools]",
        "write_file = \"auto\"",
        "palisade.toml",
    ]);
    let result =
        program(&world, &["call", "write_file", WRITE, "--json"]).run().exits_with(4).json();
    assert_eq!(result["error"]["detail"]["reason"], "no_confirmer");
    assert_eq!(world.read("made.txt"), None);
}

#[test]
fn read_tool_causes_no_question() {
    let world = World::new();
    world.file("file", "text");
    let terminal = Terminal::new();
    let ran =
        finish(terminal.start(&world, &["call", "read_file", r#"{"path": "file"}"#])).exits_with(0);
    assert_eq!((ran.stdout.as_str(), terminal.transcript().as_str()), ("text", ""));
}

#[test]
fn invalid_input_is_refused_before_the_question() {
    let world = World::new();
    let terminal = Terminal::new();
    let _ = finish(terminal.start(&world, &["call", "write_file", "{}"])).exits_with(6);
    let escape = r#"{"path": "../x", "content": ""}"#;
    let _ = finish(terminal.start(&world, &["call", "write_file", escape])).exits_with(4);
    assert_eq!(terminal.transcript(), "");
}

#[test]
fn text_from_a_model_is_escaped() {
    let world = World::new();
    let input = r#"{"path": "a\u001b[2J\u202e\rb.txt", "content": "\u001b]0;title\u0007\u009b2J"}"#;
    let (mut terminal, child) = asked(&world, &["call", "write_file", input]);
    terminal.types("n\n");
    let _ = finish(child).exits_with(4);
    let transcript = terminal.transcript().replace("\r\n", "\n");
    assert!(
        !transcript.contains(['\u{1b}', '\u{202e}', '\r', '\u{7}', '\u{9b}']),
        "{transcript:?}"
    );
}

#[test]
fn programs_at_one_terminal_ask_one_after_the_other() {
    let world = World::new();
    world.file("precious.txt", "kept");
    let mut terminal = Terminal::new();
    let script = format!(
        "$palisade call delete_file '{{\"path\": \"precious.txt\"}}' &
         read -r _ < go; $palisade call write_file '{WRITE}' & wait"
    );
    let go = world.outer().join("go");
    assert!(Command::new("mkfifo").arg(&go).status().unwrap().success());
    let child = terminal.start_shell(&world, &script);
    terminal.shows(QUESTION);
    std::fs::write(go, "\n").unwrap();
    let both = "write_file wants to run";
    assert!(!terminal.shows_within(both, Duration::from_secs(2)), "one question at a time");
    terminal.types("n\n");
    terminal.shows(both);
    terminal.types("y\n");
    let _ = finish(child);
    assert_eq!(world.read("made.txt").as_deref(), Some("made"));
    assert_eq!(world.read("precious.txt").as_deref(), Some("kept"));
}
