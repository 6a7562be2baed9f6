//! Parses the checkable parts of a Markdown document: fenced blocks with their roles, and links.

/// A fenced block.
#[derive(Debug)]
pub(super) struct Block {
    /// The number of its first line, counted from 1.
    pub(super) line: usize,
    /// The info string of the opening fence, such as `console`.
    pub(super) language: String,
    /// The role given by the comment above it.
    pub(super) role: Role,
    lines: Vec<String>,
}

/// The role of a block, given by an HTML comment on the line above it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// No comment.
    Plain,
    /// `<!-- same as PATH -->`: the block is part of this file of the repository.
    SameAs(String),
    /// `<!-- file PATH -->`: the reader writes the block to this file.
    File(String),
    /// `<!-- needs NAME … -->`: the commands run only where all of these exist: programs, files
    /// with an absolute path, the registries `npm-registry` and `pypi`, and `release`, the release
    /// build.
    Needs(Vec<String>),
    /// `<!-- not run: REASON -->`: the commands are shown only.
    NotRun(String),
}

/// One command of a `console` block, with its output.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// The line of the command, counted from 1.
    pub(super) line: usize,
    /// The text after the prompt.
    pub(super) command: String,
    /// The lines up to the next prompt.
    pub(super) expected: String,
}

impl Block {
    pub(super) fn text(&self) -> String {
        self.lines.iter().map(|line| format!("{line}\n")).collect()
    }

    /// Returns the commands of a `console` block; other blocks have none.
    pub(super) fn steps(&self) -> Vec<Step> {
        let mut steps: Vec<Step> = Vec::new();
        let is_run = self.language == "console" && !matches!(self.role, Role::NotRun(_));
        for (index, line) in self.lines.iter().enumerate().filter(|_| is_run) {
            match (line.strip_prefix("$ "), steps.last_mut()) {
                (Some(command), _) => {
                    let (line, command) = (self.line + index, command.to_owned());
                    steps.push(Step { line, command, expected: String::new() });
                }
                (None, Some(step)) => step.expected.push_str(&format!("{line}\n")),
                (None, None) => {}
            }
        }
        steps
    }

    /// Returns true if the block has commands that are not those of a `console` block.
    pub(super) fn has_unrun_commands(&self) -> bool {
        match self.language.as_str() {
            "sh" | "bash" | "shell" => true,
            "console" => false,
            _ => self.lines.iter().any(|line| line.starts_with("$ ")),
        }
    }
}

/// Returns the fenced blocks of a document, in order.
pub(super) fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    let mut above = "";
    for (index, line) in text.lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(language)) => {
                let (line, language) = (index + 2, language.to_owned());
                open = Some(Block { line, language, role: role(above), lines: Vec::new() });
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(block), None) => block.lines.push(line.to_owned()),
            (None, None) => {}
        }
        above = line;
    }
    blocks
}

fn role(comment: &str) -> Role {
    let said = comment
        .trim()
        .strip_prefix("<!--")
        .and_then(|rest| rest.strip_suffix("-->"))
        .unwrap_or_default()
        .trim();
    if let Some(path) = said.strip_prefix("same as ") {
        Role::SameAs(path.to_owned())
    } else if let Some(path) = said.strip_prefix("file ") {
        Role::File(path.to_owned())
    } else if let Some(names) = said.strip_prefix("needs ") {
        Role::Needs(names.split_whitespace().map(str::to_owned).collect())
    } else if let Some(reason) = said.strip_prefix("not run: ") {
        Role::NotRun(reason.to_owned())
    } else {
        Role::Plain
    }
}

/// Returns the targets of relative links, without anchors.
pub(super) fn links(text: &str) -> Vec<&str> {
    let targets =
        text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
    let relative = targets.filter(|target| !target.contains("://") && !target.contains(' '));
    relative.filter_map(|target| target.split('#').next()).filter(|path| !path.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = "Text [here](a.md#b), [there](https://example.org) and [below](#c).\n\n\
        <!-- file ../x/y.rs -->\n```rust\nfn main() {}\n```\n\n```console\n$ one\na\n\nb\n$ two\n```\n";

    #[test]
    fn block_has_place_language_and_role() {
        let found: Vec<_> = blocks(DOCUMENT)
            .into_iter()
            .map(|b| (b.line, b.language.clone(), b.text(), b.role))
            .collect();
        let file = Role::File("../x/y.rs".to_owned());
        assert_eq!(found[0], (5, "rust".to_owned(), "fn main() {}\n".to_owned(), file));
        assert_eq!(found[1].3, Role::Plain);
    }

    #[test]
    fn block_names_what_its_commands_need() {
        let needs = |names: [&str; 2]| Role::Needs(names.map(str::to_owned).to_vec());
        assert_eq!(role("<!-- needs clang /usr/lib/x.a -->"), needs(["clang", "/usr/lib/x.a"]));
    }

    #[test]
    fn console_block_is_commands_with_output() {
        let steps: Vec<Step> = blocks(DOCUMENT).iter().flat_map(Block::steps).collect();
        let step = |line, command: &str, expected: &str| Step {
            line,
            command: command.into(),
            expected: expected.into(),
        };
        assert_eq!(steps, [step(9, "one", "a\n\nb\n"), step(13, "two", "")]);
    }

    #[test]
    fn only_links_into_the_repository_are_followed() {
        assert_eq!(links(DOCUMENT), ["a.md"]);
    }
}
