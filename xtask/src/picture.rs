//! The picture of the README: a run of the demo as an SVG image.

use crate::place::Place;
use anyhow::{Context as _, ensure};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The picture, below the root of the repository.
const PICTURE: &str = "docs/demo.svg";
/// The command that the picture shows, as a user types it.
const COMMAND: &str = "$ palisade demo escape";

/// The advance of a character and of a line, in the picture's units, at a font size of 13.
const CHARACTER: f64 = 7.82;
const LINE: usize = 19;
/// The space around the text.
const MARGIN: usize = 20;

/// Draws the picture from a run of the release build.
pub(crate) fn draw(place: &Place) -> anyhow::Result<()> {
    let text = demo(&place.target.join("release/palisade"))?;
    let file = place.root.join(PICTURE);
    fs::write(&file, svg(&text)).with_context(|| format!("writing {}", file.display()))
}

/// Returns the difference between the picture and a run of this program, apart from the durations.
pub(crate) fn difference(place: &Place, program: &Path) -> anyhow::Result<Option<String>> {
    let file = place.root.join(PICTURE);
    let picture =
        fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
    let is_same = without_durations(&picture) == without_durations(&svg(&demo(program)?));
    Ok((!is_same).then(|| {
        format!("{PICTURE} shows another run than the demo; `cargo xtask picture` draws it again")
    }))
}

fn demo(program: &Path) -> anyhow::Result<String> {
    let output = Command::new(program)
        .args(["demo", "escape"])
        .output()
        .with_context(|| format!("running {}; build it first", program.display()))?;
    ensure!(output.status.success(), "the demo ended with {}", output.status);
    String::from_utf8(output.stdout).context("the output of the demo")
}

/// Replaces the durations, which differ from run to run, and the padding of their column.
fn without_durations(picture: &str) -> Vec<String> {
    let is_duration = |word: &&str| word.starts_with(|first: char| first.is_ascii_digit());
    let words = |line: &str| {
        line.split_whitespace().filter(|word| !is_duration(word)).collect::<Vec<_>>().join(" ")
    };
    // The first line has the measures of the picture, which follow from the longest line.
    picture.lines().skip(1).map(words).collect()
}

fn svg(output: &str) -> String {
    let lines: Vec<&str> = [COMMAND].into_iter().chain(output.trim_end().lines()).collect();
    let longest = lines.iter().map(|line| line.chars().count()).max().unwrap_or_default();
    let width = (longest as f64 * CHARACTER).ceil() as usize + 2 * MARGIN;
    let height = lines.len() * LINE + 2 * MARGIN;
    let mut picture = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\">\n\
         <title>A run of the demo: a hostile plugin against the sandbox</title>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#0d1117\"/>\n\
         <g font-family=\"ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace\" font-size=\"13\" \
         fill=\"#c9d1d9\" xml:space=\"preserve\">\n"
    );
    for (number, line) in lines.iter().enumerate() {
        let y = MARGIN + LINE * (number + 1) - LINE / 4;
        // Writing into a string cannot fail.
        let _ = writeln!(picture, "<text x=\"{MARGIN}\" y=\"{y}\">{}</text>", coloured(line));
    }
    picture + "</g>\n</svg>\n"
}

/// Escapes a line, and colours the command and the verdicts.
fn coloured(line: &str) -> String {
    let text = line.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let marked = |word: &str, colour: &str| {
        let span = format!("<tspan fill=\"{colour}\">{word}</tspan>");
        text.replacen(word, &span, 1)
    };
    if line.starts_with("  held") {
        marked("held", "#3fb950")
    } else if line.starts_with("  OUT") {
        marked("OUT", "#f85149")
    } else if line == COMMAND {
        marked(COMMAND, "#79c0ff")
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn picture_with_other_durations_is_the_same() {
        let run = |took: &str| svg(&format!("  held  a < b   {took} ms  refused\n"));
        assert_eq!(without_durations(&run("0.4")), without_durations(&run("12.7")));
        assert!(run("0.4").contains("a &lt; b"));
    }

    #[test]
    fn picture_with_another_verdict_differs() {
        let [held, out] = ["held", "OUT "].map(|word| svg(&format!("  {word}  a   0.4 ms  b\n")));
        assert_ne!(without_durations(&held), without_durations(&out));
    }
}
