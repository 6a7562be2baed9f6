//! Forwards a running call's progress, output and log messages to its client, where the client
//! asked for them. Output goes with the progress messages, or otherwise with the log. While a call
//! waits for a confirmation, progress messages keep its client waiting too.

#![expect(
    deprecated,
    reason = "messages that the next revision drops; clients of older revisions expect them"
)]

use super::pending_output::PendingOutput;
use super::progress_throttle::ProgressThrottle;
use crate::protocol::log_level::{log_level, reaches};
use crate::rate_limit::{Rate, TokenBucket};
use palisade::CallId;
use palisade::events::{Envelope, Event, Events, Subscriber};
use palisade::execution::{Progress, Severity};
use palisade::tool::text::visible;
use rmcp::RoleServer;
use rmcp::model::{
    LoggingLevel, LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken,
};
use rmcp::service::Peer;
use serde_json::Value;
use std::future::pending;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// The maximum number of queued notifications of a call.
const MAX_QUEUED: usize = 64;
/// The severity of output in the log.
const OUTPUT_SEVERITY: Severity = Severity::Info;
/// The rate of log messages.
const LOG_RATE: Rate = Rate::per_second(20, 50);

/// The interval of progress messages while a call waits for a confirmation. Clients give up on a
/// silent call after 30 s or more.
const WAITING_INTERVAL: Duration = Duration::from_secs(10);

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
    /// The time from which the pending output may be sent. `None` without any.
    output_due: Option<Instant>,
    /// Set while the call waits for a confirmation.
    waiting: Option<Waiting>,
}

/// A call that waits for a confirmation.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    since: Instant,
    next: Instant,
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
            output_due: None,
            waiting: None,
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
        if let Some(text) = self.take_output() {
            let step = self.token.is_some().then(|| self.progress.output());
            self.send_output(peer, step, text).await;
        }
        if let Some(step) = self.progress.last() {
            self.send_progress(peer, step).await;
        }
    }

    /// Returns the next notification. Never completes without a subscription.
    async fn next(&mut self) -> CallNotification {
        let (due, waiting) = (self.output_due, self.waiting.map(|waiting| waiting.next));
        let Some(subscription) = &mut self.subscription else { return pending().await };
        tokio::select! {
            biased;
            Some(notification) = subscription.notifications.recv() => notification,
            () = until(due) => CallNotification::Output,
            () = until(waiting) => CallNotification::Waiting,
        }
    }

    fn take_output(&mut self) -> Option<String> {
        self.output_due = None;
        self.subscription.as_ref()?.output.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn queued(&mut self) -> Option<CallNotification> {
        self.subscription.as_mut()?.notifications.try_recv().ok()
    }

    /// Sends a notification within the rate limit.
    async fn send(&mut self, peer: &Peer<RoleServer>, notification: CallNotification) {
        let now = Instant::now();
        let is_output = matches!(notification, CallNotification::Output);
        match notification {
            CallNotification::Progress(step) => {
                // A client shows it to a person, maybe at a terminal.
                let step = Progress { message: step.message.as_deref().map(visible), ..step };
                if let Some(step) = self.progress.admit(step, now) {
                    self.send_progress(peer, step).await;
                }
            }
            CallNotification::Log(severity, text) if self.logs.take(now).is_ok() => {
                self.send_log(peer, severity, visible(&text)).await;
            }
            CallNotification::Asked => {
                self.waiting = Some(Waiting { since: now, next: now + WAITING_INTERVAL });
            }
            CallNotification::Answered => self.waiting = None,
            CallNotification::Waiting => self.send_waiting(peer, now).await,
            CallNotification::Log(..) | CallNotification::Output => {}
        }
        // A full queue drops the notification of output, but not the output itself.
        if is_output || (self.output_due.is_none() && self.has_output()) {
            self.send_pending_output(peer, now).await;
        }
    }

    fn has_output(&self) -> bool {
        let is_empty =
            |it: &Subscription| it.output.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
        self.subscription.as_ref().is_some_and(|it| !is_empty(it))
    }

    /// Sends the pending output, or keeps it until the rate limit has room.
    async fn send_pending_output(&mut self, peer: &Peer<RoleServer>, now: Instant) {
        if self.output_due.is_some_and(|due| due > now) {
            return;
        }
        let admitted = match self.token {
            Some(_) => self.progress.admit_output(now).map(Some),
            None => self.logs.take(now).map(|()| None),
        };
        match admitted {
            Ok(step) => {
                if let Some(text) = self.take_output() {
                    self.send_output(peer, step, text).await;
                }
            }
            Err(wait) => self.output_due = Some(now + wait),
        }
    }

    /// Sends output with a step of progress, or without one to the log.
    async fn send_output(&self, peer: &Peer<RoleServer>, step: Option<Progress>, text: String) {
        match step {
            Some(step) => {
                self.send_progress(peer, Progress { message: Some(text), ..step }).await;
            }
            None => self.send_log(peer, OUTPUT_SEVERITY, text).await,
        }
    }

    /// Tells the client that the call still waits.
    async fn send_waiting(&mut self, peer: &Peer<RoleServer>, now: Instant) {
        let Some(waiting) = &mut self.waiting else { return };
        waiting.next = now + WAITING_INTERVAL;
        let seconds = now.duration_since(waiting.since).as_secs();
        let text = format!("the call waits for its confirmation, for {seconds} s so far");
        if let Ok(step) = self.progress.admit_output(now) {
            self.send_progress(peer, Progress { message: Some(text), ..step }).await;
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
    /// There is pending output.
    Output,
    /// The call begins to wait for a confirmation.
    Asked,
    /// The call waits on.
    Waiting,
    /// The call no longer waits.
    Answered,
}

/// Completes at this time. Never completes without one.
async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => pending().await,
    }
}

/// The subscription to the events of one call.
struct Subscription {
    subscriber: Arc<dyn Subscriber>,
    notifications: mpsc::Receiver<CallNotification>,
    output: Arc<Mutex<PendingOutput>>,
}

impl Subscription {
    fn new(events: &Events, call: &CallId, requested: RequestedNotifications) -> Self {
        let (sender, notifications) = mpsc::channel(MAX_QUEUED);
        let output = Arc::<Mutex<PendingOutput>>::default();
        let subscriber: Arc<dyn Subscriber> = Arc::new(CallSubscriber {
            call: call.clone(),
            requested,
            notifications: sender,
            output: output.clone(),
        });
        events.subscribe(subscriber.clone());
        Self { subscriber, notifications, output }
    }
}

/// The event subscriber of one call. It runs on the call's thread and must not block, so that
/// notifications are dropped while the queue is full.
struct CallSubscriber {
    call: CallId,
    requested: RequestedNotifications,
    notifications: mpsc::Sender<CallNotification>,
    output: Arc<Mutex<PendingOutput>>,
}

impl CallSubscriber {
    fn wants_log(&self, severity: Severity) -> bool {
        self.requested.log.is_some_and(|minimum| reaches(severity, minimum))
    }

    /// Adds a chunk to the pending output. Returns the notification of it, unless one was sent
    /// before.
    fn add_output(&self, chunk: &str) -> Option<CallNotification> {
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = output.is_empty();
        output.push(chunk);
        is_first.then_some(CallNotification::Output)
    }
}

impl Subscriber for CallSubscriber {
    fn receive(&self, event: &Envelope) {
        // Another session may have a call of the same id.
        if !event.event.subject().is_some_and(|it| it.call_id.is_clone_of(&self.call)) {
            return;
        }
        let notification = match &event.event {
            Event::Progress(_, step) if self.requested.progress.is_some() => {
                CallNotification::Progress(step.clone())
            }
            Event::ConfirmationRequested(..) if self.requested.progress.is_some() => {
                CallNotification::Asked
            }
            Event::ConfirmationResolved(..) if self.requested.progress.is_some() => {
                CallNotification::Answered
            }
            Event::Log(_, severity, text) if self.wants_log(*severity) => {
                CallNotification::Log(*severity, text.clone())
            }
            Event::OutputDelta(_, chunk)
                if self.requested.progress.is_some() || self.wants_log(OUTPUT_SEVERITY) =>
            {
                match self.add_output(chunk) {
                    Some(notification) => notification,
                    None => return,
                }
            }
            _ => return,
        };
        let _ = self.notifications.try_send(notification);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use palisade::events::Subject;
    use std::time::SystemTime;

    fn logged(call_id: CallId) -> Envelope {
        let (parent, session_id, turn_id) = (None, None, None);
        let (tool, side_effects) = ("t".into(), None);
        let subject = Subject { call_id, parent, session_id, turn_id, tool, side_effects };
        let event = Event::Log(subject, Severity::Error, "its words".to_owned());
        Envelope { seq: 1, time: SystemTime::UNIX_EPOCH, event }
    }

    #[test]
    fn call_of_another_session_with_the_same_id_is_not_forwarded() {
        let own = CallId::new("mcp-0-1-1");
        let requested = RequestedNotifications { progress: None, log: Some(LoggingLevel::Debug) };
        let mut subscription = Subscription::new(&Events::new(Vec::new()), &own, requested);
        subscription.subscriber.receive(&logged(CallId::new(own.as_str())));
        assert!(subscription.notifications.try_recv().is_err());
        subscription.subscriber.receive(&logged(own));
        assert!(subscription.notifications.try_recv().is_ok());
    }
}
