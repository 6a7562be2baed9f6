//! Parses sizes from a file, a variable or a flag.

use palisade::sandbox::{CompileLimits, limits};
use palisade_shell::ShellLimits;
use std::ops::RangeInclusive;

/// Parses the memory limit of a call.
pub(super) fn memory(text: &str) -> Result<u64, String> {
    plugin_memory("limits.memory", text)
}

/// Parses the memory limit of a call of one plugin.
pub(super) fn plugin_memory(key: &str, text: &str) -> Result<u64, String> {
    size(key, text, (1 << 20)..=limits::MAX_MEMORY, "1MiB to 512MiB are accepted")
}

/// Parses the memory limit of all calls together.
pub(super) fn total_memory(text: &str) -> Result<u64, String> {
    let range = limits::MAX_MEMORY..=limits::MAX_TOTAL_MEMORY;
    size("limits.total_memory", text, range, "512MiB to 16TiB are accepted")
}

/// Parses the address space limit of a compilation.
pub(super) fn compile_memory(text: &str) -> Result<u64, String> {
    let range = CompileLimits::MIN_MEMORY..=CompileLimits::MAX_MEMORY;
    size("limits.compile_memory", text, range, "256MiB to 64GiB are accepted")
}

/// Parses the memory limit of a `shell` command.
pub(super) fn shell_memory(text: &str) -> Result<u64, String> {
    let range = ShellLimits::MIN_MEMORY..=ShellLimits::MAX_MEMORY;
    size("shell.memory", text, range, "16MiB to 16TiB are accepted")
}

/// Parses the size of the journal.
pub(super) fn journal_size(text: &str) -> Result<u64, String> {
    size("journal.max_size", text, (4 << 20)..=(1 << 40), "4MiB to 1TiB are accepted")
}

/// Checks the maximum number of processes of a `shell` command.
pub(super) fn processes(count: u64) -> Result<u64, String> {
    let range = ShellLimits::MIN_PROCESSES..=ShellLimits::MAX_PROCESSES;
    if range.contains(&count) {
        Ok(count)
    } else {
        Err(format!("`shell.processes` is {count}; 8 to 32768 are accepted"))
    }
}

fn size(key: &str, text: &str, range: RangeInclusive<u64>, accepted: &str) -> Result<u64, String> {
    let size = text
        .parse::<bytesize::ByteSize>()
        .map_err(|_| format!("`{key}` is not a size: `{text}`; write it like 128MiB"))?
        .as_u64();
    if range.contains(&size) { Ok(size) } else { Err(format!("`{key}` is {text}; {accepted}")) }
}
