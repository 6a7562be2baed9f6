//! The log of connections and requests for which the server had no room.

use crate::rate_limit::{LineLimit, Rate};
use std::fmt::Display;
use std::net::IpAddr;
use std::time::Duration;
use tokio::time::Instant;

/// The rate of log lines: one in ten seconds.
const LOG: Rate = Rate::one_per(Duration::from_secs(10), 1);

/// The reason why a service had no room for a request, as an extension of its response.
#[derive(Debug, Clone)]
pub(crate) struct Overload(pub(crate) String);

/// The log of one kind of rejections, which a flood of them does not fill.
#[derive(Debug)]
pub(super) struct RejectionLog {
    /// The noun of the rejected thing with its article, such as "a request".
    subject: &'static str,
    limit: LineLimit,
}

impl RejectionLog {
    /// Creates the log for this subject, such as `a request`.
    pub(super) fn new(subject: &'static str, now: Instant) -> Self {
        Self { subject, limit: LineLimit::new(LOG, now) }
    }

    /// Logs a rejection, if the last line is old enough.
    pub(super) fn note(&mut self, from: IpAddr, rejection: &dyn Display, now: Instant) {
        if let Some(line) = self.line(from, rejection, now) {
            tracing::warn!("{line}");
        }
    }

    fn line(&mut self, from: IpAddr, rejection: &dyn Display, now: Instant) -> Option<String> {
        let withheld = self.limit.take(now)?;
        Some(format!("turned away {} from {from}: {rejection}{withheld}", self.subject))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::super::rejection::Rejection;
    use super::*;

    const FULL: Rejection = Rejection::AddressFull(256);
    const FROM: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    #[test]
    fn flood_of_connections_is_logged_once_in_ten_seconds() {
        let start = Instant::now();
        let mut log = RejectionLog::new("a connection", start);
        let first = log.line(FROM, &FULL, start).unwrap();
        assert!(first.starts_with("turned away a connection from 127.0.0.1: all 256 "), "{first}");
        assert!((0..50).all(|_| log.line(FROM, &FULL, start).is_none()));
        let later = log.line(FROM, &FULL, start + Duration::from_secs(10)).unwrap();
        assert!(later.ends_with("(50 more since the last such line)"), "{later}");
    }
}
