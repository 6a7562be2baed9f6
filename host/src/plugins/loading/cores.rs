//! Work on every core, on threads of its own: the compiler's parent must not wait on a thread that drives others' futures.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::Builder;

/// Does this with each of these, and returns when all are done.
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
            // Where the system gives no more threads, those that there are do the work.
            if let Err(error) = Builder::new().name("palisade-load".to_owned()).spawn_scoped(scope, turns) {
                tracing::error!("no thread to load plugins: {error}");
            }
        }
    });
    // Where it gave none at all, this one does.
    turns();
}
