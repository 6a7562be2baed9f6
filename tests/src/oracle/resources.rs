//! The resources of a process: threads, file descriptors, memory and mappings.

use std::fs;
use std::time::{Duration, Instant};

/// The tolerated growth of threads and of file descriptors, since the test harness has its own.
const COUNTS: usize = 2;
/// The tolerated growth of memory, in bytes.
const MEMORY: usize = 4 << 20;

/// The resources of a process at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resources {
    /// The number of threads.
    pub threads: usize,
    /// The number of open file descriptors.
    pub descriptors: usize,
    /// The anonymous and shared resident memory, in bytes. Pages of files are excluded: the kernel
    /// loads code when it first runs, and can evict it.
    pub memory: usize,
    /// The number of memory mappings.
    pub maps: usize,
}

impl Resources {
    /// Returns the current resources of this process.
    ///
    /// # Panics
    ///
    /// If `/proc` cannot be read.
    #[must_use]
    pub fn now() -> Self {
        Self {
            threads: entries("/proc/self/task"),
            descriptors: entries("/proc/self/fd"),
            memory: memory(),
            maps: fs::read_to_string("/proc/self/maps")
                .expect("`/proc` can be read")
                .lines()
                .count(),
        }
    }

    /// Waits at most `within` for the process to return to this level, and returns the resources
    /// that have not.
    #[must_use]
    pub fn settled(self, within: Duration) -> Vec<String> {
        let deadline = Instant::now() + within;
        loop {
            let left = self.against(Self::now());
            if left.is_empty() || Instant::now() >= deadline {
                return left;
            }
            // Poll: the kernel does not report the end of threads or the release of memory.
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }

    /// Returns whether the process still holds more than at this moment, apart from this much
    /// memory. Threads, file descriptors and memory are released with a delay.
    #[must_use]
    pub fn have_grown(self, memory: usize) -> bool {
        let allowed = Self { memory: self.memory + memory, ..self };
        !allowed.settled(Duration::from_secs(1)).is_empty()
    }

    /// Returns the resources that have grown by more than the tolerance since this moment.
    #[must_use]
    pub fn against(self, later: Self) -> Vec<String> {
        let grown = |what: &str, was: usize, is: usize, may: usize| {
            (is > was + may).then(|| format!("{what}: {was} before, {is} after"))
        };
        [
            grown("threads", self.threads, later.threads, COUNTS),
            grown("descriptors", self.descriptors, later.descriptors, COUNTS),
            grown("bytes of memory", self.memory, later.memory, MEMORY),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

fn entries(directory: &str) -> usize {
    fs::read_dir(directory).expect("`/proc` can be read").count()
}

fn memory() -> usize {
    let status = fs::read_to_string("/proc/self/status").expect("`/proc` can be read");
    let of = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        line.split_whitespace().next().and_then(|kib| kib.parse::<usize>().ok()).unwrap_or(0)
    };
    (of("RssAnon:") + of("RssShmem:")) << 10
}
