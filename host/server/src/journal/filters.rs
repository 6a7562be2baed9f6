//! The filters that select rows, and the pages of them.

use super::ids::{CallKey, Cursor};
use super::rows::CallState;
use super::time::Timestamp;
use std::sync::Arc;

/// Selects events. Each condition that is given must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventFilter {
    /// The events of sessions that this client opened.
    pub client: Option<Arc<str>>,
    /// The events of sessions with this id.
    pub session_id: Option<Arc<str>>,
    /// The events of this call.
    pub call: Option<CallKey>,
}

/// Selects a page of a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// The position after which the page begins; the newest row without one.
    pub after: Option<Cursor>,
    /// The number of rows, from 1 to [`Page::MOST`].
    pub limit: usize,
}

impl Page {
    /// The most rows of a page.
    pub const MOST: usize = 500;

    /// Returns the limit within its bounds.
    pub(super) fn rows(self) -> usize {
        self.limit.clamp(1, Self::MOST)
    }

    /// Returns the number below which the page begins.
    pub(super) fn below(self) -> i64 {
        self.after.map_or(i64::MAX, Cursor::stored)
    }
}

impl Default for Page {
    fn default() -> Self {
        Self { after: None, limit: 100 }
    }
}

/// Selects calls. Each condition that is given must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallFilter {
    /// The calls of sessions that this client opened.
    pub client: Option<Arc<str>>,
    /// The calls of sessions with this id.
    pub session_id: Option<Arc<str>>,
    /// The calls of this tool.
    pub tool: Option<Arc<str>>,
    /// The calls of this class of side effects.
    pub class: Option<Arc<str>>,
    /// The calls in this state.
    pub state: Option<CallState>,
    /// The calls that failed with this class of error.
    pub error_class: Option<Arc<str>>,
    /// The calls that the journal has seen first at this time or later.
    pub since: Option<Timestamp>,
    /// The calls that the journal has seen first before this time.
    pub until: Option<Timestamp>,
    /// The calls with this text, in upper or lower case: in the tool's name, the caller's id, the
    /// session's id, or the first 4,096 characters of the input, the output or the error's message.
    pub text: Option<Arc<str>>,
}

/// Names a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallRef {
    /// By the journal's number.
    Key(CallKey),
    /// By the caller's id: the newest such call.
    Id {
        /// The caller's id.
        id: Arc<str>,
        /// Of the sessions of this client. `None`: of all.
        client: Option<Arc<str>>,
    },
}

/// Selects questions. Each condition that is given must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfirmationFilter {
    /// The question with this id.
    pub request_id: Option<Arc<str>>,
    /// The questions of sessions with this id.
    pub session_id: Option<Arc<str>>,
    /// The questions with this decision.
    pub resolution: Option<Arc<str>>,
}

/// Selects sessions. Each condition that is given must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionFilter {
    /// The sessions that this client opened.
    pub client: Option<Arc<str>>,
}
