//! A host with the parts that a test observes: its workspace, its confirmation queue and its
//! recorded events.

use std::sync::Arc;

use palisade::sandbox::CompileStrategy;
use palisade::{
    CacheMode, Call, CallId, Host, HostBuilder, Session, ToolResult, confirm::ConfirmationQueue,
    events::Event,
};

use crate::events::Recorder;
use crate::guest::{Guest, cache};
use crate::world::World;

/// Returns the builder of a host without compilations in the background, whose memory and time
/// would count as those of a call.
#[must_use]
pub fn host_builder() -> HostBuilder {
    Host::builder().compile_strategy(CompileStrategy::OptimizedOnly)
}

/// A host with its observers.
#[derive(Clone)]
pub struct Stage {
    /// The world that contains the workspace.
    pub world: Arc<World>,
    /// The host.
    pub host: Arc<Host>,
    /// The queue of pending confirmations.
    pub confirmations: ConfirmationQueue,
    /// The recorder of the host's events.
    pub recorder: Recorder,
}

impl Stage {
    /// Creates a host with the shipped tools and those of these guests; `change` configures it
    /// further.
    ///
    /// # Panics
    ///
    /// If the host cannot be built, or a plugin is rejected.
    #[must_use]
    #[track_caller]
    pub fn new(guests: &[Guest], change: impl FnOnce(HostBuilder) -> HostBuilder) -> Self {
        Self::with_recorder(Recorder::default(), guests, change)
    }

    /// Creates a host as [`new`](Self::new) does, with a recorder that can react to events.
    ///
    /// # Panics
    ///
    /// If the host cannot be built, or a plugin is rejected.
    #[must_use]
    #[track_caller]
    pub fn with_recorder(
        recorder: Recorder,
        guests: &[Guest],
        change: impl FnOnce(HostBuilder) -> HostBuilder,
    ) -> Self {
        let (world, confirmations) = (Arc::new(World::new()), ConfirmationQueue::default());
        let base = host_builder()
            .workspace(world.root())
            .cache(CacheMode::Directory(cache()))
            .confirmer(Arc::new(confirmations.clone()))
            .subscriber(Arc::new(recorder.clone()));
        let builder = guests.iter().fold(base, |builder, guest| builder.plugins(guest.directory()));
        let host = change(builder).build().expect("the host can be built");
        assert!(host.rejected().is_empty(), "a plugin was rejected: {:?}", host.rejected());
        Self { world, host: Arc::new(host), confirmations, recorder }
    }

    /// Creates a session with the host's own policy and caps.
    #[must_use]
    pub fn session(&self) -> Session {
        self.host.new_session("session-1").build()
    }

    /// Starts a call in a new task.
    #[must_use]
    pub fn begin(&self, session: &Session, call: Call) -> tokio::task::JoinHandle<ToolResult> {
        let (host, session) = (self.host.clone(), session.clone());
        tokio::spawn(async move { host.dispatch(&session, call).await })
    }

    /// Completes when this number of calls has reported its start.
    pub async fn started(&self, calls: usize) {
        self.recorder
            .until(|events| events.iter().filter(|event| reports_start(event)).count() >= calls)
            .await;
    }

    /// Returns the calls that have reported their start, in that order.
    #[must_use]
    pub fn which_started(&self) -> Vec<CallId> {
        let events = self.recorder.events();
        events
            .iter()
            .filter(|event| reports_start(event))
            .filter_map(Event::subject)
            .map(|s| s.call_id.clone())
            .collect()
    }

    /// Checks that this call had exactly one terminal event, which was its last event.
    ///
    /// # Panics
    ///
    /// If it had none or several, or another event followed.
    #[track_caller]
    pub fn ended_once(&self, call: &str) {
        let names = self.recorder.names_of(call);
        let ends = self.recorder.events_of(call).iter().filter(|event| event.is_terminal()).count();
        assert_eq!(ends, 1, "{call}: {names:?}");
        assert!(
            self.recorder.events_of(call).last().is_some_and(Event::is_terminal),
            "{call}: {names:?}"
        );
    }
}

/// Returns true if the event is a guest's report of its start.
#[must_use]
pub fn reports_start(event: &Event) -> bool {
    matches!(event, Event::OutputDelta(_, chunk) if chunk == "started")
}

/// Returns the error class of a result in the form of the JSON output; empty for a success.
#[must_use]
pub fn class(result: &ToolResult) -> &'static str {
    result.error().map_or("", |error| error.class().as_str())
}
