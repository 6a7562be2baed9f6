//! How many calls of a session run at once, in all and of each tool.

use std::collections::BTreeMap;
use tokio::sync::{Semaphore, SemaphorePermit};

/// The places in which a session's calls run.
#[derive(Debug)]
pub(crate) struct Slots {
    session: Option<Semaphore>,
    tools: BTreeMap<String, Semaphore>,
}

/// A call's place, free again when dropped.
#[derive(Debug)]
pub(crate) struct Admission<'a> {
    _tool: Option<SemaphorePermit<'a>>,
    _session: Option<SemaphorePermit<'a>>,
}

impl Slots {
    /// Without a cap, calls wait for nothing here.
    pub(crate) fn new(cap: Option<u32>, per_tool: &BTreeMap<String, u32>) -> Self {
        let places = |calls: u32| Semaphore::new(calls as usize);
        Self {
            session: cap.map(places),
            tools: per_tool.iter().map(|(tool, calls)| (tool.clone(), places(*calls))).collect(),
        }
    }

    /// Whether calls wait for a place in the session.
    pub(crate) fn is_capped(&self) -> bool {
        self.session.is_some()
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
