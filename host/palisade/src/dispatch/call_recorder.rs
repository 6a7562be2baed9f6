//! A recorder of calls: it sees each call before the tool runs and after the call has ended.

use crate::events::Subject;
use crate::execution::{BoxFuture, ValidInput};
use crate::registry::{Origin, Registered};
use crate::tool::{Advice, Digest, ErrorKind, PermissionReason, ToolResult};
use std::fmt;

/// A recorder of the calls of a host, such as an audit trail. A host has one at most, see
/// [`HostBuilder::recorder`](crate::HostBuilder::recorder).
///
/// Subscribers of events learn of a call that has begun. A recorder is asked first, so that no
/// effect of a call precedes its record.
pub trait CallRecorder: Send + Sync {
    /// Records that a call is about to run: it passed all checks and holds its slots, and its
    /// event `tool.called` has not been sent yet. Its time limit does not count this wait.
    ///
    /// # Errors
    ///
    /// [`NotRecorded`] keeps the call from running. Its result is a refusal with the reason
    /// [`PermissionReason::NotRecorded`].
    fn before_run<'a>(&'a self, start: CallStart<'a>) -> BoxFuture<'a, Result<(), NotRecorded>>;

    /// Records the end of a call: once for each call, including those that did not run, and before
    /// its terminal event is sent. Must not block.
    fn ended(&self, end: CallEnd<'_>);
}

/// A call that is about to run.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct CallStart<'a> {
    /// The call, as its events name it.
    pub subject: &'a Subject,
    /// The name of the plugin. `None` for a native tool.
    pub plugin: Option<&'a str>,
    /// The digest of the plugin. `None` for a native tool.
    pub digest: Option<Digest>,
    input: &'a ValidInput,
}

impl<'a> CallStart<'a> {
    pub(super) fn new(subject: &'a Subject, tool: &'a Registered, input: &'a ValidInput) -> Self {
        let origin: &Origin = tool.origin();
        Self { subject, plugin: origin.plugin(), digest: origin.digest(), input }
    }

    /// Returns the input as canonical JSON text.
    #[must_use]
    pub fn input(&self) -> &'a str {
        self.input.text()
    }
}

impl fmt::Debug for CallStart<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallStart")
            .field("subject", self.subject)
            .field("plugin", &self.plugin)
            .finish_non_exhaustive()
    }
}

/// A call that has ended.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct CallEnd<'a> {
    /// The call, as its events name it.
    pub subject: &'a Subject,
    /// The result. `None` if the caller dropped the call before it ended.
    pub result: Option<&'a ToolResult>,
    /// The input of a call that ended before its tool ran, at whatever stage: canonical JSON text,
    /// or the text that is no JSON. `None` for a call that ran, whose
    /// [`CallStart`] had it; and if it is beyond the bounds of an input, there is no memory for its
    /// text, or its check hangs.
    pub input: Option<&'a str>,
}

/// The reason why a call could not be recorded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotRecorded(String);

impl NotRecorded {
    /// Creates an error with this reason, which the operator sees.
    pub fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

/// Converts the reason into the refusal of the call.
impl From<NotRecorded> for ErrorKind {
    fn from(NotRecorded(reason): NotRecorded) -> Self {
        Self::denied_with(
            PermissionReason::NotRecorded,
            "the call did not run, because it could not be recorded first",
            Advice::new(reason),
        )
    }
}
