//! The program `palisade`.

use std::process::ExitCode;

fn main() -> ExitCode {
    palisade::cli::main()
}
