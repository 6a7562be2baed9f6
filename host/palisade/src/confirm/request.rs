//! A confirmation request and its possible outcomes.

use super::DisplayedFiles;
use crate::tool::text::elided;
use crate::tool::{CallId, Digest, SideEffects};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// The id of a confirmation request. It is random, so that only clients that saw the request can
/// answer it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(Arc<str>);

impl RequestId {
    /// Creates an id of 128 random bits. `None` if the system has no randomness; asking must then
    /// fail.
    pub(crate) fn random() -> Option<Self> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).ok()?;
        Some(Self(format!("cr_{:032x}", u128::from_be_bytes(bytes)).into()))
    }

    /// Creates an id from a client's response. An unknown id is refused on use.
    #[must_use]
    pub fn new(id: &str) -> Self {
        Self(elided(id, 64).into())
    }

    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A confirmation request. The answer applies once, to this tool of this plugin with this input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfirmationRequest {
    /// The request's id.
    pub id: RequestId,
    /// The call that waits.
    pub call_id: CallId,
    /// The id of the conversation, if there is one.
    pub session_id: Option<Arc<str>>,
    /// The id of the turn, if there is one.
    pub turn_id: Option<Arc<str>>,
    /// The tool's name.
    pub tool: String,
    /// The tool's class.
    pub side_effects: SideEffects,
    /// The running tool that makes the call, or `None` if the caller makes it.
    pub called_by: Option<Box<CallingTool>>,
    /// The input, escaped and shortened in the middle.
    pub input_summary: String,
    /// The whole input as canonical JSON text, so that a confirmer can show what would change.
    /// `None` in events, and for an input of more than 1 MiB.
    pub input: Option<Arc<str>>,
    /// The length of the input as canonical JSON text, in bytes.
    pub input_bytes: u32,
    /// The paths that the call would change, by its input, relative to the workspace; behind a
    /// link, the file that it leads to. They do not bound the call: a link can be changed
    /// meanwhile, and a tool of class `write` can change files that its input does not name.
    pub projected_modifications: Vec<String>,
    /// The files among them whose contents a confirmer displays, recorded as it reads them.
    pub displayed: DisplayedFiles,
    /// The name of the plugin or the server, such as `mcp/git`, or `None` for a native tool.
    pub plugin: Option<String>,
    /// The plugin's digest, or `None` for a tool of no plugin.
    pub digest: Option<Digest>,
    /// The grants of the plugin beyond the classes of its tools, one on each line, or the rights of
    /// the server's process.
    pub grants: Vec<String>,
    /// The total time for which the request is open.
    pub valid_for: Duration,
    /// The wall-clock time at which the request expires; for display only.
    pub expires: SystemTime,
}

/// A running tool that makes a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallingTool {
    /// The call of the tool.
    pub call_id: CallId,
    /// The tool's name.
    pub tool: String,
    /// The name of the tool's plugin, or `None` for a native tool.
    pub plugin: Option<String>,
    /// The number of the call among those that the tool makes, from one.
    pub number: usize,
    /// The place in the tool's program, in the tool's own words, escaped: `line 12`.
    pub place: Option<String>,
}

/// Writes the tool, its plugin and the place, which is in the tool's own words and may be anything:
/// `run_js (plugin code), at "line 12"`.
impl fmt::Display for CallingTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// The longest place that is written, in characters.
        const MOST: usize = 60;
        f.write_str(&self.tool)?;
        if let Some(plugin) = &self.plugin {
            write!(f, " (plugin {plugin})")?;
        }
        match &self.place {
            Some(place) => write!(f, ", at \"{}\"", elided(&place.replace('"', "'"), MOST)),
            None => Ok(()),
        }
    }
}

/// The user's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Answer {
    /// This call may run.
    Allow,
    /// This call must not run.
    Deny,
    /// This call may run, and so may every later call of the same tool of the same plugin in this
    /// session.
    Always,
    /// The question ended without an answer, such as at the end of the input. This call must not
    /// run.
    None,
}

impl Answer {
    /// Returns the name used in events.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            // Events know no other word for a call that a question has stopped.
            Self::Deny | Self::None => "deny",
            Self::Always => "always",
        }
    }
}

/// The outcome of a confirmation request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Resolution {
    /// The user answered.
    Answered(Answer),
    /// The user answered another request with *always*, which allows this tool too.
    AllowedMeanwhile,
    /// The request timed out.
    TimedOut,
    /// The call ended: it was cancelled or its caller is gone.
    Withdrawn,
    /// The user could not be reached after all.
    Unanswerable,
    /// The confirmer panicked, so the call is refused.
    Failed,
    /// The request is sent to the client with the end of the call, and asked again when the call is
    /// made again.
    Deferred,
}

impl Resolution {
    /// Returns the name used in events.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Answered(answer) => answer.as_str(),
            Self::AllowedMeanwhile => "always",
            Self::TimedOut => "timeout",
            Self::Withdrawn => "cancelled",
            Self::Unanswerable => "nobody",
            Self::Failed => "failed",
            Self::Deferred => "deferred",
        }
    }
}
