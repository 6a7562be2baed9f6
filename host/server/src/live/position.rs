//! Where a reader begins.

use crate::journal::{EventId, Journal};
use axum::http::HeaderMap;

/// Where a reader begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Position {
    /// After the newest event.
    Now,
    /// After this event.
    After(EventId),
}

impl Position {
    /// Returns the event after which to read.
    pub(super) fn in_journal(self, journal: &Journal) -> EventId {
        match self {
            Self::Now => *journal.newest().borrow(),
            Self::After(id) => id,
        }
    }
}

/// Reads where a reader begins from the header `Last-Event-ID`, which a browser sends when it
/// connects again, or else from the parameter `after`. An error names the part that is not valid.
pub(crate) fn position(headers: &HeaderMap, after: Option<&str>) -> Result<Position, &'static str> {
    let last = headers.get("last-event-id").map(|id| id.to_str().unwrap_or("?"));
    let parse = |id: &str| id.parse::<u64>().map(EventId::new).map(Position::After);
    match (last, after) {
        (Some(id), _) if !id.is_empty() => parse(id).map_err(|_| "the header `last-event-id`"),
        (_, None | Some("now")) => Ok(Position::Now),
        (_, Some(id)) => parse(id).map_err(|_| "`after`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn at(header: Option<&'static str>, after: Option<&str>) -> Result<Position, &'static str> {
        let mut headers = HeaderMap::new();
        if let Some(id) = header {
            headers.insert("last-event-id", HeaderValue::from_static(id));
        }
        position(&headers, after)
    }

    #[test]
    fn header_precedes_the_parameter() {
        let seven = Ok(Position::After(EventId::new(7)));
        assert_eq!(at(Some("7"), Some("now")), seven);
        assert_eq!(at(None, Some("7")), seven);
        assert_eq!(at(Some(""), Some("7")), seven);
        assert_eq!((at(None, None), at(None, Some("now"))), (Ok(Position::Now), Ok(Position::Now)));
        assert!(at(Some("x"), Some("7")).is_err() && at(None, Some("-1")).is_err());
        assert!(at(Some("18446744073709551616"), None).is_err());
    }
}
