//! Keeps a child process from inheriting file descriptors beyond the standard streams.
//!
//! Rust opens every descriptor with close-on-exec, but the host may have inherited others from its
//! own parent. Only the child can close these without closing the host's, so a shell closes them
//! and then runs the program.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

/// Returns the descriptors above standard error that a child would inherit.
#[cfg(target_os = "linux")]
pub fn inherited() -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else { return unknown() };
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter(|&descriptor| descriptor > 2 && is_inherited(descriptor)).collect()
}

/// Returns true if the kernel shows no close-on-exec flag for a descriptor. A descriptor that is
/// already closed is not inherited.
#[cfg(target_os = "linux")]
fn is_inherited(descriptor: u32) -> bool {
    let shown =
        std::fs::read_to_string(format!("/proc/self/fdinfo/{descriptor}")).unwrap_or_default();
    let flags = shown
        .lines()
        .find_map(|line| u32::from_str_radix(line.strip_prefix("flags:")?.trim(), 8).ok());
    flags.is_some_and(|flags| flags & rustix::fs::OFlags::CLOEXEC.bits() == 0)
}

#[cfg(not(target_os = "linux"))]
pub fn inherited() -> Vec<u32> {
    unknown()
}

/// Returns the descriptors that any shell can close, for systems that cannot list the open ones.
fn unknown() -> Vec<u32> {
    (3..=9).collect()
}

/// Returns the shell redirections that close these descriptors.
pub fn closes(open: &[u32]) -> String {
    open.iter().map(|descriptor| format!(" {descriptor}>&-")).collect()
}

/// Builds the command of a program, run through a shell that closes inherited descriptors if there
/// are any and a shell exists.
pub fn without_inherited(program: &Path, arguments: impl IntoIterator<Item = OsString>) -> Command {
    let open = inherited();
    // POSIX shells support one digit in a redirection; only bash supports more.
    let shell = ["/bin/bash", "/bin/sh"].into_iter().find(|shell| Path::new(shell).exists());
    let mut command = match shell {
        Some(shell) if !open.is_empty() => {
            let least = if shell.ends_with("bash") {
                open
            } else {
                open.into_iter().filter(|number| *number < 10).collect()
            };
            let mut command = Command::new(shell);
            command
                .arg("-c")
                .arg(format!("exec{}; exec \"$0\" \"$@\"", closes(&least)))
                .arg(program);
            command
        }
        _ => Command::new(program),
    };
    command.args(arguments);
    command
}
