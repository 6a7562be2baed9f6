//! `palisade` itself, without the terminal of whoever runs the tests: nobody is asked anything unless a test brings its own terminal.

use std::process::ExitCode;

fn main() -> ExitCode {
    #[cfg(unix)]
    if std::env::var_os("PALISADE_TEST_KEEP_TERMINAL").is_none() {
        // Refused only where the process leads a group already, and then it has no terminal to lose either.
        let _ = rustix::process::setsid();
    }
    palisade::cli::main()
}
