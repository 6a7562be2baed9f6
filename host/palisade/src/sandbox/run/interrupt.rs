//! The interruption of a computing guest.

/// The interruption of a computing guest, raised at a tick of the epoch clock or between two ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Interrupted {
    #[error("the deadline has passed")]
    Deadline,
    #[error("the call was cancelled")]
    Cancelled,
}
