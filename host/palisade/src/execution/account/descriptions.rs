//! The memory that the descriptions of all loaded plugins take together. It is bounded, so that
//! plugins which only describe themselves leave room for the calls of others.

use super::counters::Owed;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of times that a description may be in memory: as it was registered, and in the two
/// forms that MCP lists.
const COPIES: u64 = 3;

/// The memory of all descriptions in the process, with their copies.
static HELD: Held = Held { approved: AtomicU64::new(0), unapproved: AtomicU64::new(0) };

/// The memory of the descriptions of each part, in bytes.
struct Held {
    approved: AtomicU64,
    unapproved: AtomicU64,
}

/// The part of the room in which a description counts. Plugin files without approval have a part of
/// their own, so that they take no room of approved plugins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DescriptionPart {
    /// That of the approved plugins.
    Approved,
    /// That of the others.
    Unapproved,
}

/// The terms on which a description is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DescriptionTerms {
    pub(crate) part: DescriptionPart,
    /// The memory of the earlier descriptions of the same file in the same part, in bytes. They end
    /// once the new one stands, so both count together for a moment only.
    pub(crate) replaced: u64,
}

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
    part: DescriptionPart,
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
    /// [`NoDescriptionRoom`] if it would take more than half of the room that is left of its part.
    /// So no plugin takes the room of a smaller one.
    pub(crate) fn hold(
        self,
        terms: DescriptionTerms,
        memory: DescriptionMemory,
    ) -> Result<HeldDescription, NoDescriptionRoom> {
        self.hold_in(&HELD, terms, memory.with_copies())?;
        Ok(HeldDescription::counted(terms.part, memory))
    }

    fn hold_in(
        self,
        held: &Held,
        terms: DescriptionTerms,
        wanted: u64,
    ) -> Result<(), NoDescriptionRoom> {
        let room = self.of(terms.part);
        let accepted = |held: u64| room.saturating_sub(held.saturating_sub(terms.replaced)) / 2;
        let add = |held| (wanted <= accepted(held)).then(|| held + wanted);
        held.of(terms.part)
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, add)
            .map(drop)
            .map_err(|held| NoDescriptionRoom { wanted, accepted: accepted(held) })
    }

    /// Returns the room of a part, in bytes: an eighth of all is for files without approval.
    fn of(self, part: DescriptionPart) -> u64 {
        let unapproved = self.0 / 8;
        match part {
            DescriptionPart::Approved => self.0 - unapproved,
            DescriptionPart::Unapproved => unapproved,
        }
    }
}

impl Held {
    fn of(&self, part: DescriptionPart) -> &AtomicU64 {
        match part {
            DescriptionPart::Approved => &self.approved,
            DescriptionPart::Unapproved => &self.unapproved,
        }
    }
}

impl DescriptionTerms {
    /// Returns the terms of an approved plugin that replaces none.
    pub(crate) fn of_approved() -> Self {
        Self { part: DescriptionPart::Approved, replaced: 0 }
    }
}

impl HeldDescription {
    /// Counts the description of a plugin of the program, which is never refused.
    pub(crate) fn of_shipped(memory: DescriptionMemory) -> Self {
        HELD.approved.fetch_add(memory.with_copies(), Ordering::Relaxed);
        Self::counted(DescriptionPart::Approved, memory)
    }

    /// Returns a description that [`HELD`] counts already.
    fn counted(part: DescriptionPart, memory: DescriptionMemory) -> Self {
        // The copies for the lists of clients count where they are made.
        let owed = memory.described.saturating_add(memory.validators);
        let owed = Owed::new(usize::try_from(owed).unwrap_or(usize::MAX));
        Self { owed, part, with_copies: memory.with_copies() }
    }

    /// Returns the counted memory if it counts in this part, in bytes.
    pub(crate) fn memory_in(&self, part: DescriptionPart) -> u64 {
        if self.part == part { self.with_copies } else { 0 }
    }
}

impl Drop for HeldDescription {
    fn drop(&mut self) {
        HELD.of(self.part).fetch_sub(self.with_copies, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: DescriptionRoom = DescriptionRoom::within(512 << 20);

    fn none_held() -> Held {
        Held { approved: AtomicU64::new(0), unapproved: AtomicU64::new(0) }
    }

    fn many(held: &Held, part: DescriptionPart, size: u64) -> usize {
        let terms = DescriptionTerms { part, replaced: 0 };
        (0..1000).take_while(|_| ROOM.hold_in(held, terms, size).is_ok()).count()
    }

    #[test]
    fn descriptions_leave_half_of_the_memory_to_calls_and_room_to_smaller_ones() {
        let (held, terms) = (none_held(), DescriptionTerms::of_approved());
        assert_eq!(ROOM.hold_in(&held, terms, 96 << 20), Ok(()));
        let refused = NoDescriptionRoom { wanted: 96 << 20, accepted: 64 << 20 };
        assert_eq!(ROOM.hold_in(&held, terms, 96 << 20), Err(refused));
        let large = many(&held, DescriptionPart::Approved, 4 << 20);
        assert!(large > 20, "{large}");
        let small = many(&held, DescriptionPart::Approved, 64 << 10);
        assert!(small > 50, "{small}");
        many(&held, DescriptionPart::Unapproved, 64 << 10);
        assert!(held.approved.into_inner() + held.unapproved.into_inner() <= 256 << 20);
    }

    #[test]
    fn files_without_approval_take_no_room_of_approved_plugins() {
        let held = none_held();
        assert!(many(&held, DescriptionPart::Unapproved, 1 << 20) > 20);
        assert_eq!(ROOM.hold_in(&held, DescriptionTerms::of_approved(), 96 << 20), Ok(()));
    }

    #[test]
    fn new_version_has_the_room_of_the_one_that_it_replaces() {
        let (held, terms) = (none_held(), DescriptionTerms::of_approved());
        assert_eq!(ROOM.hold_in(&held, terms, 96 << 20), Ok(()));
        many(&held, DescriptionPart::Approved, 1 << 20);
        assert!(ROOM.hold_in(&held, terms, 40 << 20).is_err());
        let terms = DescriptionTerms { replaced: 96 << 20, ..terms };
        assert_eq!(ROOM.hold_in(&held, terms, 40 << 20), Ok(()));
    }
}
