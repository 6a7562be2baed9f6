//! A process whose first thread has ended while another one keeps memory: the kernel then tells no
//! memory in the status of the process.
//!
//! Takes the memory in MiB and the time to keep it in seconds. Exits with 3 if the first thread
//! cannot end alone. A thread that only returns would end the whole process, so a seccomp filter
//! ends it at a system call.

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    let mut numbers = std::env::args().skip(1).filter_map(|word| word.parse::<u64>().ok());
    let (Some(mib), Some(seconds)) = (numbers.next(), numbers.next()) else {
        return std::process::ExitCode::from(2);
    };
    std::thread::spawn(move || alone::keep(mib, seconds));
    let error = alone::end_this_thread();
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "the first thread does not end: {error:?}");
    std::process::ExitCode::from(3)
}

#[cfg(not(target_os = "linux"))]
fn main() -> std::process::ExitCode {
    std::process::ExitCode::from(3)
}

#[cfg(target_os = "linux")]
mod alone {
    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};
    use std::collections::BTreeMap;
    use std::io::{self, Write as _};
    use std::time::Duration;

    /// The number of `openat2`, which is the same on every architecture.
    const OPENAT2: i64 = 437;

    /// Keeps memory once the first thread has ended, and then ends the process.
    pub(super) fn keep(mib: u64, seconds: u64) {
        while !first_has_ended() {
            std::thread::yield_now();
        }
        let kept = vec![1_u8; usize::try_from(mib << 20).unwrap_or(usize::MAX)];
        let _ = writeln!(io::stdout(), "kept {} bytes", std::hint::black_box(&kept).len());
        std::thread::sleep(Duration::from_secs(seconds));
        drop(std::hint::black_box(kept));
        std::process::exit(0);
    }

    /// Returns true if the first thread is a zombie.
    fn first_has_ended() -> bool {
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z'))
    }

    /// Ends this thread alone. Returns only if that fails.
    pub(super) fn end_this_thread() -> io::Error {
        match filter() {
            Err(error) => error,
            Ok(program) => match apply_filter(&program) {
                Err(error) => io::Error::other(error),
                Ok(()) => {
                    match openat2(CWD, ".", OFlags::PATH, Mode::empty(), ResolveFlags::empty()) {
                        Ok(_) => io::Error::other("the filter lets the call through"),
                        Err(error) => error.into(),
                    }
                }
            },
        }
    }

    /// Returns a filter that ends the thread at `openat2`.
    fn filter() -> io::Result<BpfProgram> {
        let architecture = std::env::consts::ARCH.try_into().map_err(io::Error::other)?;
        let rules = BTreeMap::from([(OPENAT2, Vec::new())]);
        let filter = SeccompFilter::new(
            rules,
            SeccompAction::Allow,
            SeccompAction::KillThread,
            architecture,
        );
        filter.map_err(io::Error::other)?.try_into().map_err(io::Error::other)
    }
}
