//! `palisade completions`: the completion script for a shell.

use super::args::{Args, Completions};
use super::exit::{Exit, Failure};
use super::output;
use clap::CommandFactory as _;

pub(super) fn run(args: &Completions) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "palisade", &mut script);
    output::text(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Ok)
}
