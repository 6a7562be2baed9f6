//! A terminal of 60 columns: tables fit, sentences are broken between words, and a path or a
//! command stays whole. In a pipe nothing is broken.

use crate::terminal::Terminal;
use crate::{program, user_file};
use palisade_tests::World;

const COLUMNS: u16 = 60;

/// Runs the program in a terminal that shows both streams, and returns its lines without colours.
#[track_caller]
fn shown(world: &World, words: &[&str], code: i32) -> Vec<String> {
    let terminal = Terminal::with_columns(COLUMNS);
    let mut command = terminal.command(world, words);
    command.stdout(terminal.stream()).stderr(terminal.stream());
    let (ran, shown) = terminal.run(command);
    assert_eq!(ran.code, code, "{shown}");
    let mut plain = String::new();
    for (index, part) in shown.split("\u{1b}[").enumerate() {
        plain.push_str(if index == 0 {
            part
        } else {
            part.trim_start_matches(|c: char| !c.is_ascii_alphabetic()).get(1..).unwrap_or("")
        });
    }
    // A progress bar is drawn over itself.
    let drawn = |line: &str| line.rsplit('\r').next().unwrap_or(line).trim_end().to_owned();
    plain.lines().map(drawn).collect()
}

#[track_caller]
fn fits(lines: &[String]) {
    for line in lines {
        assert!(line.chars().count() <= usize::from(COLUMNS), "{line:?} in:\n{}", lines.join("\n"));
    }
}

/// Checks that these texts stand on one line each, and that all other lines fit.
#[track_caller]
fn fits_around(lines: &[String], whole: &[&str]) {
    for part in whole {
        let is_whole = |line: &String| line.contains(part);
        assert!(lines.iter().any(is_whole), "{part:?} in:\n{}", lines.join("\n"));
    }
    let is_long = |line: &&String| !whole.iter().any(|part| line.trim() == *part);
    fits(&lines.iter().filter(is_long).cloned().collect::<Vec<_>>());
}

#[test]
fn table_of_the_benchmark_fits() {
    let world = World::new();
    let words = ["bench", "calculate", r#"{"expression": "1"}"#, "--calls", "10", "--callers", "2"];
    let _ = program(&world, &words).run().exits_with(0);
    let lines = shown(&world, &words, 0);
    fits(&lines);
    let at = |text: &str| lines.iter().position(|line| line.contains(text)).expect("a line");
    assert_eq!(lines[at("2 callers at once")], "2 callers at once", "its figures are below it");
    let figures = lines[at("2 callers at once") + 1].split_whitespace().count();
    assert_eq!(figures, 9, "four times with their units, and a rate");
    assert!(lines[at("p99.9")].contains("calls/s"), "the columns have their names");
}

#[test]
fn inspection_fits() {
    let world = World::new();
    for tool in ["read_file", "shell", "search_files"] {
        let _ = program(&world, &["inspect", tool]).run().exits_with(0);
        fits(&shown(&world, &["inspect", tool], 0));
    }
    let piped = program(&world, &["inspect", "read_file"]).run().exits_with(0).stdout;
    assert!(piped.lines().any(|line| line.len() > 90), "a pipe gets whole lines: {piped}");
}

#[test]
fn error_is_broken_between_words_only() {
    let world = World::new();
    let missing = world.outer().join("a-directory-with-a-long-name/and-another-one-below-it");
    let missing = missing.to_str().unwrap();
    let words = ["call", "read_file", "{}", "--workspace", missing];
    let piped = program(&world, &words).run().exits_with(2);
    assert_eq!(piped.stderr.lines().count(), 1, "{piped:?}");
    let lines = shown(&world, &words, 2);
    fits_around(&lines, &[&format!("`{missing}`:")]);
    assert!(lines.len() > 2 && lines[1..].iter().all(|line| line.starts_with("  ")), "{lines:?}");
}

#[test]
fn advice_keeps_its_command_whole() {
    let world = World::new();
    let plugins = world.outer().join("a-directory-with-a-long-name");
    std::fs::create_dir(&plugins).unwrap();
    let plugins = plugins.to_str().unwrap();
    let lines = shown(&world, &["inspect", "nothing", "--plugins", plugins], 3);
    fits_around(&lines, &[&format!("`palisade list --plugins {plugins}`")]);
    let lines = shown(&world, &["policy", "explain", "write_file"], 0);
    fits_around(&lines, &["~/.config/palisade/palisade.toml"]);
}

#[test]
fn note_is_broken_between_words_only() {
    let world = World::new();
    user_file(&world, "[confirm.tools]\nwrite_fiel = \"prompt\"\n");
    let lines = shown(&world, &["call", "write_file", "{}"], 6);
    let at = |text: &str| lines.iter().any(|line| line.contains(text));
    assert!(at("`confirm.tools.write_fiel`") && at("`write_file`?"), "{lines:?}");
    let file = world.home().join(".config/palisade/palisade.toml");
    fits_around(&lines, &[&format!("({})", file.display())]);
}

#[test]
fn usage_error_is_broken_and_its_command_is_not() {
    let lines = shown(&World::new(), &["dispatch"], 2);
    assert!(lines.iter().any(|line| line.ends_with("--from <PROVIDER> [REPLY]")), "{lines:?}");
    let own = lines.iter().filter(|line| !line.starts_with("Usage:")).cloned();
    fits(&own.collect::<Vec<_>>());
}
