//! The events of the journal itself, in the format of a host's events.

use super::record::{Importance, NewEvent};
use super::time::Timestamp;

/// The name of the event that says that others were lost.
pub const LOST: &str = "journal.lost";

/// The name of the event that says which calls of an ended process have no known end.
pub const RECOVERED: &str = "journal.recovered";

/// Returns the event that says how many events were lost before it.
pub(super) fn lost(events: u64, time: Timestamp) -> NewEvent {
    own(LOST, time, &format!("\"lost\":{events}"))
}

/// Returns the event that says how many calls have no known end.
pub(super) fn recovered(calls: usize, time: Timestamp) -> NewEvent {
    own(RECOVERED, time, &format!("\"unknown_calls\":{calls}"))
}

/// Returns the line of an event of the server itself: the keys that all events have, in their
/// order. `session` is JSON, and `more` is empty, or has further keys after a comma.
pub(crate) fn line(name: &str, time: Timestamp, session: &str, more: &str) -> String {
    format!(
        "{{\"v\":1,\"seq\":null,\"time\":\"{time}\",\"event\":\"{name}\",\"session_id\":{session},\
         \"turn_id\":null,\"tool_use_id\":null,\"tool_name\":null,\"side_effects\":null{more}}}"
    )
}

fn own(name: &str, time: Timestamp, more: &str) -> NewEvent {
    let line = line(name, time, "null", &format!(",{more}"));
    NewEvent {
        time,
        name: name.into(),
        session_id: None,
        call_id: None,
        call: None,
        importance: Importance::Ordinary,
        line: line.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_events_are_lines_like_others() {
        let event = lost(7, Timestamp::from_micros(0));
        assert_eq!(
            &*event.line,
            r#"{"v":1,"seq":null,"time":"1970-01-01T00:00:00.000000Z","event":"journal.lost","session_id":null,"turn_id":null,"tool_use_id":null,"tool_name":null,"side_effects":null,"lost":7}"#
        );
        let line: serde_json::Value =
            serde_json::from_str(&recovered(2, event.time).line).unwrap_or_default();
        assert_eq!(line["unknown_calls"], 2);
    }
}
