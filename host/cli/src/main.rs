//! The `palisade` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    palisade_cli::main()
}
