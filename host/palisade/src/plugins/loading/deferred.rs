//! Compilation behind a watched scan: the scan registers the files that are ready and leaves the
//! others to these threads. The scan after their end takes the results.

use super::latest::failed;
use super::work::{Work, lock};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::Builder;

impl Work {
    /// Starts threads for the waiting files, unless enough run.
    pub(super) fn compile_deferred(self: &Arc<Self>) {
        loop {
            let mut background = lock(&self.background);
            if !background.wants_thread() {
                return;
            }
            background.threads = background.threads.saturating_add(1);
            drop(background);
            let work = self.clone();
            let thread = Builder::new().name("palisade-load".to_owned());
            if let Err(error) = thread.spawn(move || work.compile_waiting()) {
                tracing::error!("no thread to compile changed plugins: {error}");
                let mut background = lock(&self.background);
                background.threads = background.threads.saturating_sub(1);
                return background.note_missed();
            }
        }
    }

    fn compile_waiting(&self) {
        loop {
            let mut background = lock(&self.background);
            let Some((file, cancel)) = background.next(&self.cancel) else {
                background.threads = background.threads.saturating_sub(1);
                return;
            };
            drop(background);
            let key = file.key();
            let digest = file.file_digest.digest;
            let compiled = catch_unwind(AssertUnwindSafe(|| {
                self.compiled(&file.candidate, file.file_digest, file.before.as_ref(), &cancel)
            }));
            let latest = compiled.unwrap_or_else(|_| {
                let reason = "the host failed on it; the log has the details".to_owned();
                failed(None, Some(digest), reason)
            });
            lock(&self.background).end(key, &cancel, latest);
        }
    }
}
