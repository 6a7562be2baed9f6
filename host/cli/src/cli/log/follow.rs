//! Goes on with the calls that end, as another process records them.

use super::{Args, failed, print};
use crate::cli::exit::{Exit, Failure};
use crate::cli::output::Reader;
use palisade_server::journal::{CallFilter, CallRef, EventFilter, EventId, Journal, StoredEvent};
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
            if let Some(page) = page.filter(|page| filter.selects(page))
                && print(&page.call, args)? == Reader::Gone
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
