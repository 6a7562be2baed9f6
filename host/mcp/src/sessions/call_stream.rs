//! Resumable streams: a call outlives a broken connection for [`RESUME`], and a client that
//! reconnects in time misses no message. Otherwise the call is cancelled.

use super::session::{Ear, Flight, Held};
use super::{Failure, RESUME, Refusal};
use futures_core::Stream;
use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ClientJsonRpcMessage, ClientNotification,
    JsonRpcMessage,
};
use rmcp::transport::common::server_side_http::ServerSseMessage;
use rmcp::transport::streamable_http_server::session::local::{
    EventId, StreamableHttpMessageReceiver,
};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use tokio::runtime::Handle;
use tokio::sync::mpsc::Receiver;
use tokio::time::timeout;

/// The number of recent messages of a call that are kept for a client that resumes.
const KEPT: usize = 16;

/// The position of a message in a call's stream, as clients send it in `Last-Event-ID`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    index: u64,
    call: u64,
}

impl Place {
    /// Parses a `Last-Event-ID`. Returns `None` for a message that belongs to no call.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (index, call) = text.split_once('/')?;
        Some(Self { index: index.parse().ok()?, call: call.parse().ok()? })
    }
}

/// The holder of a running call, shared by its stream and the task that waits for its client. Empty
/// once the call has ended or another stream has taken it.
#[derive(Default)]
pub(super) struct Slot(Mutex<Option<Call>>);

impl Slot {
    fn lock(&self) -> MutexGuard<'_, Option<Call>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the call out, so that it is dropped outside the lock.
    fn take(&self) -> Option<Call> {
        self.lock().take()
    }

    /// Polls for the next message. The end of the call empties the slot.
    fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Option<ServerSseMessage>> {
        let message = match &mut *self.lock() {
            Some(call) => ready!(call.poll_next(cx)),
            None => return Poll::Ready(None),
        };
        if message.is_none() {
            drop(self.take());
        }
        Poll::Ready(message)
    }

    /// Drains a call without a connection. Ready once another stream has taken the call; pending at
    /// its end, which is kept for a client that resumes.
    fn poll_left(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut call = self.lock();
        let Some(call) = &mut *call else { return Poll::Ready(()) };
        while !call.is_over {
            ready!(call.poll_next(cx));
        }
        Poll::Pending
    }
}

struct Call {
    flight: Flight,
    messages: Receiver<ServerSseMessage>,
    kept: VecDeque<ServerSseMessage>,
    is_answered: bool,
    is_over: bool,
}

impl Call {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<ServerSseMessage>> {
        let message = ready!(self.messages.poll_recv(cx));
        match &message {
            Some(message) => self.keep(message.clone()),
            None => self.is_over = true,
        }
        Poll::Ready(message)
    }

    fn keep(&mut self, message: ServerSseMessage) {
        let answer = message.message.as_deref();
        self.is_answered |=
            matches!(answer, Some(JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_)));
        if self.kept.len() >= KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back(message);
    }

    /// Returns the kept messages after this index.
    fn since(&self, index: u64) -> VecDeque<ServerSseMessage> {
        let is_later = |message: &&ServerSseMessage| {
            let place = message.event_id.as_deref().and_then(Place::parse);
            place.is_some_and(|place| place.index > index)
        };
        self.kept.iter().filter(is_later).cloned().collect()
    }

    async fn cancel(self) {
        let reason = Some("the client went away".to_owned());
        let param = CancelledNotificationParam::new(Some(self.flight.id.clone()), reason);
        let notification =
            ClientNotification::CancelledNotification(CancelledNotification::new(param));
        let message = ClientJsonRpcMessage::notification(notification);
        if let Err(error) = self.flight.held.handle().push_message(message, None).await {
            tracing::debug!("a call that was left is over with its session: {error}");
        }
    }
}

/// The stream of one connection to a call.
pub(super) struct CallStream {
    again: VecDeque<ServerSseMessage>,
    slot: Arc<Slot>,
}

impl CallStream {
    fn new(call: Call, number: u64, again: VecDeque<ServerSseMessage>) -> Self {
        let held = call.flight.held.clone();
        let slot = Arc::new(Slot(Mutex::new(Some(call))));
        held.put(number, &slot);
        Self { again, slot }
    }
}

impl Stream for CallStream {
    type Item = ServerSseMessage;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<ServerSseMessage>> {
        match self.again.pop_front() {
            Some(message) => Poll::Ready(Some(message)),
            None => self.slot.poll_next(cx),
        }
    }
}

impl Drop for CallStream {
    fn drop(&mut self) {
        let was_left = self.slot.lock().is_some();
        if let (true, Ok(runtime)) = (was_left, Handle::try_current()) {
            runtime.spawn(wait(self.slot.clone()));
        }
    }
}

/// Waits for the client of a call to resume it. Messages are drained meanwhile, so that
/// backpressure does not reach the session's other calls.
async fn wait(slot: Arc<Slot>) {
    let _ = timeout(RESUME, poll_fn(|cx| slot.poll_left(cx))).await;
    if let Some(call) = slot.take()
        && !call.is_answered
        && !call.is_over
    {
        call.cancel().await;
    }
}

/// Starts a call, and returns its stream.
pub(super) async fn open(
    mut flight: Flight,
    message: ClientJsonRpcMessage,
) -> Result<CallStream, Failure> {
    let held = flight.held.clone();
    let channel = held.handle().establish_request_wise_channel().await?;
    let number = channel.http_request_id.ok_or(Refusal::Gone)?;
    flight.number = Some(number);
    held.handle().push_message(message, Some(number)).await?;
    let call = Call {
        flight,
        messages: channel.inner,
        kept: VecDeque::new(),
        is_answered: false,
        is_over: false,
    };
    Ok(CallStream::new(call, number, VecDeque::new()))
}

/// Resumes a call, taking it from its previous stream.
pub(super) fn resume(held: &Held, place: Place) -> Result<Heard, Failure> {
    let call = held.slot(place.call).and_then(|slot| slot.take()).ok_or(Refusal::Gone)?;
    let again = call.since(place.index);
    Ok(Heard::Call(CallStream::new(call, place.call, again)))
}

/// Listens to the messages that belong to no call.
pub(super) async fn listen(held: Arc<Held>) -> Result<Heard, Failure> {
    let ear = held.listen();
    let channel = held.handle().establish_common_channel().await?;
    Ok(Heard::Rest(channel, ear))
}

/// Listens to the messages that belong to no call, from an event on.
pub(super) async fn listen_from(held: Arc<Held>, event: EventId) -> Result<Heard, Failure> {
    let ear = held.listen();
    let channel = held.handle().resume(event).await?;
    Ok(Heard::Rest(channel, ear))
}

/// The stream of one connection.
pub(super) enum Heard {
    Call(CallStream),
    Rest(
        StreamableHttpMessageReceiver,
        #[expect(dead_code, reason = "counts for as long as it lives")] Ear,
    ),
}

impl Stream for Heard {
    type Item = ServerSseMessage;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<ServerSseMessage>> {
        match self.get_mut() {
            Self::Call(call) => Pin::new(call).poll_next(cx),
            Self::Rest(channel, _) => channel.inner.poll_recv(cx),
        }
    }
}
