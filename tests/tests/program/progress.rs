//! Live output of a running tool: shown on a terminal, and never mixed with the data.

use crate::terminal::Terminal;
use crate::{program, with_guest};
use palisade_tests::program::finish;
use palisade_tests::{World, guest};

/// Returns what a terminal on standard error shows of the guest, and standard output.
fn watched(words: &[&str]) -> (String, String) {
    let world = World::new();
    let terminal = Terminal::new();
    let mut command = terminal.command(&world, words);
    command
        .args(["--no-builtin", "--plugins"])
        .arg(guest::CONTRACT_HOST.directory())
        .stderr(terminal.stream());
    let (ran, transcript) = terminal.run(command);
    assert_eq!(ran.code, 0, "{ran:?}");
    (transcript, ran.stdout)
}

#[test]
fn emitted_text_and_progress_are_shown_on_a_terminal() {
    let (shown, stdout) = watched(&["call", "speak"]);
    for part in ["first", "second", "2 of 4 half"] {
        assert!(shown.contains(part), "{part}: {shown:?}");
    }
    assert!(shown.contains("  first"), "lines of a tool are indented: {shown:?}");
    assert_eq!(stdout, "cancelled: false");
}

#[test]
fn terminal_shows_warnings_and_verbose_everything() {
    let (shown, _) = watched(&["call", "speak"]);
    assert!(
        shown.contains("  warn: four")
            && shown.contains("  error: five")
            && !shown.contains("three"),
        "{shown:?}"
    );
    let (shown, _) = watched(&["call", "speak", "--verbose"]);
    assert!(
        ["one", "two", "three", "four", "five"].iter().all(|word| shown.contains(word)),
        "{shown:?}"
    );
}

#[test]
fn verbose_shows_what_a_tool_prints() {
    let world = World::new();
    let call = |more: &[&str]| {
        let words = [&["call", "end", r#"{"how": "return"}"#], more].concat();
        with_guest(&world, guest::CONTRACT_END, &words).run().exits_with(0)
    };
    assert_eq!(call(&[]).stderr, "");
    call(&["--verbose"]).stderr_contains(&["  info: stdout: on standard output\n"]);
}

#[cfg(target_os = "linux")]
#[test]
fn output_of_a_failed_command_is_shown_once() {
    let world = World::new();
    let words =
        ["call", "shell", r#"{"command": "echo one; echo two; exit 3"}"#, "--allow", "execute"];
    let terminal = Terminal::new();
    let mut command = terminal.command(&world, &words);
    command.stderr(terminal.stream());
    let (ran, shown) = terminal.run(command);
    assert_eq!(ran.code, 5, "{shown:?}");
    for part in ["one", "two", "exit code 3"] {
        assert_eq!(shown.matches(part).count(), 1, "{part}: {shown:?}");
    }
    let piped = program(&world, &words).run().exits_with(5);
    assert_eq!(piped.stderr, "execution_error: one\n  two\n  exit code 3\n");
}

/// Runs a command in a terminal that shows both streams.
#[cfg(target_os = "linux")]
fn shown_in_terminal(command: &str, more: &[&str]) -> String {
    let (world, terminal) = (World::new(), Terminal::new());
    let input = serde_json::json!({"command": command}).to_string();
    let words = [&["call", "shell", &input, "--allow", "execute"], more].concat();
    let mut command = terminal.command(&world, &words);
    command.stdout(terminal.stream()).stderr(terminal.stream());
    let (ran, shown) = terminal.run(command);
    assert_eq!(ran.code, 0, "{shown:?}");
    shown
}

#[cfg(target_os = "linux")]
#[test]
fn output_of_a_command_is_shown_once() {
    let shown = shown_in_terminal("echo one; echo two", &[]);
    for part in ["one", "two"] {
        assert_eq!(shown.matches(part).count(), 1, "{part}: {shown:?}");
    }
    // A text that nobody has seen is printed.
    let quiet = shown_in_terminal("true", &[]);
    assert!(quiet.contains("[the command wrote nothing]"), "{quiet:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn long_output_is_shown_once() {
    let (world, mut terminal) = (World::new(), Terminal::new());
    let loops = "i=0; while [ $i -lt 40000 ]; do echo line-$i; i=$((i+1)); done";
    let input = serde_json::json!({"command": loops}).to_string();
    let mut command = terminal.command(&world, &["call", "shell", &input, "--allow", "execute"]);
    command.stdout(terminal.stream()).stderr(terminal.stream());
    let child = command.spawn().expect("the program can be started");
    drop(command);
    terminal.shows("bytes of output are left out here");
    let _ = finish(child).exits_with(0);
    let shown = terminal.transcript();
    // The result has the middle left out, and the rest was seen.
    for part in ["line-7\r\n", "line-39999\r\n"] {
        assert_eq!(shown.matches(part).count(), 1, "{part}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn json_alone_is_shown_with_json() {
    let shown = shown_in_terminal("echo one; echo two", &["--json"]);
    let result: serde_json::Value = serde_json::from_str(&shown).expect("one JSON value");
    assert_eq!(result["output"], "one\ntwo\n");
}

#[cfg(target_os = "linux")]
#[test]
fn result_in_a_file_is_whole_beside_the_live_view() {
    let (world, terminal) = (World::new(), Terminal::new());
    let words = ["call", "shell", r#"{"command": "echo one"}"#, "--allow", "execute"];
    let mut command = terminal.command(&world, &words);
    command.stderr(terminal.stream());
    let (ran, shown) = terminal.run(command);
    assert_eq!(ran.stdout, "one\n", "standard output is a pipe");
    assert_eq!(shown.matches("one").count(), 1, "{shown:?}");
}

#[test]
fn overflowed_stack_is_named() {
    let world = World::new();
    let words = ["call", "recurse", r#"{"depth": 10000000}"#];
    let ran = with_guest(&world, guest::LIMITS_RECURSION, &words).run().exits_with(5);
    ran.stderr_contains(&["ran out of stack", "a less nested input", "-zstack-size"]);
    assert!(ran.stderr.contains("execution_error: the plugin crashed\n"), "{ran:?}");
}

#[test]
fn script_sees_no_progress() {
    let world = World::new();
    let ran = with_guest(&world, guest::CONTRACT_HOST, &["call", "speak"]).run().exits_with(0);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("cancelled: false", ""));
}

#[test]
fn verbose_names_the_limits() {
    let world = World::new();
    let words = ["call", "speak", "--verbose", "--timeout", "7s"];
    let ran = with_guest(&world, guest::CONTRACT_HOST, &words)
        .env("PALISADE_MEMORY", "32MiB")
        .run()
        .exits_with(0);
    ran.stderr_contains(&[
        "tool: speak (class none)",
        "workspace: ",
        "time: 7s",
        "memory: 32.0 MiB",
        "result: 4.0 MiB",
    ]);
    assert_eq!(ran.stdout, "cancelled: false");
}

#[test]
fn crash_details_are_shown_on_a_terminal_only() {
    let words = ["call", "end", r#"{"how": "panic"}"#];
    let (world, terminal) = (World::new(), Terminal::new());
    let mut command = terminal.command(&world, &words);
    command
        .args(["--no-builtin", "--plugins"])
        .arg(guest::CONTRACT_END.directory())
        .stderr(terminal.stream());
    // The log goes to standard error as well, so turn it off.
    command.env("PALISADE_LOG", "off");
    let (ran, shown) = terminal.run(command);
    assert_eq!(ran.code, 5, "{ran:?}");
    assert!(
        shown.contains("these are my last words") && !shown.contains("wasm backtrace"),
        "{shown:?}"
    );
    assert!(
        !shown.contains("\\n") && !shown.contains("RUST_BACKTRACE"),
        "one line for a user: {shown:?}"
    );
    // With the log on, its line would repeat the message at length.
    let terminal = Terminal::new();
    let mut command = terminal.command(&world, &words);
    command
        .args(["--no-builtin", "--plugins"])
        .arg(guest::CONTRACT_END.directory())
        .stderr(terminal.stream());
    let (_, shown) = terminal.run(command);
    assert_eq!(shown.matches("the plugin crashed").count(), 1, "{shown:?}");
    let piped = with_guest(&world, guest::CONTRACT_END, &words)
        .env("PALISADE_LOG", "off")
        .run()
        .exits_with(5);
    assert_eq!(
        (piped.stdout.as_str(), piped.stderr.as_str()),
        ("", "execution_error: the plugin crashed\n")
    );
}
