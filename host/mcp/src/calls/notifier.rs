//! Forwards a running call's progress and log messages to its client, where the client asked for
//! them.

#![expect(
    deprecated,
    reason = "what the next revision will not have, the clients of the older ones still expect"
)]

use crate::calls::progress_throttle::Pace;
use crate::protocol::log_level::{is_wanted, level};
use crate::rate_limit::{Rate, TokenBucket};
use palisade::events::{Envelope, Event, Events, Subscriber};
use palisade::execution::{Progress, Severity};
use palisade::tool::CallId;
use rmcp::RoleServer;
use rmcp::model::{
    LoggingLevel, LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken,
};
use rmcp::service::Peer;
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The maximum number of queued messages of a call.
const WAITING: usize = 64;
/// The rate of log messages.
const LOGS: Rate = Rate::per_second(20, 50);

/// The notifications that a client requested for a call.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    /// The token of progress notifications.
    pub(crate) progress: Option<ProgressToken>,
    /// The minimum level of log messages.
    pub(crate) log: Option<LoggingLevel>,
}

/// A notification of a tool.
#[derive(Debug)]
pub(crate) enum Said {
    Progress(Progress),
    Log(Severity, String),
}

/// The event subscriber of one call. It runs on the call's thread and must not block, so that
/// messages are dropped while the queue is full.
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
            Event::Progress(_, step) if self.wanted.progress.is_some() => {
                Said::Progress(step.clone())
            }
            Event::Log(_, severity, text)
                if self.wanted.log.is_some_and(|least| is_wanted(*severity, least)) =>
            {
                Said::Log(*severity, text.clone())
            }
            _ => return,
        };
        let _ = self.heard.try_send(said);
    }
}

/// The notifier of one call. Dropping it unsubscribes.
pub(crate) struct Voice {
    events: Events,
    /// `None` if the client requested no notifications.
    listens: Option<(Arc<dyn Subscriber>, mpsc::Receiver<Said>)>,
    token: Option<ProgressToken>,
    logger: String,
    pace: Pace,
    logs: TokenBucket,
}

impl Voice {
    /// Subscribes to a call's events, if the client requested any notifications.
    pub(crate) fn of(events: &Events, call: &CallId, wanted: Wanted, logger: &str) -> Self {
        let token = wanted.progress.clone();
        let is_wanted = token.is_some() || wanted.log.is_some();
        let listens = is_wanted.then(|| {
            let (send, heard) = mpsc::channel(WAITING);
            let ear: Arc<dyn Subscriber> =
                Arc::new(Ear { call: call.clone(), wanted, heard: send });
            events.subscribe(ear.clone());
            (ear, heard)
        });
        let (now, logger) = (Instant::now(), logger.to_owned());
        let (pace, logs) = (Pace::new(now), TokenBucket::new(LOGS, now));
        Self { events: events.clone(), listens, token, logger, pace, logs }
    }

    /// Sends each notification of the call until the call is over, and then those that are queued:
    /// the protocol wants them before the response. A cancelled call sends no more.
    pub(crate) async fn speak(
        mut self,
        peer: &Peer<RoleServer>,
        cancelled: &CancellationToken,
        over: &Notify,
    ) {
        loop {
            // Only the wait for the next notification ends with the call: one that was taken from
            // the queue would be lost.
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

    /// Returns the next notification. Never completes without a subscription.
    async fn next(&mut self) -> Said {
        if let Some((_, heard)) = &mut self.listens
            && let Some(said) = heard.recv().await
        {
            return said;
        }
        std::future::pending().await
    }

    /// Forwards a notification within the rate limit.
    async fn tell(&mut self, peer: &Peer<RoleServer>, said: Said) {
        let now = Instant::now();
        match said {
            Said::Progress(step) => {
                if let Some(step) = self.pace.admit(step, now) {
                    self.tell_step(peer, step).await;
                }
            }
            Said::Log(severity, text) if self.logs.take(now).is_ok() => {
                self.tell_log(peer, severity, text).await;
            }
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
