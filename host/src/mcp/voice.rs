//! What a running call says to its client: progress, where the client asked for it, and the tool's log.

#![expect(deprecated, reason = "what the next revision will not have, the clients of the older ones still expect")]

use super::bucket::Bucket;
use super::logging::{is_wanted, level};
use super::progress::Pace;
use crate::events::{Envelope, Event, Events, Subscriber};
use crate::execution::{Progress, Severity};
use crate::tool::CallId;
use rmcp::RoleServer;
use rmcp::model::{LoggingLevel, LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken};
use rmcp::service::Peer;
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// What a call may have said that was not sent yet.
const WAITING: usize = 64;
/// Messages that are sent at once, and in each second after that.
const LOGS: (u32, u32) = (50, 20);

/// What a client wants to hear of a call.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    /// Under which it wants to hear of progress.
    pub(super) progress: Option<ProgressToken>,
    /// The least grave message of the log that it wants.
    pub(super) log: Option<LoggingLevel>,
}

/// Something that a tool says while it runs.
#[derive(Debug)]
pub(super) enum Said {
    Progress(Progress),
    Log(Severity, String),
}

/// Listens to one call. Called on its thread: what finds no place at once is left out.
struct Ear {
    call: CallId,
    wanted: Wanted,
    heard: mpsc::Sender<Said>,
}

impl Subscriber for Ear {
    fn receive(&self, event: &Envelope) {
        if event.event.subject().is_none_or(|subject| subject.call_id != self.call) {
            return;
        }
        let said = match &event.event {
            Event::Progress(_, step) if self.wanted.progress.is_some() => Said::Progress(step.clone()),
            Event::Log(_, severity, text) if self.wanted.log.is_some_and(|least| is_wanted(*severity, least)) => {
                Said::Log(*severity, text.clone())
            }
            _ => return,
        };
        let _ = self.heard.try_send(said);
    }
}

/// The way from a call to its client. Dropped with the call, after which nothing is said.
pub(super) struct Voice {
    events: Events,
    /// None where the client wants to hear nothing.
    listens: Option<(Arc<dyn Subscriber>, mpsc::Receiver<Said>)>,
    token: Option<ProgressToken>,
    logger: String,
    pace: Pace,
    logs: Bucket,
}

impl Voice {
    /// Listens to a call from now on, if its client wants to hear anything.
    pub(super) fn of(events: &Events, call: &CallId, wanted: Wanted, logger: &str) -> Self {
        let token = wanted.progress.clone();
        let is_wanted = token.is_some() || wanted.log.is_some();
        let listens = is_wanted.then(|| {
            let (send, heard) = mpsc::channel(WAITING);
            let ear: Arc<dyn Subscriber> = Arc::new(Ear { call: call.clone(), wanted, heard: send });
            events.subscribe(ear.clone());
            (ear, heard)
        });
        let (now, logger) = (Instant::now(), logger.to_owned());
        let (pace, logs) = (Pace::new(now), Bucket::new(LOGS.0, LOGS.1, now));
        Self { events: events.clone(), listens, token, logger, pace, logs }
    }

    /// Passes on each notification of the call until the call is over, and then the rest: the answer comes after all of
    /// them. A cancelled call sends no more.
    pub(super) async fn speak(mut self, peer: &Peer<RoleServer>, cancelled: &CancellationToken, over: &Notify) {
        loop {
            // A message that was taken is sent whole: only the wait for the next one ends with the call.
            let said = tokio::select! {
                biased;
                said = self.next() => said,
                () = over.notified() => break,
            };
            if !cancelled.is_cancelled() {
                self.tell(peer, said).await;
            }
        }
        if cancelled.is_cancelled() {
            return;
        }
        while let Some(said) = self.listens.as_mut().and_then(|(_, heard)| heard.try_recv().ok()) {
            self.tell(peer, said).await;
        }
        if let Some(step) = self.pace.last() {
            self.tell_step(peer, step).await;
        }
    }

    /// What the call says next; never comes back where nobody listens.
    async fn next(&mut self) -> Said {
        if let Some((_, heard)) = &mut self.listens
            && let Some(said) = heard.recv().await
        {
            return said;
        }
        std::future::pending().await
    }

    /// Passes on what the call has said, if it is not too much.
    async fn tell(&mut self, peer: &Peer<RoleServer>, said: Said) {
        let now = Instant::now();
        match said {
            Said::Progress(step) => {
                if let Some(step) = self.pace.admit(step, now) {
                    self.tell_step(peer, step).await;
                }
            }
            Said::Log(severity, text) if self.logs.take(now) => self.tell_log(peer, severity, text).await,
            Said::Log(..) => {}
        }
    }

    async fn tell_step(&self, peer: &Peer<RoleServer>, step: Progress) {
        let Some(token) = self.token.clone() else { return };
        let mut told = ProgressNotificationParam::new(token, step.done);
        (told.total, told.message) = (step.total.filter(|total| total.is_finite()), step.message);
        let _ = peer.notify_progress(told).await;
    }

    async fn tell_log(&self, peer: &Peer<RoleServer>, severity: Severity, text: String) {
        let told = LoggingMessageNotificationParam::new(level(severity), Value::String(text));
        let _ = peer.notify_logging_message(told.with_logger(self.logger.as_str())).await;
    }
}

impl Drop for Voice {
    fn drop(&mut self) {
        if let Some((ear, _)) = &self.listens {
            self.events.unsubscribe(ear);
        }
    }
}
