//! Renders the configuration entry for palisade in the format of each MCP client.

mod entry;
mod file;
mod notes;
mod yaml;

use super::{Launch, Name, Program, command};
use crate::cli::args::Client;
use crate::cli::token::TOKEN;
use entry::Entry;

/// A configuration entry for a client, with instructions.
pub(super) struct Snippet {
    /// The text for the configuration file, including the final newline.
    pub(super) text: String,
    /// The configuration file.
    pub(super) place: &'static str,
    /// A shell command with which the client adds the same entry itself.
    pub(super) one_step: Option<String>,
    /// Further remarks, one per line.
    pub(super) notes: Vec<String>,
}

/// The error if a client supports no such entry.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoSnippet {
    #[error(
        "the client takes `{variable}` in `{word}` for a variable and would put something else in its place: use a path without it"
    )]
    Variable { variable: &'static str, word: String },
    #[error("the JSON cannot be written: {0}")]
    Json(#[from] serde_json::Error),
    #[error("the TOML cannot be written: {0}")]
    Toml(#[from] toml::ser::Error),
}

/// Returns the configuration entry for a client.
pub(super) fn of(client: Client, name: &Name, launch: &Launch) -> Result<Snippet, NoSnippet> {
    let entry = match launch {
        Launch::Program(program) => {
            refuse_variables(client, program)?;
            file::started(client, name, program)
        }
        Launch::Http { address, .. } => file::reached(client, name, address),
    };
    Ok(Snippet {
        text: file::text(client, name, &entry)?,
        place: file::place(client),
        one_step: one_step(client, name, launch, &entry)?,
        notes: notes::of(client, launch),
    })
}

/// Refuses a path that a client would change: these two replace variables in every value of their
/// file. The form `${…}`, which most clients know, is refused for all of them.
fn refuse_variables(client: Client, program: &Program) -> Result<(), NoSnippet> {
    let begins_name = |rest: &str| rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let found = |word: &str| match client {
        Client::GeminiCli => word.split('$').skip(1).any(begins_name).then_some("$NAME"),
        Client::Opencode => ["{env:", "{file:"].into_iter().find(|mark| word.contains(mark)),
        _ => None,
    };
    let environment = program.environment.values().cloned();
    match program
        .words()
        .into_iter()
        .chain(environment)
        .find_map(|word| Some((found(&word)?, word)))
    {
        None => Ok(()),
        Some((variable, word)) => Err(NoSnippet::Variable { variable, word }),
    }
}

fn one_step(
    client: Client,
    name: &Name,
    launch: &Launch,
    entry: &Entry,
) -> Result<Option<String>, NoSnippet> {
    let name = name.as_str();
    Ok(match (client, launch) {
        (Client::ClaudeCode, Launch::Program(program)) => {
            // The environment comes first: `--env` takes every pair that follows it.
            let environment = pairs(program);
            let add = ["--transport", "stdio", "--scope", "user", name, "--"].map(str::to_owned);
            Some(command(
                &["claude", "mcp", "add"],
                &[environment, add.to_vec(), program.words()].concat(),
            ))
        }
        // In project scope, because variable expansion is documented for `.mcp.json` only.
        (Client::ClaudeCode, Launch::Http { address, .. }) => {
            let add = [
                "claude",
                "mcp",
                "add",
                "--transport",
                "http",
                "--scope",
                "project",
                name,
                address.as_str(),
            ];
            Some(command(
                &add,
                &["--header".to_owned(), format!("Authorization: Bearer ${{{TOKEN}}}")],
            ))
        }
        (Client::VsCode, _) => {
            Some(command(&["code", "--add-mcp"], &[serde_json::to_string(&entry.named(name))?]))
        }
        (Client::Codex, Launch::Program(program)) => {
            let add = [pairs(program), vec!["--".to_owned()], program.words()].concat();
            Some(command(&["codex", "mcp", "add", name], &add))
        }
        (Client::Codex, Launch::Http { address, .. }) => {
            let add = [
                "codex",
                "mcp",
                "add",
                name,
                "--url",
                address.as_str(),
                "--bearer-token-env-var",
                TOKEN,
            ];
            Some(command(&add, &[]))
        }
        // The other clients have no such command, or one whose options are not documented in full.
        _ => None,
    })
}

/// Returns the environment as the options that both commands take.
fn pairs(program: &Program) -> Vec<String> {
    program
        .environment
        .iter()
        .flat_map(|(name, value)| ["--env".to_owned(), format!("{name}={value}")])
        .collect()
}

#[cfg(test)]
mod tests;
