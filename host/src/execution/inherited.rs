//! What a program started from here would inherit besides its standard streams, and how it does not.
//!
//! Rust opens no descriptor that a child inherits. But the program that started the host may have left some open in it. Only the child can close them without
//! touching the host's own, so a shell runs first that does.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

/// The descriptors above standard error that a child would inherit.
#[cfg(target_os = "linux")]
pub(crate) fn inherited() -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else { return unknown() };
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter(|&descriptor| descriptor > 2 && is_inherited(descriptor)).collect()
}

/// Whether the flags that the kernel shows for a descriptor lack the one that closes it in a child. One that is gone is not inherited.
#[cfg(target_os = "linux")]
fn is_inherited(descriptor: u32) -> bool {
    let shown = std::fs::read_to_string(format!("/proc/self/fdinfo/{descriptor}")).unwrap_or_default();
    let flags = shown.lines().find_map(|line| u32::from_str_radix(line.strip_prefix("flags:")?.trim(), 8).ok());
    flags.is_some_and(|flags| flags & rustix::fs::OFlags::CLOEXEC.bits() == 0)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn inherited() -> Vec<u32> {
    unknown()
}

/// Where nobody can say, those are closed that any shell can close.
fn unknown() -> Vec<u32> {
    (3..=9).collect()
}

/// The redirections of a shell that close descriptors.
pub(crate) fn closes(open: &[u32]) -> String {
    open.iter().map(|descriptor| format!(" {descriptor}>&-")).collect()
}

/// A program with its arguments, and before it a shell that closes what it would inherit, where there is anything and a shell that can.
pub(crate) fn without_inherited(program: &Path, arguments: impl IntoIterator<Item = OsString>) -> Command {
    let open = if cfg!(unix) { inherited() } else { Vec::new() };
    // POSIX gives descriptors one digit; only bash goes on.
    let shell = ["/bin/bash", "/bin/sh"].into_iter().find(|shell| Path::new(shell).exists());
    let mut command = match shell {
        Some(shell) if !open.is_empty() => {
            let least =
                if shell.ends_with("bash") { open } else { open.into_iter().filter(|number| *number < 10).collect() };
            let mut command = Command::new(shell);
            command.arg("-c").arg(format!("exec{}; exec \"$0\" \"$@\"", closes(&least))).arg(program);
            command
        }
        _ => Command::new(program),
    };
    command.args(arguments);
    command
}
