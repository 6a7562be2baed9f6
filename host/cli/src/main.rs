//! The `palisade` program.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: palisade_cli::Allocator = palisade_cli::Allocator;

fn main() -> ExitCode {
    palisade_cli::main()
}
