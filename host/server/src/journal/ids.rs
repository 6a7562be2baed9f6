//! The numbers that the journal gives to events and rows.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

/// The number of an event. It grows with each event of a journal, and is never given twice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId(u64);

/// The number of a call. Callers choose the ids of their calls and may use them again; this number
/// is the journal's own, and later calls have larger ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallKey(u64);

/// The number of a session. Its id may be used again, and this number is the journal's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionKey(u64);

/// The number at which a journal is full. No process gives this many, so that a larger one is of a
/// damaged file, and SQLite would soon have no number left.
pub(super) const LAST: u64 = 1 << 62;

/// A position in a listing: the row after which the next page begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cursor(u64);

impl EventId {
    /// The position before the first event.
    pub const START: Self = Self(0);

    /// Returns the next number.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// Numbers are stored as signed integers, and those from outside may be too large for one.
macro_rules! number {
    ($name:ident) => {
        impl $name {
            /// Takes a number, such as one that a client sends back.
            #[must_use]
            pub const fn new(number: u64) -> Self {
                Self(number)
            }

            /// Returns the number.
            #[must_use]
            pub const fn get(self) -> u64 {
                self.0
            }

            /// Takes a stored number.
            pub(super) fn from_stored(number: i64) -> Self {
                Self(u64::try_from(number).unwrap_or_default())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl FromStr for $name {
            type Err = ParseIntError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse().map(Self)
            }
        }
    };
}

number!(EventId);
number!(CallKey);
number!(SessionKey);
number!(Cursor);

/// The numbers that statements are given.
macro_rules! given {
    ($name:ident) => {
        impl $name {
            /// Returns the number as SQLite stores it.
            pub(super) fn stored(self) -> i64 {
                i64::try_from(self.0).unwrap_or(i64::MAX)
            }
        }
    };
}

given!(EventId);
given!(CallKey);
given!(Cursor);
