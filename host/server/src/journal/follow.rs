//! Follows a journal that another process writes.

use super::ids::EventId;
use super::readers::Readers;
use super::reads;
use super::writer::Shared;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often the file is looked at.
const EVERY: Duration = Duration::from_millis(100);

/// Looks for new events until the journal is closed.
pub(super) fn follow(readers: &Readers, shared: &Shared) {
    let mut known = *shared.newest.borrow();
    // Records made here are dropped. The queue ends the wait when it is closed.
    while !shared.queue.take(Instant::now(), EVERY).is_last {
        match readers.read_here(|conn| reads::events::newest(conn)) {
            Ok(newest) if newest > known => {
                known = newest;
                announce(shared, newest);
            }
            Ok(_) => {}
            Err(error) => tracing::debug!(%error, "the journal cannot be followed"),
        }
    }
}

fn announce(shared: &Shared, newest: EventId) {
    shared.ring.skip_to(newest);
    shared.newest.send_replace(newest);
}

/// Starts the thread that follows.
pub(super) fn spawn(
    readers: Arc<Readers>,
    shared: Arc<Shared>,
) -> std::io::Result<std::thread::JoinHandle<()>> {
    let thread = std::thread::Builder::new().name("journal-follow".to_owned());
    thread.spawn(move || follow(&readers, &shared))
}
