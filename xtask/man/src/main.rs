//! Writes the manual pages of the program, one for each subcommand, into the given directory.
//!
//! A program of its own: `xtask` would need the engine for it, and `palisade` two more crates.
#![allow(clippy::print_stderr, reason = "a command-line tool for developers")]

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(directory), None) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: xtask-man DIRECTORY");
        return ExitCode::from(2);
    };
    match clap_mangen::generate_to(palisade_cli::command(), &directory) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask-man: writing to {}: {error}", directory.display());
            ExitCode::FAILURE
        }
    }
}
