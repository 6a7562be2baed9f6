//! Sets the allocator up for the program's life: its memory returns to the system, and an address
//! space limit is not spent on arenas.

/// The expected run time of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Life {
    /// The program ends after one task.
    Short,
    /// The program is a server, which returns freed memory to the system.
    Long,
}

/// Re-executes the program with the allocator settings of its life, if it needs any. glibc reads
/// them before `main`, so that the process has to start again. Settings of the user take
/// precedence.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(super) fn set_up(life: Life) {
    use std::os::unix::process::CommandExt as _;

    let is_limited = palisade::internal::address_space_limit().is_some();
    let Some(settings) = settings(life, is_limited) else { return };
    let others = std::env::var_os(TUNABLES).unwrap_or_default();
    let is_set = others.to_string_lossy().contains("glibc.malloc.");
    if is_set || std::env::var_os("MALLOC_ARENA_MAX").is_some() {
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
    let mut all = std::ffi::OsString::from(settings);
    if !others.is_empty() {
        all.push(":");
        all.push(others);
    }
    // `exec` returns only on failure: the program continues with the default settings.
    let _ = again.args(words).env(TUNABLES, all).exec();
}

/// The variable of glibc's settings.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const TUNABLES: &str = "GLIBC_TUNABLES";

/// Returns the allocator settings, in the syntax of [`TUNABLES`]; `None` for the default.
///
/// Blocks from 1 MiB on are mapped separately and returned when freed. glibc otherwise raises that
/// threshold to the largest freed block, up to 32 MiB.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn settings(life: Life, is_limited: bool) -> Option<&'static str> {
    match (is_limited, life) {
        // glibc reserves 64 MiB of address space for each arena.
        (true, _) => Some("glibc.malloc.arena_max=1:glibc.malloc.mmap_threshold=1048576"),
        // A freed block in a thread's cache, or a block of another thread in the same arena, keeps
        // all memory below it from being returned. A call takes about 2 µs longer without caches.
        (false, Life::Long) => Some(
            "glibc.malloc.arena_max=64:glibc.malloc.tcache_count=0:glibc.malloc.trim_threshold=131072:\
             glibc.malloc.mmap_threshold=1048576",
        ),
        (false, Life::Short) => None,
    }
}

/// Returns true if the link names the file that this code was loaded from. If a dynamic loader was
/// started with the program as its argument, `/proc/self/exe` names the loader.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn is_itself(link: Option<std::path::PathBuf>) -> bool {
    let here = is_itself as *const () as usize;
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let covers = |range: &str| {
        let bounds = range
            .split_once('-')
            .map(|(from, to)| (usize::from_str_radix(from, 16), usize::from_str_radix(to, 16)));
        matches!(bounds, Some((Ok(from), Ok(to))) if (from..to).contains(&here))
    };
    let line = maps.lines().find(|line| line.split(' ').next().is_some_and(covers));
    let file = line.and_then(|line| Some(&line[line.find('/')?..]));
    link.is_some_and(|link| file == link.to_str())
}

/// Does nothing: other allocators reserve less address space per thread.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(super) fn set_up(_: Life) {}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    use super::*;

    #[test]
    fn only_own_executable_is_restarted() {
        assert!(is_itself(std::env::current_exe().ok()));
        assert!(!is_itself(Some("/lib64/ld-linux-x86-64.so.2".into())) && !is_itself(None));
    }
}
