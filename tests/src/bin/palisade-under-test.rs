//! `palisade` without the controlling terminal of the test run, so that confirmations are refused
//! unless a test provides a terminal.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: palisade_cli::Allocator = palisade_cli::Allocator;

fn main() -> ExitCode {
    if std::env::var_os("PALISADE_TEST_KEEP_TERMINAL").is_none() {
        // `setsid` fails only in a process group leader. Best effort: the tests start this program
        // as a child, which leads no group.
        let _ = rustix::process::setsid();
    }
    palisade_cli::main()
}
