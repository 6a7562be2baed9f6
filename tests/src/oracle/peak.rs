//! The peak resident memory of a process, by the kernel's high-water mark.

use std::fs;
use std::path::PathBuf;

/// The memory that the host may use for a call in addition to the call's memory limit, in bytes.
pub const HOST_ROOM: usize = 32 << 20;

/// The growth of a process since a moment.
#[derive(Debug)]
pub struct Peak {
    status: PathBuf,
    before: usize,
}

impl Peak {
    /// Starts a measurement of this process.
    #[must_use]
    pub fn of_this() -> Self {
        Self::of("self")
    }

    /// Starts a measurement of another process.
    #[must_use]
    pub fn of_process(id: u32) -> Self {
        Self::of(&id.to_string())
    }

    /// Returns the peak resident memory of a process since its start or the last reset, in bytes.
    /// Zero for a process that has ended.
    #[must_use]
    pub fn so_far(id: u32) -> usize {
        bytes(&PathBuf::from(format!("/proc/{id}/status")), "VmHWM:")
    }

    fn of(process: &str) -> Self {
        let status = PathBuf::from(format!("/proc/{process}/status"));
        // Reset the high-water mark to the current size: otherwise an earlier peak would hide a
        // later, lower one. See `clear_refs` in proc(5).
        let _ = fs::write(format!("/proc/{process}/clear_refs"), "5");
        let before = bytes(&status, "VmHWM:");
        Self { status, before }
    }

    /// Returns the peak growth since the start of the measurement, in bytes. Zero for a process
    /// that has ended.
    #[must_use]
    pub fn growth(&self) -> usize {
        bytes(&self.status, "VmHWM:").saturating_sub(self.before)
    }

    /// Returns the current growth since the start of the measurement, in bytes.
    #[must_use]
    pub fn left(&self) -> usize {
        bytes(&self.status, "VmRSS:").saturating_sub(self.before)
    }

    /// Returns a complaint if the process grew by more than `memory` and [`HOST_ROOM`].
    #[must_use]
    pub fn beyond(&self, memory: usize) -> Option<String> {
        let (growth, allowed) = (self.growth(), memory.saturating_add(HOST_ROOM));
        (growth > allowed).then(|| {
            format!(
                "the process grew by {} MiB, and {} MiB were allowed",
                growth >> 20,
                allowed >> 20
            )
        })
    }
}

/// Returns the value of a line of `/proc/PID/status`, in bytes.
pub(super) fn bytes(status: &PathBuf, name: &str) -> usize {
    let text = fs::read_to_string(status).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.split_whitespace().next().and_then(|kib| kib.parse::<usize>().ok()).unwrap_or(0) << 10
}
