//! Limits the number of allocator arenas: one if the address space is limited, two for a server.

/// The expected run time of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Life {
    /// The program ends after one task.
    Short,
    /// The program is a server, so that freed memory should not stay in arenas.
    Long,
}

/// Re-executes the program with few glibc arenas, if needed. glibc reserves 64 MiB of address space
/// for the arena of each thread: under an address space limit, idle threads would hold most of it,
/// and a server would keep the freed memory of its many threads. glibc reads the setting before
/// `main`, so that the process has to start again.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(super) fn keep_few(life: Life) {
    use std::os::unix::process::CommandExt as _;

    const HEAPS: &str = "MALLOC_ARENA_MAX";
    // Blocks of this size are mapped separately and returned to the system when freed. glibc
    // otherwise raises the threshold to the largest freed block, up to 32 MiB, and arenas would
    // retain the memory of large results.
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
    // This path names the running file even if another file has taken its place.
    let mut again = std::process::Command::new("/proc/self/exe");
    if let Some(name) = words.next() {
        again.arg0(name);
    }
    // `exec` returns only on failure: the program continues with the default arenas.
    let _ = again.args(words).env(HEAPS, heaps).env(LARGE, LARGE_BYTES).exec();
}

/// Returns true if the link names the file that this code was loaded from. If a dynamic loader was
/// started with the program as its argument, `/proc/self/exe` names the loader.
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

/// Does nothing: other allocators reserve less address space per thread.
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
