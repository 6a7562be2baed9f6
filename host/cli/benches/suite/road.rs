//! The same calls through Palisade, including validation, path check, policy, guard, limits and an
//! event subscriber.

use crate::world::World;
use palisade::{
    BuildError, Host, HostBuilder,
    events::{Envelope, Event, Subscriber},
    json,
    plugins::Shipped,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A host with a subscriber, so that events are built and sent.
pub(crate) struct Road {
    pub(crate) host: Host,
    heard: Arc<Heard>,
}

/// Counts the events, and the guests that have emitted output.
#[derive(Default)]
struct Heard {
    events: AtomicU64,
    guests: AtomicU64,
}

impl Subscriber for Heard {
    fn receive(&self, told: &Envelope) {
        self.events.fetch_add(1, Ordering::Relaxed);
        if matches!(told.event, Event::OutputDelta(..)) {
            self.guests.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Road {
    /// Returns a host with the shipped plugins and the benchmark's own.
    pub(crate) fn new(world: &World) -> Self {
        let own = palisade_tests::guest::BENCH_CALLS.file();
        Self::with(world.host().shipped(Shipped::Included).plugin_file(own))
    }

    /// Returns a host that only loads the plugin of one tool: under callgrind, compiling a plugin
    /// takes minutes.
    pub(crate) fn of_one_tool(world: &World, tool: &str) -> Self {
        let own = palisade_tests::guest::BENCH_CALLS.file();
        let host = world.host().shipped(Shipped::Included).plugin_file(own);
        Self::made(host, |host| host.build_for(tool))
    }

    /// Builds a host.
    pub(crate) fn with(host: HostBuilder) -> Self {
        Self::made(host, HostBuilder::build)
    }

    fn made(
        host: HostBuilder,
        build: impl FnOnce(HostBuilder) -> Result<Host, BuildError>,
    ) -> Self {
        let heard = Arc::new(Heard::default());
        let host = build(host.subscriber(heard.clone())).expect("a host");
        assert!(host.rejected().is_empty(), "{:?}", host.rejected());
        Self { host, heard }
    }

    /// Calls a tool and returns the length of its output.
    pub(crate) async fn call(&self, tool: &str, input: &str) -> usize {
        let result = self.host.call(tool, input, json!({})).await;
        assert!(result.is_success(), "{result}");
        result.output().map_or(0, |text| text.len())
    }

    /// Returns the number of guests that have emitted output.
    pub(crate) fn started(&self) -> u64 {
        self.heard.guests.load(Ordering::Relaxed)
    }
}
