//! The log of failures that only the operator of the server can prevent, each with its remedy.

use crate::clients::client_session::TransportKind;
use crate::protocol::remedy::{Elicitation, StartedBy, for_operator};
use crate::rate_limit::{LineLimit, Rate};
use palisade::ToolResult;
use palisade::tool::text::elided;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// The rate of log lines: one a second, with a burst of twenty.
const RATE: Rate = Rate::one_per(Duration::from_secs(1), 20);
/// The maximum length of a reason in the log, in characters.
const MAX_REASON: usize = 512;

/// The log of failures for the operator, which a flood of them does not fill.
#[derive(Debug)]
pub(crate) struct OperatorLog(Mutex<LineLimit>);

impl Default for OperatorLog {
    fn default() -> Self {
        Self(Mutex::new(LineLimit::new(RATE, Instant::now())))
    }
}

impl OperatorLog {
    /// Logs a failed call with a further remedy, if only the operator has one and the limit has
    /// room for the line.
    pub(crate) fn note(
        &self,
        result: &ToolResult,
        transport: TransportKind,
        elicitation: Elicitation,
        remedy: Option<&str>,
    ) {
        if let Some(line) = self.line(result, transport, elicitation, Instant::now()) {
            let remedy = remedy.map(|remedy| format!("; {remedy}")).unwrap_or_default();
            tracing::warn!("{line}{remedy}");
        }
    }

    fn line(
        &self,
        result: &ToolResult,
        transport: TransportKind,
        elicitation: Elicitation,
        now: Instant,
    ) -> Option<String> {
        let error = result.error()?;
        let started = match transport {
            TransportKind::Stdio => StartedBy::Client,
            TransportKind::Http => StartedBy::Operator,
        };
        let remedy = for_operator(error, started, elicitation)?;
        let withheld = self.0.lock().unwrap_or_else(PoisonError::into_inner).take(now)?;
        let reason = error.reason();
        let reason = elided(&reason, MAX_REASON);
        let tool = elided(result.tool(), 64);
        Some(format!("a call of `{tool}` failed: {reason}; {remedy}{withheld}"))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use palisade::{CallId, ErrorKind};

    #[test]
    fn flood_of_refusals_is_logged_once_a_second() {
        let log = OperatorLog::default();
        let denied = ToolResult::failure(CallId::new("c"), "write_file", ErrorKind::UserDenied);
        let start = Instant::now();
        let (transport, elicitation) = (TransportKind::Stdio, Elicitation::Declared);
        let line = |result: &ToolResult, now| log.line(result, transport, elicitation, now);
        let first = line(&denied, start).unwrap();
        assert!(first.starts_with("a call of `write_file` failed: the user denied"), "{first}");
        assert!(first.contains("`--allow CLASS`"), "{first}");
        let more = (0..100).filter(|_| line(&denied, start).is_some()).count();
        assert_eq!(more, 19);
        let later = line(&denied, start + Duration::from_secs(1)).unwrap();
        assert!(later.ends_with("(81 more since the last such line)"), "{later}");
        let cancelled = ToolResult::failure(CallId::new("c"), "t", ErrorKind::Cancelled);
        assert_eq!(line(&cancelled, start + Duration::from_secs(60)), None);
    }

    #[test]
    fn denial_of_an_operator_is_answered_with_no_advice_to_loosen() {
        let log = OperatorLog::default();
        let denied = ToolResult::failure(CallId::new("c"), "write_file", ErrorKind::UserDenied);
        for elicitation in [Elicitation::Undeclared, Elicitation::Unused] {
            let line = log.line(&denied, TransportKind::Http, elicitation, Instant::now());
            assert_eq!(line, None);
        }
    }
}
