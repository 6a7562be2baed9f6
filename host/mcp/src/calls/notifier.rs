//! Forwards a running call's progress and log messages to its client, where the client asked for
//! them.

#![expect(
    deprecated,
    reason = "messages that the next revision drops; clients of older revisions expect them"
)]

use super::progress_throttle::ProgressThrottle;
use crate::protocol::log_level::{log_level, reaches};
use crate::rate_limit::{Rate, TokenBucket};
use palisade::CallId;
use palisade::events::{Envelope, Event, Events, Subscriber};
use palisade::execution::{Progress, Severity};
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

/// The maximum number of queued notifications of a call.
const MAX_QUEUED: usize = 64;
/// The rate of log messages.
const LOG_RATE: Rate = Rate::per_second(20, 50);

/// The notifications that a client requested for a call.
#[derive(Debug, Clone)]
pub(crate) struct RequestedNotifications {
    /// The token of progress notifications.
    pub(crate) progress: Option<ProgressToken>,
    /// The minimum level of log messages.
    pub(crate) log: Option<LoggingLevel>,
}

/// The notifier of one call. Dropping it unsubscribes.
pub(crate) struct Notifier {
    events: Events,
    /// `None` if the client requested no notifications.
    subscription: Option<Subscription>,
    token: Option<ProgressToken>,
    logger: String,
    progress: ProgressThrottle,
    logs: TokenBucket,
}

impl Notifier {
    /// Subscribes to a call's events, if the client requested any notifications.
    pub(crate) fn new(
        events: &Events,
        call: &CallId,
        requested: RequestedNotifications,
        logger: &str,
    ) -> Self {
        let now = Instant::now();
        let token = requested.progress.clone();
        let is_requested = token.is_some() || requested.log.is_some();
        Self {
            events: events.clone(),
            subscription: is_requested.then(|| Subscription::new(events, call, requested)),
            token,
            logger: logger.to_owned(),
            progress: ProgressThrottle::new(now),
            logs: TokenBucket::new(LOG_RATE, now),
        }
    }

    /// Sends each notification of the call until the call is over, and then those that are queued:
    /// the protocol wants them before the response. A cancelled call sends no more.
    pub(crate) async fn run(
        mut self,
        peer: &Peer<RoleServer>,
        cancelled: &CancellationToken,
        over: &Notify,
    ) {
        loop {
            // Only the wait for the next notification ends with the call: one that was taken from
            // the queue would be lost.
            let notification = tokio::select! {
                biased;
                notification = self.next() => notification,
                () = over.notified() => break,
            };
            if !cancelled.is_cancelled() {
                self.send(peer, notification).await;
            }
        }
        if cancelled.is_cancelled() {
            return;
        }
        while let Some(notification) = self.queued() {
            self.send(peer, notification).await;
        }
        if let Some(step) = self.progress.last() {
            self.send_progress(peer, step).await;
        }
    }

    /// Returns the next notification. Never completes without a subscription.
    async fn next(&mut self) -> CallNotification {
        if let Some(subscription) = &mut self.subscription
            && let Some(notification) = subscription.notifications.recv().await
        {
            return notification;
        }
        std::future::pending().await
    }

    fn queued(&mut self) -> Option<CallNotification> {
        self.subscription.as_mut()?.notifications.try_recv().ok()
    }

    /// Sends a notification within the rate limit.
    async fn send(&mut self, peer: &Peer<RoleServer>, notification: CallNotification) {
        let now = Instant::now();
        match notification {
            CallNotification::Progress(step) => {
                if let Some(step) = self.progress.admit(step, now) {
                    self.send_progress(peer, step).await;
                }
            }
            CallNotification::Log(severity, text) if self.logs.take(now).is_ok() => {
                self.send_log(peer, severity, text).await;
            }
            CallNotification::Log(..) => {}
        }
    }

    async fn send_progress(&self, peer: &Peer<RoleServer>, step: Progress) {
        let Some(token) = self.token.clone() else { return };
        let mut params = ProgressNotificationParam::new(token, step.done);
        params.total = step.total.filter(|total| total.is_finite());
        params.message = step.message;
        let _ = peer.notify_progress(params).await;
    }

    async fn send_log(&self, peer: &Peer<RoleServer>, severity: Severity, text: String) {
        let level = log_level(severity);
        let params = LoggingMessageNotificationParam::new(level, Value::String(text));
        let _ = peer.notify_logging_message(params.with_logger(self.logger.as_str())).await;
    }
}

impl Drop for Notifier {
    fn drop(&mut self) {
        if let Some(subscription) = &self.subscription {
            self.events.unsubscribe(&subscription.subscriber);
        }
    }
}

/// A notification of a tool.
#[derive(Debug)]
enum CallNotification {
    Progress(Progress),
    Log(Severity, String),
}

/// The subscription to the events of one call.
struct Subscription {
    subscriber: Arc<dyn Subscriber>,
    notifications: mpsc::Receiver<CallNotification>,
}

impl Subscription {
    fn new(events: &Events, call: &CallId, requested: RequestedNotifications) -> Self {
        let (sender, notifications) = mpsc::channel(MAX_QUEUED);
        let subscriber: Arc<dyn Subscriber> =
            Arc::new(CallSubscriber { call: call.clone(), requested, notifications: sender });
        events.subscribe(subscriber.clone());
        Self { subscriber, notifications }
    }
}

/// The event subscriber of one call. It runs on the call's thread and must not block, so that
/// notifications are dropped while the queue is full.
struct CallSubscriber {
    call: CallId,
    requested: RequestedNotifications,
    notifications: mpsc::Sender<CallNotification>,
}

impl Subscriber for CallSubscriber {
    fn receive(&self, event: &Envelope) {
        if event.event.subject().is_none_or(|subject| subject.call_id != self.call) {
            return;
        }
        let notification = match &event.event {
            Event::Progress(_, step) if self.requested.progress.is_some() => {
                CallNotification::Progress(step.clone())
            }
            Event::Log(_, severity, text)
                if self.requested.log.is_some_and(|minimum| reaches(*severity, minimum)) =>
            {
                CallNotification::Log(*severity, text.clone())
            }
            _ => return,
        };
        let _ = self.notifications.try_send(notification);
    }
}
