//! The address space of the process, where the system limits it, or the private part of it. A
//! failed allocation aborts the process, so space is checked before each allocation.

use crate::tool::budget::Exhausted;
use rustix::process::{Resource, getrlimit};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// The address space that stays free where it is limited, in bytes, for threads, their stacks and
/// the host's own work. The program uses a single heap then, because the allocator may map all of
/// this space at once for one per-thread heap.
const HOST_ROOM: usize = 64 << 20;
/// The bytes granted to one account between two checks of the address space. Without room for a
/// heap, the allocator gives each small allocation its own page, up to 64 times its size;
/// [`HOST_ROOM`] must cover that as well.
const UNASKED: u64 = 128 << 10;

/// The limits of the kernel on what a process maps, each with the line of `/proc/self/status` that
/// counts towards it (proc_pid_status(5)): all of it (`ulimit -v`), and private memory that can be
/// written (`ulimit -d`).
const LIMITED: [(Resource, &str); 2] = [(Resource::As, "VmSize:"), (Resource::Data, "VmData:")];

/// Bytes granted to all accounts and possibly not allocated yet. The lock makes a check and its
/// grant one step.
static GRANTED: Mutex<u64> = Mutex::new(0);

/// Bytes granted to one account and possibly not allocated yet.
#[derive(Debug, Default)]
pub(super) struct AddressSpaceGrant(AtomicU64);

impl AddressSpaceGrant {
    /// Grants more bytes if the address space has room for them.
    ///
    /// # Errors
    ///
    /// [`Exhausted::AddressSpace`]; nothing is granted then.
    pub(super) fn grow(&self, more: u64) -> Result<(), Exhausted> {
        address_space_limit().map_or(Ok(()), |limit| self.grow_where(more, limit, is_free))
    }

    fn grow_where(
        &self,
        more: u64,
        limit: u64,
        is_free: impl Fn(u64) -> bool,
    ) -> Result<(), Exhausted> {
        let mut all = granted();
        let before = self.0.load(Ordering::Relaxed);
        let mine = before.saturating_add(more);
        let others = all.saturating_sub(before);
        let next = if mine <= UNASKED {
            mine
        } else if is_free(others.saturating_add(mine)) {
            // By the next request, the previous grant has been allocated.
            more
        } else {
            return Err(Exhausted::AddressSpace { limit });
        };
        self.0.store(next, Ordering::Relaxed);
        *all = others.saturating_add(next);
        Ok(())
    }
}

impl Drop for AddressSpaceGrant {
    fn drop(&mut self) {
        let mine = *self.0.get_mut();
        if mine > 0 {
            let mut all = granted();
            *all = all.saturating_sub(mine);
        }
    }
}

fn granted() -> MutexGuard<'static, u64> {
    GRANTED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns true if the address space has room for `memory` bytes plus the host's reserve.
pub(crate) fn has_room(memory: usize) -> bool {
    let all = granted();
    is_free(all.saturating_add(memory as u64))
}

/// Returns true if the address space has room for this many bytes that are counted only once they
/// are in use, such as those of a parsed message. Without a limit it always has.
pub fn fits_address_space(bytes: usize) -> bool {
    address_space_limit().is_none() || has_room(bytes)
}

fn is_free(bytes: u64) -> bool {
    let wanted = usize::try_from(bytes).unwrap_or(usize::MAX).saturating_add(HOST_ROOM);
    match free() {
        Some(free) => free >= wanted as u64,
        // The reservation is mapped and freed at once without touching its pages.
        None => Vec::<u8>::new().try_reserve_exact(wanted).is_ok(),
    }
}

/// Returns the free part of a limited address space, in bytes, as the kernel counts it. `None` if
/// it is not limited.
///
/// A trial reservation would tell as well, but could take the last room for a moment: a small
/// allocation on another thread then fails and aborts the process.
fn free() -> Option<u64> {
    // Without a limit, no call waits for the kernel to write the file.
    address_space_limit()?;
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let held = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
    };
    let limited = limits().into_iter().zip(LIMITED);
    let free = limited.filter_map(|(limit, (_, name))| {
        limit.map(|limit| held(name).map(|held| limit.saturating_sub(held)))
    });
    free.collect::<Option<Vec<u64>>>()?.into_iter().min()
}

/// Returns the limit of the address space in bytes, or that of its private part if it is smaller.
/// `None` if there is neither.
pub fn address_space_limit() -> Option<u64> {
    limits().into_iter().flatten().min()
}

/// Returns the limits in the order of [`LIMITED`].
fn limits() -> [Option<u64>; 2] {
    static LIMITS: OnceLock<[Option<u64>; 2]> = OnceLock::new();
    *LIMITS.get_or_init(|| LIMITED.map(|(resource, _)| getrlimit(resource).current))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: u64 = 1 << 30;

    fn full(_: u64) -> bool {
        false
    }

    #[test]
    fn full_address_space_grants_small_steps_up_to_a_bound() {
        let granted = AddressSpaceGrant::default();
        let steps =
            (0..10_000).take_while(|_| granted.grow_where(1 << 10, LIMIT, full).is_ok()).count();
        assert_eq!(steps as u64, UNASKED >> 10);
        let refused = Err(Exhausted::AddressSpace { limit: LIMIT });
        assert_eq!(granted.grow_where(1, LIMIT, full), refused);
        assert_eq!(AddressSpaceGrant::default().grow_where(UNASKED + 1, LIMIT, full), refused);
    }

    #[test]
    fn address_space_check_counts_pending_grants() {
        let one = AddressSpaceGrant::default();
        let other = AddressSpaceGrant::default();
        assert_eq!(one.grow_where(5 << 20, LIMIT, |_| true), Ok(()));
        // The grants are large enough to be distinguished from those of concurrent tests.
        let both = |wanted: u64| wanted >= 12 << 20;
        assert_eq!(other.grow_where(7 << 20, LIMIT, both), Ok(()));
        assert_eq!(other.grow_where(UNASKED, LIMIT, both), Ok(()));
        assert_eq!(
            other.grow_where(1, LIMIT, |wanted| wanted < 7 << 20),
            Ok(()),
            "the step before is allocated"
        );
    }
}
