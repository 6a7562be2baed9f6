//! The tasks of the repository, run as `cargo xtask TASK`; `USAGE` lists them.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool for developers")]

mod api;
mod clients;
mod conformance;
mod console;
mod dist;
mod documents;
mod fuzz;
#[allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "build scripts print to cargo, not to the user"
)]
#[path = "../../plugins/build/guests.rs"]
mod guests;
mod install;
mod instructions;
mod interpreters;
mod mcp_servers;
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
mod surface;
mod wasi;

use place::Place;
use std::process::ExitCode;

const USAGE: &str = "\
Tasks that run the program use its release build; with --debug they use the debug build that
`cargo build --workspace --bins` has left.

cargo xtask readme [--debug]
    Runs the commands of the documents and compares their output.
cargo xtask picture
    Draws the picture of the README from a run of the demo.
cargo xtask package
    Packages the published crates and builds each from its package.
cargo xtask dist [--debug] [--program] [--strict]
    Makes the files of a release below target/dist and tries each of them: archive, wheels, npm
    packages, SDKs, crates, bill of materials, checksums. With --program, only those that carry the
    program; with --strict, a file that cannot be made or tried here is an error. Python or npm that
    is missing is skipped otherwise.
cargo xtask providers [--debug]
    Checks replies, definitions and messages against the types of the providers' own libraries.
    Needs python3 and pip.
cargo xtask conformance [--debug] [SCENARIO…]
    Runs the MCP conformance suite, or the named scenarios, against `palisade serve`.
    Needs node and npm.
cargo xtask clients [--debug] [--sample | FRAMEWORK…]
    Runs the official MCP clients for Python, TypeScript and Rust, the MCP Inspector, nine agent
    frameworks and Claude Code against `palisade serve`. With --sample, only two of the frameworks,
    over HTTP only; with names, these only. Needs python3 and pip, node and npm.
cargo xtask mcp-servers [--debug]
    Offers the tools of real MCP servers, and calls them. Needs node and npm, python3 and pip.
cargo xtask console [--debug] [SCENARIO…]
    Drives the console in a browser. Needs node, npm and Chromium.
cargo xtask api [--debug] [--sample]
    Compares the HTTP API with its own description; with --sample in a minute. Needs python3 and
    pip.
cargo xtask rivals [--debug]
    Measures calls per second beside the official Python SDK's server and ACT.
    Needs python3 and pip.
cargo xtask install [--root DIR]
    Installs the program, as `cargo install` does, and compiles its shipped plugins.
cargo xtask instructions [--keep]
    Counts the instructions of a call and compares them with the stored counts; --keep stores them.
    Needs valgrind.
cargo xtask interpreters
    Builds the benchmark's guests in Python and JavaScript, and loads them.
    Needs python3 and pip, node and npm.
cargo xtask soak [--minutes N] [RUN…]
    Makes all long runs, or the named ones, at full length, which takes hours, or within N minutes.
cargo xtask fuzz [BORDER [SECONDS]]
    Builds the fuzz targets, or fuzzes one border for ten minutes. Needs a C++ compiler.
cargo xtask mutants [--again] [--file FILE] [AREA…]
    Inserts small faults into the critical code of all areas, of the named areas or of one file, and
    reports the faults that no test sees. With --again, faults that were seen in the last run count
    as seen. Needs cargo-mutants.
cargo xtask surface [--keep]
    Compares the public items of the libraries with docs/surface; --keep stores them.
cargo xtask wasi DIR
    Runs wasmtime's own WASI test programs, built from a checkout in DIR, in the sandbox.
cargo xtask prebuild
    Copies the built plugins to plugins/prebuilt for publishing.";

fn main() -> ExitCode {
    let task = std::env::args().nth(1).unwrap_or_default();
    let as_tool = fuzz::as_compiler().or_else(surface::as_rustdoc);
    match as_tool.unwrap_or_else(|| run(&task)) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask {task}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn profile() -> documents::Profile {
    match std::env::args().nth(2).as_deref() {
        Some("--debug") => documents::Profile::Debug,
        _ => documents::Profile::Release,
    }
}

fn surface_task() -> surface::Task {
    match std::env::args().nth(2).as_deref() {
        Some("--keep") => surface::Task::Keep,
        _ => surface::Task::Compare,
    }
}

fn run(task: &str) -> anyhow::Result<ExitCode> {
    let place = Place::find()?;
    match task {
        "readme" => documents::check(&place, profile())?,
        "picture" => picture::draw(&place)?,
        "package" => packages::package(&place)?,
        "dist" => dist::run(&place, dist::Options::from_arguments()?)?,
        "providers" => providers::check(&place, profile())?,
        "conformance" => conformance::run(&place, profile())?,
        "clients" => clients::run(&place, profile(), &clients::Selected::from_arguments())?,
        "api" => api::run(&place, profile(), api::Length::from_arguments())?,
        "mcp-servers" => mcp_servers::run(&place, profile())?,
        "console" => console::run(&place, profile())?,
        "rivals" => rivals::run(&place, profile())?,
        "install" => install::run(&place)?,
        "instructions" => instructions::run(&place)?,
        "interpreters" => interpreters::run(&place)?,
        "fuzz" => fuzz::run(&place)?,
        "mutants" => mutants::run(&place)?,
        "soak" => soak::run(&place)?,
        "surface" => surface::run(&place, surface_task())?,
        "wasi" => wasi::run(&place)?,
        "prebuild" => packages::prebuild(&place)?,
        _ => {
            eprintln!("{USAGE}");
            return Ok(ExitCode::from(2));
        }
    }
    Ok(ExitCode::SUCCESS)
}
