//! Runs work on all cores. It uses separate threads, because waiting for the compiler's process
//! must not block a thread that drives futures.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::Builder;

/// Applies a function to each item and waits for all of them.
pub(super) fn on_every_core<T: Sync>(items: &[T], work: impl Fn(usize, &T) + Sync) {
    if items.is_empty() {
        return;
    }
    let next = AtomicUsize::new(0);
    let turns = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else { return };
            work(index, item);
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(items.len());
    std::thread::scope(|scope| {
        for _ in 0..workers {
            // If a thread cannot be started, the others do its work.
            if let Err(error) =
                Builder::new().name("palisade-load".to_owned()).spawn_scoped(scope, turns)
            {
                tracing::error!("no thread to load plugins: {error}");
            }
        }
    });
    // If no thread could be started, this one does the work.
    turns();
}
