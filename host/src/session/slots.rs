//! How many calls of a session run at once, in all and of each tool.

use std::collections::BTreeMap;
use tokio::sync::{Semaphore, SemaphorePermit};

/// For what a cap counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cap {
    /// All calls of the session.
    OfSession(u32),
    /// The calls of one message: messages know nothing of each other.
    OfMessage(u32),
}

/// The places in which a session's calls run.
#[derive(Debug)]
pub(crate) struct Slots {
    session: Option<Semaphore>,
    /// How many calls of one message run at once, where calls know no cap among themselves.
    message: usize,
    tools: BTreeMap<String, Semaphore>,
}

/// A call's place, free again when dropped.
#[derive(Debug)]
pub(crate) struct Admission<'a> {
    _tool: Option<SemaphorePermit<'a>>,
    _session: Option<SemaphorePermit<'a>>,
}

impl Slots {
    pub(crate) fn new(cap: Cap, per_tool: &BTreeMap<String, u32>) -> Self {
        let places = |calls: u32| Semaphore::new(calls as usize);
        let (Cap::OfSession(calls) | Cap::OfMessage(calls)) = cap;
        Self {
            session: matches!(cap, Cap::OfSession(_)).then(|| places(calls)),
            message: calls as usize,
            tools: per_tool.iter().map(|(tool, calls)| (tool.clone(), places(*calls))).collect(),
        }
    }

    /// The places for the calls of one message, where the session has none for all of its calls.
    pub(crate) fn for_message(&self) -> Option<Semaphore> {
        self.session.is_none().then(|| Semaphore::new(self.message))
    }

    /// A place, if one is free now.
    pub(crate) fn try_admit(&self, tool: &str) -> Option<Admission<'_>> {
        let tool = self.tools.get(tool).map(Semaphore::try_acquire).transpose().ok()?;
        let session = self.session.as_ref().map(Semaphore::try_acquire).transpose().ok()?;
        Some(Admission { _tool: tool, _session: session })
    }

    /// A place, once one is free: first the tool's own, so that a call which waits for that takes no other call's place meanwhile. First come, first served.
    pub(crate) async fn admit(&self, tool: &str) -> Admission<'_> {
        Admission { _tool: acquire(self.tools.get(tool)).await, _session: acquire(self.session.as_ref()).await }
    }
}

/// The semaphores are never closed, so that there always is a permit in the end.
async fn acquire(places: Option<&Semaphore>) -> Option<SemaphorePermit<'_>> {
    match places {
        Some(places) => places.acquire().await.ok(),
        None => None,
    }
}
