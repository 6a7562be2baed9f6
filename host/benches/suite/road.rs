//! The same calls through Palisade: validation, path check, policy, guard, limits and an event subscriber included.

use palisade::{Envelope, Host, Subscriber, json};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A host with a listener, so that events are built and sent.
pub(crate) struct Road(Host);

struct Counting(AtomicU64);

impl Subscriber for Counting {
    fn receive(&self, _: &Envelope) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Road {
    pub(crate) fn new(workspace: &Path) -> Self {
        let host = Host::builder()
            .workspace(workspace)
            .plugin_file(palisade_tests::guest::BENCH_CALLS.file())
            .subscriber(Arc::new(Counting(AtomicU64::new(0))))
            .build();
        Self(host.expect("a host"))
    }

    pub(crate) async fn call(&self, tool: &str, input: &str) -> usize {
        let result = self.0.call(tool, input, json!({})).await;
        assert!(result.is_success(), "{result}");
        result.output().map_or(0, |text| text.len())
    }
}
