//! The most memory that a process held at one time, by the kernel's own high-water mark.

use std::fs;
use std::path::PathBuf;

/// What the host may hold for a call beside the memory that the call itself may have, in bytes.
pub const HOST_ROOM: usize = 32 << 20;

/// The growth of a process from one moment on.
#[derive(Debug)]
pub struct Peak {
    status: PathBuf,
    before: usize,
}

impl Peak {
    /// Of this process, from now on.
    #[must_use]
    pub fn of_this() -> Self {
        Self::of("self")
    }

    /// Of another process, from now on.
    #[must_use]
    pub fn of_process(id: u32) -> Self {
        Self::of(&id.to_string())
    }

    /// The most memory that a process has held since it began, in bytes. Zero for a process that has ended.
    #[must_use]
    pub fn so_far(id: u32) -> usize {
        bytes(&PathBuf::from(format!("/proc/{id}/status")), "VmHWM:")
    }

    fn of(process: &str) -> Self {
        let status = PathBuf::from(format!("/proc/{process}/status"));
        // Sets the mark to what the process holds. Without this, an earlier peak would hide a lower one.
        let _ = fs::write(format!("/proc/{process}/clear_refs"), "5");
        let before = bytes(&status, "VmHWM:");
        Self { status, before }
    }

    /// What the process held at most beyond what it held at the beginning, in bytes. Zero for a process that has ended.
    #[must_use]
    pub fn growth(&self) -> usize {
        bytes(&self.status, "VmHWM:").saturating_sub(self.before)
    }

    /// What the process holds now beyond what it held at the beginning, in bytes.
    #[must_use]
    pub fn left(&self) -> usize {
        bytes(&self.status, "VmRSS:").saturating_sub(self.before)
    }

    /// What is wrong with its growth, where calls may have so much memory together.
    #[must_use]
    pub fn beyond(&self, memory: usize) -> Option<String> {
        let (growth, allowed) = (self.growth(), memory.saturating_add(HOST_ROOM));
        (growth > allowed)
            .then(|| format!("the process grew by {} MiB, and {} MiB were allowed", growth >> 20, allowed >> 20))
    }
}

/// One line of the status, in bytes.
pub(super) fn bytes(status: &PathBuf, name: &str) -> usize {
    let text = fs::read_to_string(status).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.split_whitespace().next().and_then(|kib| kib.parse::<usize>().ok()).unwrap_or(0) << 10
}
