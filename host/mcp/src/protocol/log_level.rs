//! Maps the five log levels of plugins to the eight levels of the protocol.

#![expect(
    deprecated,
    reason = "messages that the next revision drops; clients of older revisions expect them"
)]

use palisade::execution::Severity;
use rmcp::model::LoggingLevel;

/// Returns the protocol's level.
pub(crate) fn log_level(severity: Severity) -> LoggingLevel {
    match severity {
        Severity::Trace | Severity::Debug => LoggingLevel::Debug,
        Severity::Info => LoggingLevel::Info,
        Severity::Warn => LoggingLevel::Warning,
        Severity::Error => LoggingLevel::Error,
    }
}

/// Returns true if a message of this severity reaches a client's minimum level.
pub(crate) fn reaches(severity: Severity, minimum: LoggingLevel) -> bool {
    rank(log_level(severity)) >= rank(minimum)
}

fn rank(level: LoggingLevel) -> u8 {
    match level {
        LoggingLevel::Debug => 0,
        LoggingLevel::Info => 1,
        LoggingLevel::Notice => 2,
        LoggingLevel::Warning => 3,
        LoggingLevel::Error => 4,
        LoggingLevel::Critical => 5,
        LoggingLevel::Alert => 6,
        LoggingLevel::Emergency => 7,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;

    #[test]
    fn a_client_hears_what_is_at_minimum_as_grave_as_it_asked_for() {
        assert!(reaches(Severity::Info, LoggingLevel::Info));
        assert!(reaches(Severity::Error, LoggingLevel::Debug));
        assert!(!reaches(Severity::Info, LoggingLevel::Notice));
        assert!(!reaches(Severity::Error, LoggingLevel::Critical));
    }
}
