//! Reads the input of a subcommand: literal text, a file or standard input.

use super::exit::{Exit, Failure};
use super::output;
use std::fs::File;
use std::io::{self, IsTerminal as _, Read};

/// Reads an argument that is literal text, `@FILE`, or `-` for standard input.
pub(super) fn text_or_file(argument: &str, limit: u64) -> Result<String, Failure> {
    match argument.strip_prefix('@') {
        Some(path) => file(path, limit),
        None if argument == "-" => standard(limit),
        None => Ok(argument.to_owned()),
    }
}

/// Reads an argument that is a path, or `-` for standard input.
pub(super) fn file_or_standard(argument: &str, limit: u64) -> Result<String, Failure> {
    if argument == "-" { standard(limit) } else { file(argument, limit) }
}

fn standard(limit: u64) -> Result<String, Failure> {
    if io::stdin().is_terminal() {
        output::note(
            "reading the input from the terminal; end it with Ctrl-D on a line of its own",
        );
    }
    read(io::stdin().lock(), limit).map_err(|error| invalid("standard input", &error))
}

fn file(path: &str, limit: u64) -> Result<String, Failure> {
    File::open(path)
        .and_then(|file| read(file, limit))
        .map_err(|error| invalid(&format!("`{path}`"), &error))
}

fn invalid(what: &str, error: &io::Error) -> Failure {
    Failure::new(Exit::Usage, format!("cannot read the input from {what}: {error}"))
}

/// Reads up to one byte beyond the limit, so that the consumer can detect and report input that is
/// too long. Such input may end within a character and is decoded lossily.
fn read(source: impl Read, limit: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    source.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Ok(String::from_utf8_lossy(&bytes).into_owned());
    }
    String::from_utf8(bytes)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
}
