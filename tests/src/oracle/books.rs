//! What a process holds: threads, descriptors, memory, mappings.

use std::fs;
use std::time::{Duration, Instant};

/// How many threads and descriptors may be there that were not, since the harness has its own.
const COUNTS: usize = 2;
/// How much memory may be held that was not, in bytes.
const MEMORY: usize = 4 << 20;

/// What a process holds at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Books {
    /// Threads.
    pub threads: usize,
    /// Open descriptors.
    pub descriptors: usize,
    /// Memory of its own, in bytes. Pages of files are left out: code is read in when it first runs, and nobody holds it.
    pub memory: usize,
    /// Mappings.
    pub maps: usize,
}

impl Books {
    /// What this process holds now.
    ///
    /// # Panics
    ///
    /// Where the kernel does not tell.
    #[must_use]
    pub fn now() -> Self {
        Self {
            threads: entries("/proc/self/task"),
            descriptors: entries("/proc/self/fd"),
            memory: memory(),
            maps: fs::read_to_string("/proc/self/maps").expect("the kernel tells").lines().count(),
        }
    }

    /// What has not come back to this within a time.
    #[must_use]
    pub fn settled(self, within: Duration) -> Vec<String> {
        let deadline = Instant::now() + within;
        loop {
            let left = self.against(Self::now());
            if left.is_empty() || Instant::now() >= deadline {
                return left;
            }
            // Looked at again soon, until the deadline.
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }

    /// What another moment has that this one had not.
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
    fs::read_dir(directory).expect("the kernel tells").count()
}

fn memory() -> usize {
    let status = fs::read_to_string("/proc/self/status").expect("the kernel tells");
    let of = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        line.split_whitespace().next().and_then(|kib| kib.parse::<usize>().ok()).unwrap_or(0)
    };
    (of("RssAnon:") + of("RssShmem:")) << 10
}
