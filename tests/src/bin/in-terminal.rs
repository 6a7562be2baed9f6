//! `in-terminal TERMINAL PROGRAM ARGUMENT…`: runs the program as leader of a session with this
//! controlling terminal, as a shell does.
//!
//! Only a session leader can acquire a controlling terminal, and a test cannot make its child a
//! session leader without unsafe code.

use std::env;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

fn main() -> io::Result<()> {
    let mut arguments = env::args_os().skip(1);
    let (Some(terminal), Some(program)) = (arguments.next(), arguments.next()) else {
        return Err(io::Error::other("give a terminal and a program"));
    };
    rustix::process::setsid()?;
    // The test keeps the terminal open, so that it stays the session's after this handle is closed.
    let terminal = OpenOptions::new().read(true).write(true).open(terminal)?;
    rustix::process::ioctl_tiocsctty(&terminal)?;
    Err(Command::new(program).args(arguments).exec())
}
