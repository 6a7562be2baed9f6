//! Maps the five log levels of plugins to the eight levels of the protocol.

#![expect(
    deprecated,
    reason = "what the next revision will not have, the clients of the older ones still expect"
)]

use palisade::execution::Severity;
use rmcp::model::LoggingLevel;

/// Returns the protocol's level.
pub(super) fn level(severity: Severity) -> LoggingLevel {
    match severity {
        Severity::Trace | Severity::Debug => LoggingLevel::Debug,
        Severity::Info => LoggingLevel::Info,
        Severity::Warn => LoggingLevel::Warning,
        Severity::Error => LoggingLevel::Error,
    }
}

/// Returns true if a message of this severity reaches a client's minimum level.
pub(super) fn is_wanted(severity: Severity, least: LoggingLevel) -> bool {
    rank(level(severity)) >= rank(least)
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
    fn log_messages_respect_the_requested_level() {
        assert!(is_wanted(Severity::Info, LoggingLevel::Info));
        assert!(is_wanted(Severity::Error, LoggingLevel::Debug));
        assert!(!is_wanted(Severity::Info, LoggingLevel::Notice));
        assert!(!is_wanted(Severity::Error, LoggingLevel::Critical));
    }
}
