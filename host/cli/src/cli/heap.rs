//! Sets the allocators up for the program's life: its memory returns to the system, and an address
//! space limit is not spent on arenas.

/// The expected run time of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Life {
    /// The program ends after one task.
    Short,
    /// The program is a server, which returns freed memory to the system.
    Long,
}

/// Re-executes the program with the allocator settings of its life, if it needs any. The allocators
/// read them before `main`, so that the process has to start again. Settings of the user take
/// precedence.
#[cfg(target_os = "linux")]
pub(super) fn set_up(life: Life) {
    use std::os::unix::process::CommandExt as _;

    let is_limited = palisade::internal::address_space_limit().is_some();
    let Some(settings) = settings(life, is_limited) else { return };
    if std::env::var_os(SETTINGS).is_some() {
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
    if is_limited {
        again.env(TUNABLES, one_heap(std::env::var_os(TUNABLES)));
    }
    // `exec` returns only on failure: the program continues with the default settings.
    let _ = again.args(words).env(SETTINGS, settings).exec();
}

/// The variable of the settings of [`crate::Allocator`].
#[cfg(target_os = "linux")]
const SETTINGS: &str = "_RJEM_MALLOC_CONF";

/// The variable of glibc's settings. The C library allocates a little for each thread.
#[cfg(target_os = "linux")]
const TUNABLES: &str = "GLIBC_TUNABLES";

/// Returns the settings of [`crate::Allocator`]; `None` for the default.
#[cfg(target_os = "linux")]
fn settings(life: Life, is_limited: bool) -> Option<&'static str> {
    match (is_limited, life) {
        // Freed pages are unmapped at once, so that a guest finds room where large messages were.
        (true, _) => Some("narenas:1,tcache:false,retain:false,dirty_decay_ms:0,muzzy_decay_ms:0"),
        // A thread of the allocator returns freed pages within half a second, whatever lies between
        // them. glibc returns pages from the end of a heap only: one small block in use there keeps
        // all free memory below it, which was gigabytes after a flood of large messages.
        (false, Life::Long) => Some("background_thread:true,dirty_decay_ms:200,muzzy_decay_ms:0"),
        (false, Life::Short) => None,
    }
}

/// Adds to glibc's settings that all threads share one heap: it reserves 64 MiB of address space
/// for each. The last value of a setting counts, so that the user's own follow.
#[cfg(target_os = "linux")]
fn one_heap(others: Option<std::ffi::OsString>) -> std::ffi::OsString {
    let mut all = std::ffi::OsString::from("glibc.malloc.arena_max=1");
    if let Some(others) = others.filter(|others| !others.is_empty()) {
        all.push(":");
        all.push(others);
    }
    all
}

/// Returns true if the link names the file that this code was loaded from. If a dynamic loader was
/// started with the program as its argument, `/proc/self/exe` names the loader.
#[cfg(target_os = "linux")]
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

/// Does nothing: this way to start again is Linux's own.
#[cfg(not(target_os = "linux"))]
pub(super) fn set_up(_: Life) {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn only_own_executable_is_restarted() {
        assert!(is_itself(std::env::current_exe().ok()));
        assert!(!is_itself(Some("/lib64/ld-linux-x86-64.so.2".into())) && !is_itself(None));
    }
}
