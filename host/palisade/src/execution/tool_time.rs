//! The operator's time limit for the calls of one tool.

use std::time::Duration;

/// The operator's time limit for the calls of one tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolTime {
    /// This limit, regardless of the tool's own.
    Set(Duration),
    /// The tool's own limit, capped at this one.
    AtMost(Duration),
}

impl ToolTime {
    pub(crate) fn time(self) -> Duration {
        match self {
            Self::Set(time) | Self::AtMost(time) => time,
        }
    }
}
