//! A rate limit of log lines.

use super::token_bucket::{Rate, TokenBucket};
use std::fmt;
use tokio::time::Instant;

/// A rate limit of log lines of one kind, which counts the lines that it withholds.
#[derive(Debug)]
pub(crate) struct LineLimit {
    bucket: TokenBucket,
    /// The number of lines since the last one that was written.
    withheld: u64,
}

/// The number of withheld lines; the end of the next line names it, unless it is zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Withheld(u64);

impl LineLimit {
    /// Creates a limit with a full burst.
    pub(crate) fn new(rate: Rate, now: Instant) -> Self {
        Self { bucket: TokenBucket::new(rate, now), withheld: 0 }
    }

    /// Takes the right to one line. `None` if the line is withheld.
    pub(crate) fn take(&mut self, now: Instant) -> Option<Withheld> {
        if self.bucket.take(now).is_err() {
            self.withheld += 1;
            return None;
        }
        Some(Withheld(std::mem::take(&mut self.withheld)))
    }
}

impl fmt::Display for Withheld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => Ok(()),
            count => write!(f, " ({count} more since the last such line)"),
        }
    }
}
