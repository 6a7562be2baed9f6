//! The memory that the descriptions of all loaded plugins take together. It is bounded, so that
//! plugins which only describe themselves leave room for the calls of others.

use super::counters::Owed;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of times that a description may be in memory: as it was registered, and in the two
/// forms that MCP lists.
const COPIES: u64 = 3;

/// The memory of all descriptions in the process, with their copies, in bytes.
static HELD: AtomicU64 = AtomicU64::new(0);

/// The memory of one description, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DescriptionMemory {
    /// Of its texts and parsed schemas, once.
    pub(crate) described: u64,
    /// Of the validators of its schemas, which may be built later.
    pub(crate) validators: u64,
}

impl DescriptionMemory {
    /// Returns the memory once all copies are made.
    fn with_copies(self) -> u64 {
        self.described.saturating_mul(COPIES).saturating_add(self.validators)
    }
}

/// The memory for the descriptions of all plugins, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DescriptionRoom(u64);

/// A description has no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoDescriptionRoom {
    /// The memory of the description with its copies and validators, in bytes.
    pub(crate) wanted: u64,
    /// The most that it may take now, in bytes.
    pub(crate) accepted: u64,
}

/// The memory of one description, which counts for as long as this lives.
#[derive(Debug)]
pub(crate) struct HeldDescription {
    #[expect(dead_code, reason = "counts for as long as it lives")]
    owed: Owed,
    with_copies: u64,
}

impl DescriptionRoom {
    /// Returns the room within the memory of all calls, in bytes: half of it.
    pub(crate) const fn within(total: u64) -> Self {
        Self(total / 2)
    }

    /// Counts a description.
    ///
    /// # Errors
    ///
    /// [`NoDescriptionRoom`] if it would take more than half of the room that is left. So no plugin
    /// takes the room of a smaller one.
    pub(crate) fn hold(
        self,
        memory: DescriptionMemory,
    ) -> Result<HeldDescription, NoDescriptionRoom> {
        self.hold_in(&HELD, memory.with_copies())?;
        Ok(HeldDescription::counted(memory))
    }

    fn hold_in(self, held: &AtomicU64, wanted: u64) -> Result<(), NoDescriptionRoom> {
        let accepted = |held: u64| self.0.saturating_sub(held) / 2;
        let add = |held| (wanted <= accepted(held)).then(|| held + wanted);
        held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add)
            .map(drop)
            .map_err(|held| NoDescriptionRoom { wanted, accepted: accepted(held) })
    }
}

impl HeldDescription {
    /// Counts the description of a plugin of the program, which is never refused.
    pub(crate) fn of_shipped(memory: DescriptionMemory) -> Self {
        HELD.fetch_add(memory.with_copies(), Ordering::Relaxed);
        Self::counted(memory)
    }

    /// Returns a description that [`HELD`] counts already.
    fn counted(memory: DescriptionMemory) -> Self {
        // What clients list counts where it is made.
        let owed = memory.described.saturating_add(memory.validators);
        let owed = Owed::new(usize::try_from(owed).unwrap_or(usize::MAX));
        Self { owed, with_copies: memory.with_copies() }
    }
}

impl Drop for HeldDescription {
    fn drop(&mut self) {
        HELD.fetch_sub(self.with_copies, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_leave_half_of_the_memory_to_calls_and_room_to_smaller_ones() {
        let (room, held) = (DescriptionRoom::within(512 << 20), AtomicU64::new(0));
        assert_eq!(room.hold_in(&held, 128 << 20), Ok(()));
        let refused = NoDescriptionRoom { wanted: 128 << 20, accepted: 64 << 20 };
        assert_eq!(room.hold_in(&held, 128 << 20), Err(refused));
        let large = (0..1000).take_while(|_| room.hold_in(&held, 4 << 20).is_ok()).count();
        assert!(large > 20, "{large}");
        let small = (0..1000).take_while(|_| room.hold_in(&held, 64 << 10).is_ok()).count();
        assert!(small > 50, "{small}");
        assert!(held.into_inner() <= 256 << 20);
    }
}
