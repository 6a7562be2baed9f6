//! `in-terminal TERMINAL PROGRAM ARGUMENT…`: the program as leader of a session whose terminal this is, as a shell would start it.
//!
//! Only the leader of a session can take a terminal, and a test cannot become one for its child without unsafe code.

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
    // Whoever started this holds the terminal open, so that it stays the session's when this handle closes.
    let terminal = OpenOptions::new().read(true).write(true).open(terminal)?;
    rustix::process::ioctl_tiocsctty(&terminal)?;
    Err(Command::new(program).args(arguments).exec())
}
