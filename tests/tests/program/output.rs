//! Standard output: only the output, and an honest exit code if it cannot be written.

use crate::terminal::Terminal;
use crate::{program, with_guest};
use palisade_tests::{World, guest};
use std::fs::OpenOptions;
use std::process::{Command, Stdio};

/// Every subcommand that prints, in each of its forms.
const VERBS: [&[&str]; 29] = [
    &["update"],
    &["approve"],
    &["approve", "--json"],
    &["list"],
    &["list", "--json"],
    &["inspect", "read_file"],
    &["inspect", "read_file", "--json"],
    &["call", "list_dir"],
    &["call", "list_dir", "--json"],
    &["run", "-"],
    &["run", "-", "--json"],
    &["export", "--format", "openai"],
    &["mcp", "config", "--client", "codex"],
    &["bench", "calculate", r#"{"expression": "1"}"#, "--calls", "1"],
    &["demo", "escape", "--json"],
    &["policy", "explain", "list_dir"],
    &["policy", "explain", "list_dir", "--json"],
    &["grant", "list", "--json"],
    &["config", "show"],
    &["config", "show", "--json"],
    &["doctor"],
    &["doctor", "--json"],
    &["cache", "show"],
    &["cache", "show", "--json"],
    &["new", "full-disk", "--lang", "rust"],
    &["completions", "bash"],
    &["completions", "zsh"],
    &["--help"],
    &["--version"],
];

#[test]
fn tool_output_is_printed_verbatim() {
    let world = World::new();
    for contents in ["", "no newline", "one\n", "two\n\n", "ü\r\n\t\u{1b}[1mbold"] {
        world.file("file", contents);
        let ran =
            program(&world, &["call", "read_file", r#"{"path": "file"}"#]).run().exits_with(0);
        assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), (contents, ""));
    }
}

#[test]
fn terminal_output_ends_with_a_line_feed() {
    let world = World::new();
    for (input, shown) in [
        (r#"{"path": "bare"}"#, "bare\r\n"),
        (r#"{"path": "line"}"#, "line\r\n"),
        (r#"{"path": "empty"}"#, ""),
    ] {
        world.file("bare", "bare").file("line", "line\n").file("empty", "");
        let terminal = Terminal::new();
        let mut command = terminal.command(&world, &["call", "read_file", input]);
        command.stdout(terminal.stream());
        let (ran, transcript) = terminal.run(command);
        assert_eq!((ran.code, transcript.as_str(), ran.stderr.as_str()), (0, shown, ""));
    }
}

#[test]
fn tables_and_help_fit_into_the_terminal() {
    let world = World::new();
    let write = r#"{"path": "made.txt", "content": "x"}"#;
    for words in [
        &["list"][..],
        &["policy", "explain", "write_file", write],
        &["config", "show"],
        &["cache", "show"],
        &["list", "--no-builtin"],
        &["--help"],
        &["call", "--help"],
        &["serve", "--help"],
    ] {
        let terminal = Terminal::with_columns(60);
        let mut command = terminal.command(&world, words);
        command.env("PALISADE_CACHE", guest::cache()).stdout(terminal.stream());
        let (_, transcript) = terminal.run(command);
        let plain = without_styles(&transcript);
        assert!(plain.lines().count() > 1, "{words:?}: {plain}");
        for line in plain.lines().map(str::trim_end) {
            assert!(line.chars().count() <= 60, "{words:?}: {line:?} in:\n{plain}");
        }
    }
}

/// Removes the escape sequences for colours.
fn without_styles(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    first
        + &parts.map(|part| part.split_once('m').map_or(part, |(_, rest)| rest)).collect::<String>()
}

#[test]
fn options_are_grouped_by_their_use() {
    let world = World::new();
    let help = program(&world, &["serve", "--help"]).run().exits_with(0).stdout;
    let at = |text: &str| help.find(text).unwrap_or_else(|| panic!("{text}: {help}"));
    let order = [
        "Options:",
        "--watch",
        "Over HTTP:",
        "--token-file",
        "Running tools:",
        "--timeout",
        "Options of every command:",
        "--workspace",
    ];
    assert!(order.windows(2).all(|pair| at(pair[0]) < at(pair[1])), "{help}");
}

#[test]
fn lines_of_an_argument_never_look_like_the_programs() {
    let world = World::new();
    let hostile = "x\nerror: forged";
    for words in [
        &[hostile][..],
        &["list", hostile],
        &["call", "calculate", "{}", "--allow", hostile],
        &["call", "calculate", "{}", "--timeout", hostile],
        &["export", "--format", hostile],
        &["dispatch", "--from", hostile],
        &["serve", "--http", hostile],
        &["serve", "--token", hostile, "--http"],
        &["mcp", "config", "--client", hostile],
        &["bench", "calculate", "--calls", hostile],
        &["completions", hostile],
    ] {
        let ran = program(&world, words).run().exits_with(2);
        let forged = ran.stderr.lines().filter(|line| line.starts_with("error: forged")).count();
        assert_eq!(forged, 0, "{words:?}: {ran:?}");
        ran.stderr_contains(&["forged"]);
    }
}

#[test]
fn full_disk_is_1_with_a_message() {
    let world = World::new();
    for words in VERBS {
        let full =
            OpenOptions::new().write(true).open("/dev/full").expect("there is a full device");
        let ran = program(&world, words).stdout(full).run_into();
        assert_eq!(ran.code, 1, "{words:?}: {ran:?}");
        ran.stderr_contains(&["error:", "No space left on device"]);
        assert_eq!(ran.stderr.lines().count(), 1, "{words:?}: {ran:?}");
    }
}

#[test]
fn unwritable_answers_of_executed_tools_are_1() {
    let world = World::new();
    let reply = r#"[{"id": "c", "function": {"name": "list_dir", "arguments": "{}"}}]"#;
    let full = OpenOptions::new().write(true).open("/dev/full").expect("there is a full device");
    let ran =
        program(&world, &["dispatch", "--from", "openai"]).stdin(reply).stdout(full).run_into();
    assert_eq!(ran.code, 1, "{ran:?}");
    ran.stderr_contains(&["error: cannot write the output", "No space left on device"]);
}

#[test]
fn closed_output_pipe_is_no_failure() {
    let world = World::new();
    for words in VERBS {
        let (reader, writer) = std::io::pipe().expect("there are pipes");
        drop(reader);
        let ran = program(&world, words).stdout(writer).run_into();
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{words:?}");
    }
}

#[test]
fn closed_output_pipe_keeps_a_failure() {
    let world = World::new();
    world.file("palisade.toml", "[confirm]\nwrite = \"deny\"");
    let write = r#"{"path": "x", "content": "x"}"#;
    let deaf = |words: &[&str]| {
        let (reader, writer) = std::io::pipe().expect("there are pipes");
        drop(reader);
        program(&world, words).stdout(writer).run_into()
    };
    for (words, code) in [
        (&["call", "write_file", write, "--json"][..], 4),
        (&["call", "read_file", r#"{"path": "nowhere"}"#, "--json"], 5),
        (&["call", "read_file", "{}", "--json"], 6),
        (&["call", "nothing", "--json"], 3),
        (&["policy", "explain", "write_file", write], 4),
        (&["doctor", "--plugins", "/nowhere"], 2),
        (&["doctor", "--json", "--plugins", "/nowhere"], 2),
        (&["call", "list_dir", "--json"], 0),
    ] {
        let ran = deaf(words);
        assert_eq!((ran.code, ran.stderr.as_str()), (code, ""), "{words:?}");
    }
}

#[test]
fn closed_stderr_keeps_the_exit_code() {
    let world = World::new();
    for (words, code) in [
        (&["call", "nothing"][..], 3),
        (&["list", "--plugins", "missing"], 2),
        (&["list"], 0),
        (&["frobnicate"], 2),
    ] {
        let full =
            OpenOptions::new().write(true).open("/dev/full").expect("there is a full device");
        let (reader, writer) = std::io::pipe().expect("there are pipes");
        drop(reader);
        for stderr in [Stdio::from(full), Stdio::from(writer)] {
            assert_eq!(silent(&world, words, stderr), Some(code), "{words:?}");
        }
    }
}

/// Returns the exit code of a run with this standard error.
fn silent(world: &World, words: &[&str], stderr: Stdio) -> Option<i32> {
    let mut command = Command::new(palisade_tests::program::executable());
    command.env_clear().env("HOME", world.home()).env("PALISADE_CACHE", guest::cache());
    command
        .current_dir(world.root())
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(stderr);
    command.status().expect("the program can be started").code()
}

#[test]
fn guest_control_characters_never_reach_stderr() {
    let world = World::new();
    let words = ["call", "fail", r#"{"with": "deceptive"}"#];
    let ran = with_guest(&world, guest::CONTRACT_ERRORS, &words).run().exits_with(5);
    for hidden in ['\u{1b}', '\u{202e}'] {
        assert!(!ran.stderr.contains(hidden), "{ran:?}");
    }
    ran.stderr_contains(&["execution_error: a", "[2Jb", "c\n"]);
}

#[test]
fn guest_lines_never_look_like_the_programs() {
    let world = World::new();
    let input =
        serde_json::json!({"how": "fail", "text": "x\nerror: host broken\n\nwarn: y"}).to_string();
    let call = serde_json::json!([{"id": "c", "function": {"name": "abuse", "arguments": input}}])
        .to_string();
    let called =
        with_guest(&world, guest::HOSTILE_ABUSE, &["call", "abuse", &input]).run().exits_with(5);
    let dispatch = with_guest(&world, guest::HOSTILE_ABUSE, &["dispatch", "--from", "openai"]);
    for ran in [called, dispatch.stdin(call).run().exits_with(0)] {
        let (first, more) = ran.stderr.split_once('\n').expect("several lines");
        assert!(first.ends_with("execution_error: x"), "{ran:?}");
        assert_eq!(more, "  error: host broken\n  \n  warn: y\n");
    }
}

#[test]
fn control_characters_of_file_names_never_reach_stderr() {
    let world = World::new();
    std::fs::write(world.plugins().join("a\u{1b}[2J\u{202e}.wasm"), "nothing")
        .expect("a file can be written");
    let ran = program(&world, &["list", "--plugins"]).args([world.plugins()]).run().exits_with(0);
    assert!(!ran.stderr.contains(['\u{1b}', '\u{202e}']), "{ran:?}");
    ran.stderr_contains(&["rejected ", ".wasm: "]);
}

#[test]
fn colours_are_for_terminals_or_on_request() {
    let world = World::new();
    let shown = |variable: Option<&str>| {
        let terminal = Terminal::new();
        let mut command = terminal.command(&world, &["call", "nothing"]);
        command.stderr(terminal.stream()).envs(variable.map(|value| ("NO_COLOR", value)));
        let (ran, transcript) = terminal.run(command);
        assert_eq!(ran.code, 3);
        transcript
    };
    let (coloured, plain) = (shown(None), shown(Some("1")));
    assert!(coloured.contains("\u{1b}[1;31mnot_found:\u{1b}[0m "), "{coloured:?}");
    assert!(plain.contains("not_found: ") && !plain.contains("\u{1b}[1;31m"), "{plain:?}");
    let piped = program(&world, &["call", "nothing"]).run().exits_with(3);
    assert!(piped.stderr.starts_with("not_found: "), "{piped:?}");
    let table = program(&world, &["list"]).run().exits_with(0);
    assert!(!table.stdout.contains('\u{1b}'), "{table:?}");
}
