//! A host with everything around it that a test wants to watch: its workspace, the desk where questions wait, and what is heard.

use std::sync::Arc;

use palisade::{CacheMode, Call, CallId, Desk, Event, Host, HostBuilder, Session, ToolResult};

use crate::events::Recorder;
use crate::guest::{Guest, cache};
use crate::world::World;

/// A host on its stage.
#[derive(Clone)]
pub struct Stage {
    /// Its workspace.
    pub world: Arc<World>,
    /// The host.
    pub host: Arc<Host>,
    /// Where its questions wait.
    pub desk: Desk,
    /// What is heard of it.
    pub recorder: Recorder,
}

impl Stage {
    /// The shipped tools and those of these guests, changed as the test wants.
    ///
    /// # Panics
    ///
    /// Where the host cannot be built, or a plugin is rejected.
    #[must_use]
    #[track_caller]
    pub fn new(guests: &[Guest], change: impl FnOnce(HostBuilder) -> HostBuilder) -> Self {
        Self::hearing(Recorder::default(), guests, change)
    }

    /// As [`new`](Self::new), with a recorder that can act on what it hears.
    ///
    /// # Panics
    ///
    /// Where the host cannot be built, or a plugin is rejected.
    #[must_use]
    #[track_caller]
    pub fn hearing(recorder: Recorder, guests: &[Guest], change: impl FnOnce(HostBuilder) -> HostBuilder) -> Self {
        let (world, desk) = (Arc::new(World::new()), Desk::default());
        let base = Host::builder()
            .workspace(world.root())
            .cache(CacheMode::Directory(cache()))
            .confirmer(Arc::new(desk.clone()))
            .subscriber(Arc::new(recorder.clone()));
        let builder = guests.iter().fold(base, |builder, guest| builder.plugins(guest.directory()));
        let host = change(builder).build().expect("the host can be built");
        assert!(host.rejected().is_empty(), "a plugin was rejected: {:?}", host.rejected());
        Self { world, host: Arc::new(host), desk, recorder }
    }

    /// A session with the host's own policy and caps.
    #[must_use]
    pub fn session(&self) -> Session {
        self.host.new_session("session-1").build()
    }

    /// Begins a call in a task of its own.
    #[must_use]
    pub fn begin(&self, session: &Session, call: Call) -> tokio::task::JoinHandle<ToolResult> {
        let (host, session) = (self.host.clone(), session.clone());
        tokio::spawn(async move { host.dispatch(&session, call).await })
    }

    /// Completes when so many calls have said that they have started.
    pub async fn started(&self, calls: usize) {
        self.recorder.until(|events| events.iter().filter(|event| says_started(event)).count() >= calls).await;
    }

    /// The calls that have said that they have started, in the order in which they did.
    #[must_use]
    pub fn which_started(&self) -> Vec<CallId> {
        let events = self.recorder.events();
        events
            .iter()
            .filter(|event| says_started(event))
            .filter_map(Event::subject)
            .map(|s| s.call_id.clone())
            .collect()
    }

    /// Checks from all that was heard that this call had exactly one terminal event, and that it was the last.
    ///
    /// # Panics
    ///
    /// Where it had not.
    #[track_caller]
    pub fn ended_once(&self, call: &str) {
        let names = self.recorder.names_of(call);
        let ends = self.recorder.of(call).iter().filter(|event| event.is_terminal()).count();
        assert_eq!(ends, 1, "{call}: {names:?}");
        assert!(self.recorder.of(call).last().is_some_and(Event::is_terminal), "{call}: {names:?}");
    }
}

/// Whether a guest says that it has started.
#[must_use]
pub fn says_started(event: &Event) -> bool {
    matches!(event, Event::OutputDelta(_, chunk) if chunk == "started")
}

/// The class of a result's error, as scripts see it; empty for a success.
#[must_use]
pub fn class(result: &ToolResult) -> &'static str {
    result.error().map_or("", |error| error.class().as_str())
}
