//! Few heaps of the allocator: one where the address space is limited, two for a server.

/// Whether the program goes on for long, so that memory which it gives back should not stay in heaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Life {
    /// It ends with its one piece of work.
    Short,
    /// It serves.
    Long,
}

/// Starts the program again in place with few heaps of the allocator, where that matters. The C library
/// maps 64 MiB for a heap of each thread otherwise: where the address space is limited, threads that
/// compute nothing would hold most of it, and a server would keep what its many threads have freed.
/// The library reads the setting before `main`.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(super) fn keep_few(life: Life) {
    use std::os::unix::process::CommandExt as _;

    const HEAPS: &str = "MALLOC_ARENA_MAX";
    // A block of this size is mapped by itself and goes back to the system when it is freed. Without the setting, the
    // size grows to that of the largest block freed, up to 32 MiB: the heaps would keep what large results have freed.
    const LARGE: &str = "MALLOC_MMAP_THRESHOLD_";
    const LARGE_BYTES: &str = "1048576";
    let heaps = match (crate::execution::account::address_space_limit(), life) {
        (Some(_), _) => "1",
        (None, Life::Long) => "2",
        (None, Life::Short) => return,
    };
    if std::env::var_os(HEAPS).is_some() {
        return;
    }
    if !is_itself(std::fs::read_link("/proc/self/exe").ok()) {
        return;
    }
    let mut words = std::env::args_os();
    // By this name, which is the running file also after another one took its path.
    let mut again = std::process::Command::new("/proc/self/exe");
    if let Some(name) = words.next() {
        again.arg0(name);
    }
    // It returns only where it failed: the program goes on with the heaps that it has then.
    let _ = again.args(words).env(HEAPS, heaps).env(LARGE, LARGE_BYTES).exec();
}

/// Whether this is the file that this code was loaded from. Where a loader was started with the program as its argument,
/// the link of the process names the loader.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn is_itself(link: Option<std::path::PathBuf>) -> bool {
    let here = is_itself as *const () as usize;
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let covers = |range: &str| {
        let bounds =
            range.split_once('-').map(|(from, to)| (usize::from_str_radix(from, 16), usize::from_str_radix(to, 16)));
        matches!(bounds, Some((Ok(from), Ok(to))) if (from..to).contains(&here))
    };
    let line = maps.lines().find(|line| line.split(' ').next().is_some_and(covers));
    let file = line.and_then(|line| Some(&line[line.find('/')?..]));
    link.is_some_and(|link| file == link.to_str())
}

/// Other allocators do not map so much for a thread.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(super) fn keep_few(_: Life) {}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    use super::*;

    #[test]
    fn only_the_file_that_holds_this_code_is_started_again() {
        assert!(is_itself(std::env::current_exe().ok()));
        assert!(!is_itself(Some("/lib64/ld-linux-x86-64.so.2".into())) && !is_itself(None));
    }
}
