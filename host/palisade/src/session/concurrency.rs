//! Limits the concurrent calls of a session, in total and per tool.

use crate::registry::Registered;
use std::collections::BTreeMap;
use tokio::sync::{Semaphore, SemaphorePermit};

/// The scope of a concurrency limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConcurrencyLimit {
    /// All calls of the session.
    Session(u32),
    /// The calls of one message, independently of other messages.
    Message(u32),
}

/// The slots that a call takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slots {
    /// One of its tool, if the tool has a limit.
    Tool,
    /// One of its tool, and one of the session.
    ToolAndSession,
}

/// The semaphores of a session.
#[derive(Debug)]
pub(crate) struct ConcurrencyLimits {
    session: Option<Semaphore>,
    /// The limit of one message, if there is no limit for the session.
    message: usize,
    tools: BTreeMap<String, Semaphore>,
}

/// The slots of a call, released on drop.
#[derive(Debug)]
pub(crate) struct SessionPermits<'a> {
    _tool: Option<SemaphorePermit<'a>>,
    _session: Option<SemaphorePermit<'a>>,
}

impl ConcurrencyLimits {
    pub(crate) fn new(limit: ConcurrencyLimit, per_tool: &BTreeMap<String, u32>) -> Self {
        let permits = |calls: u32| Semaphore::new(calls as usize);
        let (ConcurrencyLimit::Session(calls) | ConcurrencyLimit::Message(calls)) = limit;
        Self {
            session: matches!(limit, ConcurrencyLimit::Session(_)).then(|| permits(calls)),
            message: calls as usize,
            tools: per_tool.iter().map(|(tool, calls)| (tool.clone(), permits(*calls))).collect(),
        }
    }

    /// Returns the names of the tools with a limit of their own.
    pub(crate) fn names(&self) -> impl Iterator<Item = &String> {
        self.tools.keys()
    }

    /// Creates the semaphore for the calls of one message, if the session has no limit of its own.
    pub(crate) fn for_message(&self) -> Option<Semaphore> {
        self.session.is_none().then(|| Semaphore::new(self.message))
    }

    /// Takes the slots if they are free.
    pub(crate) fn try_admit(&self, tool: &Registered, slots: Slots) -> Option<SessionPermits<'_>> {
        let tool = tool.rule_in(&self.tools).map(Semaphore::try_acquire).transpose().ok()?;
        let session = self.session(slots).map(Semaphore::try_acquire).transpose().ok()?;
        Some(SessionPermits { _tool: tool, _session: session })
    }

    /// Waits for the slots in FIFO order. The tool's slot comes first, so that a call waiting
    /// for it does not hold a session slot.
    pub(crate) async fn admit(&self, tool: &Registered, slots: Slots) -> SessionPermits<'_> {
        SessionPermits {
            _tool: acquire(tool.rule_in(&self.tools)).await,
            _session: acquire(self.session(slots)).await,
        }
    }

    fn session(&self, slots: Slots) -> Option<&Semaphore> {
        self.session.as_ref().filter(|_| slots == Slots::ToolAndSession)
    }
}

/// Waits for a slot. The semaphores are never closed, so this always succeeds.
async fn acquire(semaphore: Option<&Semaphore>) -> Option<SemaphorePermit<'_>> {
    match semaphore {
        Some(semaphore) => semaphore.acquire().await.ok(),
        None => None,
    }
}
