//! Checks the documents: runs their commands and compares the output, compares their code with its
//! source files, and follows their links.

mod compare;
mod facts;
mod needs;
mod parse;
mod shell;

use crate::picture;
use crate::place::Place;
use anyhow::{Context as _, bail};
use parse::{Block, Role, Step};
pub(crate) use shell::Profile;
use shell::{Outcome, Trial};
use std::fs;

/// The documents. The commands of each are run in a fresh copy of the repository.
const DOCUMENTS: [&str; 50] = [
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "guest-sdk/README.md",
    "guest-sdk/macros/README.md",
    "host/palisade/README.md",
    "host/cli/README.md",
    "host/formats/README.md",
    "host/mcp/README.md",
    "host/mcp-client/README.md",
    "host/net/README.md",
    "host/shell/README.md",
    "host/store/README.md",
    "host/trust/README.md",
    "host/wasi-fs/README.md",
    "plugins/README.md",
    "plugins/declarations/README.md",
    "docs/README.md",
    "docs/authors.md",
    "docs/authors/rust.md",
    "docs/authors/python.md",
    "docs/authors/javascript.md",
    "docs/authors/c.md",
    "docs/adapt.md",
    "docs/operators.md",
    "docs/embedders.md",
    "docs/contract.md",
    "docs/grants.md",
    "docs/install.md",
    "docs/settings.md",
    "docs/trust.md",
    "docs/events.md",
    "docs/mcp.md",
    "docs/code-mode.md",
    "docs/mcp-servers.md",
    "docs/server.md",
    "docs/performance.md",
    "docs/dist.md",
    "docs/design/scheduling.md",
    "docs/design/own-threads.md",
    "docs/design/loading.md",
    "docs/design/dependencies.md",
    "examples/README.md",
    "examples/csv-query/README.md",
    "examples/text-analysis/README.md",
    "examples/markdown/README.md",
    "examples/image-info/README.md",
    "tests/compat/README.md",
];

/// The maximum length of the README, in lines.
const README_LINES: usize = 250;

/// The pages in which every command is run, unless a comment says why it is not.
const BOOK: &str = "docs/";

/// Checks every document and reports all errors at once.
pub(crate) fn check(place: &Place, profile: Profile) -> anyhow::Result<()> {
    let mut wrong = facts::wrong(place)?;
    wrong.extend(picture::difference(place, &profile.program(place))?);
    for name in DOCUMENTS {
        let text =
            fs::read_to_string(place.root.join(name)).with_context(|| format!("reading {name}"))?;
        let blocks = parse::blocks(&text);
        wrong.extend(broken_links(place, name, &text));
        wrong.extend(outdated_blocks(place, name, &blocks)?);
        wrong.extend(unnamed_files(name, &text, &blocks));
        if name.starts_with(BOOK) {
            wrong.extend(unrun_commands(name, &blocks));
        }
        wrong.extend(wrong_outputs(place, profile, name, &blocks)?);
        if name == "README.md" && text.lines().count() >= README_LINES {
            wrong.push(format!("{name} has {README_LINES} lines or more"));
        }
    }
    if wrong.is_empty() {
        return Ok(());
    }
    wrong.iter().for_each(|wrong| eprintln!("{wrong}\n"));
    bail!("{} statements of the documents do not hold", wrong.len())
}

/// Returns the relative links whose target is missing.
fn broken_links(place: &Place, name: &str, text: &str) -> Vec<String> {
    let base = place.root.join(name);
    let leads_nowhere =
        |link: &&str| base.parent().is_none_or(|directory| !directory.join(link).exists());
    parse::links(text)
        .into_iter()
        .filter(leads_nowhere)
        .map(|link| format!("{name}: `{link}` does not exist"))
        .collect()
}

/// Returns the code blocks that differ from the file that they are copied from.
fn outdated_blocks(place: &Place, name: &str, blocks: &[Block]) -> anyhow::Result<Vec<String>> {
    let mut outdated_blocks = Vec::new();
    for block in blocks {
        let Role::SameAs(file) = &block.role else { continue };
        let text =
            fs::read_to_string(place.root.join(file)).with_context(|| format!("reading {file}"))?;
        if !text.contains(&block.text()) {
            outdated_blocks.push(format!("{name}:{}: the block differs from {file}", block.line));
        }
    }
    Ok(outdated_blocks)
}

/// Returns the blocks that a reader writes to a file whose name only the comment above them has: a
/// rendered page does not show it.
fn unnamed_files(name: &str, text: &str, blocks: &[Block]) -> Vec<String> {
    let shown: Vec<&str> = text.lines().filter(|line| !line.starts_with("<!--")).collect();
    let shown = shown.join("\n");
    let files = blocks.iter().filter_map(|block| match &block.role {
        Role::File(path) => Some((block.line, path.strip_prefix("../").unwrap_or(path))),
        _ => None,
    });
    files
        .filter(|(_, path)| !shown.contains(&format!("`{path}`")))
        .map(|(line, path)| format!("{name}:{line}: no sentence names the file `{path}`"))
        .collect()
}

/// Returns the blocks whose commands nothing runs, and that do not say why.
fn unrun_commands(name: &str, blocks: &[Block]) -> Vec<String> {
    let silent = |block: &&Block| block.role == Role::Plain && block.has_unrun_commands();
    blocks
        .iter()
        .filter(silent)
        .map(|block| {
            format!(
                "{name}:{}: nothing runs these commands; write them as `console`, or `<!-- not run: REASON -->` above them",
                block.line
            )
        })
        .collect()
}

/// Returns the commands whose output differs from the document.
fn wrong_outputs(
    place: &Place,
    profile: Profile,
    name: &str,
    blocks: &[Block],
) -> anyhow::Result<Vec<String>> {
    let steps = steps(profile, name, blocks);
    if steps.is_empty() {
        return Ok(Vec::new());
    }
    let trial = Trial::prepare(place, profile)?;
    for block in blocks {
        if let Role::File(path) = &block.role {
            trial.write(path, &block.text())?;
        }
    }
    let outcomes = trial.run(&steps)?;
    Ok(steps
        .iter()
        .zip(outcomes)
        .filter_map(|(step, outcome)| judge(name, step, outcome))
        .collect())
}

/// Returns the commands that can run on this machine.
fn steps(profile: Profile, name: &str, blocks: &[Block]) -> Vec<Step> {
    let reason = |block: &Block| match &block.role {
        Role::Needs(names) => needs::missing(names, profile),
        Role::Plain | Role::SameAs(_) | Role::File(_) | Role::NotRun(_) => None,
    };
    let runs = |block: &&Block| match reason(block) {
        Some(reason) => {
            println!("{name}:{}\n    not run: {reason}", block.line);
            false
        }
        None => true,
    };
    blocks.iter().filter(runs).flat_map(Block::steps).collect()
}

fn judge(name: &str, step: &Step, outcome: Outcome) -> Option<String> {
    let place = format!("{name}:{}: $ {}", step.line, step.command);
    match outcome {
        Outcome::LeftOut(reason) => println!("{place}\n    not run: {reason}"),
        Outcome::Printed(actual) if compare::matches(&step.expected, &actual) => {
            println!("{place}");
        }
        Outcome::Printed(actual) => {
            return Some(format!(
                "{place}\n  the document shows\n{}\n  it prints\n{actual}",
                step.expected
            ));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot prepare its files has failed")]
    use super::*;

    fn place() -> (tempfile::TempDir, Place) {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("code.rs"), "//! Code.\nfn main() {}\n").unwrap();
        let place = Place { root: root.path().to_owned(), target: root.path().join("target") };
        (root, place)
    }

    #[test]
    fn dead_link_is_found() {
        let (_keep, place) = place();
        let text = "[there](code.rs#main), [not there](gone.rs)";
        assert_eq!(broken_links(&place, "A.md", text), ["A.md: `gone.rs` does not exist"]);
    }

    #[test]
    fn outdated_block_is_found() {
        let (_keep, place) = place();
        let block = |code: &str| {
            parse::blocks(&format!("<!-- same as code.rs -->\n```rust\n{code}\n```\n"))
        };
        assert!(outdated_blocks(&place, "A.md", &block("fn main() {}")).unwrap().is_empty());
        assert_eq!(outdated_blocks(&place, "A.md", &block("fn main() { }")).unwrap().len(), 1);
    }

    #[test]
    fn file_that_only_a_comment_names_is_found() {
        let found = |sentence: &str| {
            let text = format!("{sentence}\n\n<!-- file ../x/y.rs -->\n```rust\n```\n");
            unnamed_files("A.md", &text, &parse::blocks(&text))
        };
        assert_eq!(found("Write this."), ["A.md:5: no sentence names the file `x/y.rs`"]);
        assert!(found("This is `x/y.rs`:").is_empty());
    }

    #[test]
    fn commands_that_need_what_is_missing_are_left_out() {
        let text = |needs: &str| format!("<!-- needs {needs} -->\n```console\n$ true\n```\n");
        let commands =
            |needs: &str| steps(Profile::Debug, "A.md", &parse::blocks(&text(needs))).len();
        assert_eq!((commands("cargo /"), commands("cargo /no/such/file")), (1, 0));
        assert_eq!(commands("no-such-program"), 0);
    }

    #[test]
    fn command_of_the_book_that_nothing_runs_is_found() {
        let found = |comment: &str, language: &str, text: &str| {
            let block = format!("{comment}\n```{language}\n{text}\n```\n");
            unrun_commands("A.md", &parse::blocks(&block)).len()
        };
        assert_eq!(found("", "sh", "true"), 1);
        assert_eq!(found("", "text", "$ true"), 1);
        assert_eq!(found("<!-- not run: it is slow -->", "sh", "true"), 0);
        for (language, text) in [("console", "$ true"), ("text", "GET /"), ("toml", "a = 1")] {
            assert_eq!(found("", language, text), 0, "{language}");
        }
    }

    #[test]
    fn changed_command_output_is_found() {
        let step = Step { line: 3, command: "true".to_owned(), expected: "a\n".to_owned() };
        assert!(
            judge("A.md", &step, Outcome::Printed("b".to_owned()))
                .is_some_and(|wrong| wrong.contains("A.md:3"))
        );
        assert_eq!(judge("A.md", &step, Outcome::Printed("a".to_owned())), None);
    }
}
