//! Confirmation requests: who is attached to answer them, the confirmer that asks operators, and
//! what a call would change.

mod attendance;
mod changes;
mod operator_confirmer;
mod settled;
mod unified;

pub use attendance::{Attached, Attending, GRACE};
pub(crate) use changes::unread_changes;
pub use changes::{FileChange, file_changes};
pub use operator_confirmer::OperatorConfirmer;

pub(crate) use operator_confirmer::{NotAnswered, Question};
pub(crate) use settled::Settlement;
