//! The `palisade` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    palisade::cli::main()
}
