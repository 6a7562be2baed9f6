//! How many calls of the process may wait for a place, in all and of one plugin: a flood is refused at once, and leaves room for others.

use crate::tool::{Digest, ErrorKind, Limit};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Calls of the process that wait at once. Each holds its input, of up to 1 MiB.
pub const WAITING_CALLS: usize = 1024;
/// Calls of one plugin, or of one native tool, that wait at once: the other half stays for the others.
pub const WAITING_CALLS_OF_ONE: usize = WAITING_CALLS / 2;

/// The process's one count.
static WAITING: Crowd = Crowd(Mutex::new(None));

/// A call that waits. Dropped when it does not any more.
#[derive(Debug)]
pub(crate) struct Waiting<'a> {
    crowd: &'a Crowd,
    of: Digest,
}

/// Counts a call that begins to wait: for its plugin, by the digest of that.
///
/// # Errors
///
/// `resource_exhausted` where too many wait already.
pub(crate) fn wait(of: Digest) -> Result<Waiting<'static>, ErrorKind> {
    WAITING.enter(of)
}

#[derive(Debug)]
struct Crowd(Mutex<Option<Count>>);

#[derive(Debug, Default)]
struct Count {
    all: usize,
    of: HashMap<Digest, usize>,
}

impl Crowd {
    fn enter(&self, of: Digest) -> Result<Waiting<'_>, ErrorKind> {
        let mut count = self.count();
        let count = count.get_or_insert_default();
        let own = count.of.get(&of).copied().unwrap_or(0);
        let full = [(count.all, WAITING_CALLS), (own, WAITING_CALLS_OF_ONE)].into_iter().find(|(is, may)| is >= may);
        if let Some((_, may)) = full {
            return Err(ErrorKind::ResourceExhausted { limit: Limit::Waiting, value: may as u64 });
        }
        count.all += 1;
        count.of.insert(of, own + 1);
        Ok(Waiting { crowd: self, of })
    }

    fn leave(&self, of: Digest) {
        let mut count = self.count();
        let Some(count) = count.as_mut() else { return };
        count.all = count.all.saturating_sub(1);
        if let Some(own) = count.of.get_mut(&of) {
            *own = own.saturating_sub(1);
            // Plugins come and go in a process that lives long.
            if *own == 0 {
                count.of.remove(&of);
            }
        }
    }

    fn count(&self) -> MutexGuard<'_, Option<Count>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.crowd.leave(self.of);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(refused: &Result<Waiting<'_>, ErrorKind>) -> Option<u64> {
        match refused {
            Err(ErrorKind::ResourceExhausted { limit: Limit::Waiting, value }) => Some(*value),
            _ => None,
        }
    }

    #[test]
    fn a_flood_of_one_plugin_leaves_half_of_the_places_to_the_others() {
        let crowd = Crowd(Mutex::new(None));
        let (flood, other, third) = (Digest::of(b"flood"), Digest::of(b"other"), Digest::of(b"third"));
        let mut waiting: Vec<_> = (0..512).filter_map(|_| crowd.enter(flood).ok()).collect();
        assert_eq!((waiting.len(), value(&crowd.enter(flood))), (512, Some(512)));
        waiting.extend((0..512).filter_map(|_| crowd.enter(other).ok()));
        assert_eq!((waiting.len(), value(&crowd.enter(third))), (1024, Some(1024)));
        waiting.truncate(511);
        assert!(crowd.enter(flood).is_ok() && crowd.enter(third).is_ok());
        drop(waiting);
        assert!(crowd.count().as_ref().is_some_and(|count| count.all == 0 && count.of.is_empty()));
    }
}
