//! `palisade shell-helper` (hidden): supervises the processes of one `shell` command for the parent
//! process.

use super::exit::{Exit, Failure};

#[cfg(target_os = "linux")]
pub(super) fn run() -> Result<Exit, Failure> {
    let held = palisade_shell::hold_command();
    held.map(|()| Exit::Ok).map_err(|error| Failure::usage(error.to_string()))
}

#[cfg(not(target_os = "linux"))]
pub(super) fn run() -> Result<Exit, Failure> {
    Err(Failure::usage("commands are held on Linux only".to_owned()))
}
