//! Goes on with the calls that end, as another process records them.

use super::{Args, failed, print};
use crate::cli::exit::{Exit, Failure};
use crate::cli::output::Reader;
use palisade_server::journal::{
    CallFilter, CallRef, CallRow, EventFilter, EventId, Journal, StoredEvent,
};
use std::time::Duration;

/// The wait between two looks at the journal.
const LOOK: Duration = Duration::from_millis(200);
/// The number of events of one look.
const EVENTS: usize = 512;

/// Prints each call that ends after this event, until the reader of the output is gone.
pub(super) async fn follow(
    journal: &Journal,
    mut after: EventId,
    filter: &CallFilter,
    args: &Args,
) -> Result<Exit, Failure> {
    let all = EventFilter::default();
    loop {
        let read = journal.events_after(after, &all, EVENTS).await;
        let read = read.map_err(|error| failed(&error))?;
        for event in read.events.iter().filter(|event| is_end(event)) {
            let Some(key) = event.call else { continue };
            let page = journal.call(CallRef::Key(key)).await.map_err(|error| failed(&error))?;
            let row = page.map(|page| page.call).filter(|row| matches(row, filter));
            if let Some(row) = row
                && print(&row, args)? == Reader::Gone
            {
                return Ok(Exit::Ok);
            }
        }
        let is_idle = read.scanned_to == after;
        after = read.scanned_to;
        if is_idle {
            tokio::time::sleep(LOOK).await;
        }
    }
}

fn is_end(event: &StoredEvent) -> bool {
    matches!(&*event.name, "tool.completed" | "tool.failed" | "tool.input_invalid")
}

/// Returns true if a call passes the filter of the options.
fn matches(row: &CallRow, filter: &CallFilter) -> bool {
    fn is(wanted: Option<&str>, value: Option<&str>) -> bool {
        wanted.is_none_or(|wanted| value == Some(wanted))
    }
    let contains = |text: &str| {
        let text = text.to_lowercase();
        let mut parts = [Some(row.tool.as_str()), row.input_start.as_deref()].into_iter().flatten();
        parts.any(|part| part.to_lowercase().contains(&text))
    };
    is(filter.tool.as_deref(), Some(&row.tool))
        && is(filter.class.as_deref(), row.class.as_deref())
        && is(filter.session_id.as_deref(), row.session_id.as_deref())
        && is(filter.error_class.as_deref(), row.error_class.as_deref())
        && filter.state.is_none_or(|state| row.state == state)
        && filter.since.is_none_or(|since| row.created >= since)
        && filter.text.as_deref().is_none_or(contains)
}
