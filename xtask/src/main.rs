//! The tasks of the repository, run as `cargo xtask TASK`; `USAGE` lists them.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for developers, which talks to whoever started it"
)]

mod clients;
mod conformance;
mod documents;
mod fuzz;
#[allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "build scripts, whose words nobody reads here"
)]
#[path = "../../plugins/build/guests.rs"]
mod guests;
mod install;
mod instructions;
mod interpreters;
mod mutants;
mod npm;
mod packages;
mod picture;
mod pip;
mod place;
mod providers;
mod reach;
mod rivals;
mod served;
mod soak;
mod wasi;

use place::Place;
use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask readme [--debug]
                       run the commands of the documents and compare what they print, with the release build or with what the tests have built
cargo xtask picture    draw the picture of the README from a run of the demo by the release build
cargo xtask package    package the published crates and build each from its package
cargo xtask providers [--debug]
                       hold replies, definitions and messages against the types of the providers' own libraries (needs python3 and pip), with the
                       release build or with what the tests have built
cargo xtask conformance [--debug] [SCENARIO…]
                       run the conformance suite of the Model Context Protocol against `palisade serve`, whole or those scenarios (needs node and npm), with
                       the release build or with what the tests have built
cargo xtask clients [--debug]
                       run real clients against `palisade serve`: the official ones for Python, TypeScript and Rust, and the MCP Inspector (needs python3 and pip,
                       node and npm), with the release build or with what the tests have built
cargo xtask rivals [--debug]
                       measure calls per second beside the official Python SDK's server and ACT (needs python3 and pip)
cargo xtask install [--root DIR]
                       install the program, as `cargo install` does, and compile the plugins that come with it
cargo xtask instructions [--keep]
                       count the instructions of a call, and hold them against those that are kept, or keep them (needs valgrind)
cargo xtask interpreters
                       build the benchmark's guests in Python and in JavaScript, and load them (needs python3 and pip, node and npm)
cargo xtask soak [--minutes N] [RUN…]
                       make the long runs, all or those that are named, within N minutes or at full length (takes hours), and look at their bounds
cargo xtask fuzz [BORDER [SECONDS]]
                       build the fuzz targets, or fuzz one border for ten minutes (needs a C++ compiler)
cargo xtask mutants [--again] [--file FILE] [AREA…]
                       put small faults into the code that matters most, all areas of it, those that are named, or one file, and see which of them the tests see
                       (needs cargo-mutants); `--again` takes what was seen the last time for seen
cargo xtask wasi DIR   run wasmtime's own WASI test programs, built from a checkout in DIR, under our sandbox, and compare with the lists
cargo xtask prebuild   put the built plugins into plugins/prebuilt, as publishing needs them";

fn main() -> ExitCode {
    let task = std::env::args().nth(1).unwrap_or_default();
    match fuzz::as_compiler().unwrap_or_else(|| run(&task)) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask {task}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn tried() -> documents::Tried {
    match std::env::args().nth(2).as_deref() {
        Some("--debug") => documents::Tried::Debug,
        _ => documents::Tried::AsWritten,
    }
}

fn run(task: &str) -> anyhow::Result<ExitCode> {
    let place = Place::find()?;
    match task {
        "readme" => documents::check(&place, tried())?,
        "picture" => picture::draw(&place)?,
        "package" => packages::package(&place)?,
        "providers" => providers::check(&place, tried())?,
        "conformance" => conformance::run(&place, tried())?,
        "clients" => clients::run(&place, tried())?,
        "rivals" => rivals::run(&place, tried())?,
        "install" => install::run(&place)?,
        "instructions" => instructions::run(&place)?,
        "interpreters" => interpreters::run(&place)?,
        "fuzz" => fuzz::run(&place)?,
        "mutants" => mutants::run(&place)?,
        "soak" => soak::run(&place)?,
        "wasi" => wasi::run(&place)?,
        "prebuild" => packages::prebuild(&place)?,
        _ => {
            eprintln!("{USAGE}");
            return Ok(ExitCode::from(2));
        }
    }
    Ok(ExitCode::SUCCESS)
}
