//! The tool `search_tools`, and the same search for programs.

use palisade_declarations::{Declared, Tool, declare};
use palisade_guest::tool;
use palisade_guest::tools::{Listed, list};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// The most bytes of declarations of one answer.
const BYTES: usize = 24 << 10;

/// The tools of this plugin, which are of no use in a program.
const OWN: [&str; 2] = ["run_js", "search_tools"];

/// Words to search for.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// Words of the names or descriptions of tools. Without words all tools are found.
    #[serde(default)]
    words: String,
}

/// Finds tools by words, and returns their declarations in TypeScript: what a program of `run_js`
/// can call as `tools.NAME({…})`.
#[tool(side_effects = "none", title = "Search tools")]
pub(crate) fn search_tools(args: Args) -> String {
    found(&args.words)
}

/// Returns the declarations of the tools that fit best, the best first.
pub(crate) fn found(words: &str) -> String {
    let tools = list();
    let others = tools.iter().filter(|tool| !OWN.contains(&tool.name.as_str()));
    let mut ranked: Vec<(usize, &Listed)> =
        others.map(|tool| (rank(tool, words), tool)).filter(|(rank, _)| *rank > 0).collect();
    ranked.sort_by(|(one, a), (other, b)| other.cmp(one).then_with(|| a.name.cmp(&b.name)));
    let schemas: Vec<(&Listed, Value, Option<Value>)> = ranked
        .into_iter()
        .map(|(_, tool)| {
            let parsed = |text: &String| serde_json::from_str(text).unwrap_or_default();
            (tool, parsed(&tool.input_schema), tool.output_schema.as_ref().map(parsed))
        })
        .collect();
    let tools = schemas.iter().map(|(tool, input, output)| Tool {
        name: &tool.name,
        description: &tool.description,
        input,
        output: output.as_ref(),
    });
    let Declared { text, left_out } = declare(tools, BYTES);
    match (text.is_empty(), left_out) {
        (true, 0) => {
            "no tool has these words; search with fewer words, or with none for all tools\n"
                .to_owned()
        }
        (_, 0) => text,
        (_, left_out) => format!("{text}// {left_out} more: search with more words\n"),
    }
}

/// Returns how well a tool fits: words in its name count more than words in its description.
/// Without words every tool fits.
fn rank(tool: &Listed, words: &str) -> usize {
    let (name, description) = (tool.name.to_lowercase(), tool.description.to_lowercase());
    let words = words.to_lowercase();
    let mut words = words.split_whitespace().take(16).peekable();
    if words.peek().is_none() {
        return 1;
    }
    words
        .map(|word| 3 * usize::from(name.contains(word)) + usize::from(description.contains(word)))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use palisade_guest::SideEffects;

    fn listed(name: &str, description: &str) -> Listed {
        Listed {
            name: name.to_owned(),
            title: None,
            description: description.to_owned(),
            input_schema: "{}".to_owned(),
            output_schema: None,
            side_effects: SideEffects::None,
        }
    }

    #[test]
    fn words_in_the_name_count_more() {
        let (named, described) =
            (listed("read_file", "Opens."), listed("open", "Can Read a file."));
        assert!(rank(&named, "read") > rank(&described, "READ"));
        assert_eq!(rank(&named, "network"), 0);
        assert_eq!((rank(&named, " "), rank(&described, "")), (1, 1));
    }

    #[test]
    fn native_search_finds_nothing() {
        assert!(found("read").starts_with("no tool has these words"));
    }
}
