//! Resumable streams: a call outlives a broken connection for [`RESUME_TIMEOUT`], and a client that
//! reconnects in time misses no message. Otherwise the call is cancelled.

use super::error::{ManagerError, SessionRejection};
use super::session::{ListenerGuard, RequestGuard, Session};
use crate::messages::serialize::text_length;
use futures_core::Stream;
use palisade::internal::{Account, Owed};
use palisade::tool::budget::Exhausted;
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
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::mpsc::Receiver;
use tokio::time::timeout;

/// The time for a client to resume a call's stream after its connection broke. The call is
/// cancelled after that.
const RESUME_TIMEOUT: Duration = Duration::from_secs(5);
/// The number of recent messages of a call that are kept for a client that resumes.
const MAX_RECENT: usize = 16;
/// The memory of a recent notification or question, in multiples of its text: a text in it has
/// another allocation, and a schema is a tree.
const PARSED: usize = 2;

/// The position of a message in a call's stream, as clients send it in `Last-Event-ID`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EventPosition {
    index: u64,
    call: u64,
}

impl EventPosition {
    /// Parses a `Last-Event-ID`. Returns `None` for a message that belongs to no call.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (index, call) = text.split_once('/')?;
        Some(Self { index: index.parse().ok()?, call: call.parse().ok()? })
    }
}

/// The stream of one connection.
pub(super) enum ConnectionStream {
    /// To a call.
    Call(CallStream),
    /// To the messages that belong to no call.
    Common(
        StreamableHttpMessageReceiver,
        #[expect(dead_code, reason = "counts for as long as it lives")] ListenerGuard,
    ),
}

/// The stream of one connection to a call.
pub(super) struct CallStream {
    replayed: VecDeque<ServerSseMessage>,
    slot: Arc<CallSlot>,
    /// The runtime of the call: a stream may be dropped on another thread.
    runtime: Option<Handle>,
}

/// The holder of a running call, shared by its stream and the task that waits for its client. Empty
/// once the call has ended or another stream has taken it.
#[derive(Default)]
pub(super) struct CallSlot(Mutex<Option<StreamedCall>>);

/// Starts a call, and returns its stream.
pub(super) async fn open(
    mut guard: RequestGuard,
    message: ClientJsonRpcMessage,
) -> Result<CallStream, ManagerError> {
    let session = guard.session.clone();
    let channel = session.handle().establish_request_wise_channel().await?;
    let number = channel.http_request_id.ok_or(SessionRejection::Gone)?;
    guard.number = Some(number);
    session.handle().push_message(message, Some(number)).await?;
    let call = StreamedCall {
        guard,
        messages: channel.inner,
        recent: VecDeque::new(),
        is_answered: false,
        is_over: false,
    };
    Ok(CallStream::new(call, number, VecDeque::new()))
}

/// Resumes a call, taking it from its previous stream. The account is that of the request which
/// resumes: the memory of repeated messages stays reserved in it. Returns the account of the call
/// as well, in which the call reserves the memory of later messages.
///
/// # Errors
///
/// [`ManagerError::NoMemory`]; the call can be resumed later then.
pub(super) fn resume(
    session: &Session,
    position: EventPosition,
    account: &Account,
) -> Result<(ConnectionStream, Account), ManagerError> {
    let slot = session.call(position.call).ok_or(SessionRejection::Gone)?;
    let call = slot.take_within(position.index, account)?.ok_or(SessionRejection::Gone)?;
    let replayed = call.since(position.index);
    let of_call = call.guard.account.clone();
    Ok((ConnectionStream::Call(CallStream::new(call, position.call, replayed)), of_call))
}

/// Listens to the messages that belong to no call.
pub(super) async fn listen(session: Arc<Session>) -> Result<ConnectionStream, ManagerError> {
    let listener = session.listen();
    let channel = session.handle().establish_common_channel().await?;
    Ok(ConnectionStream::Common(channel, listener))
}

/// Listens to the messages that belong to no call, from an event on.
pub(super) async fn listen_from(
    session: Arc<Session>,
    event: EventId,
) -> Result<ConnectionStream, ManagerError> {
    let listener = session.listen();
    let channel = session.handle().resume(event).await?;
    Ok(ConnectionStream::Common(channel, listener))
}

impl Stream for ConnectionStream {
    type Item = ServerSseMessage;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<ServerSseMessage>> {
        match self.get_mut() {
            Self::Call(call) => Pin::new(call).poll_next(cx),
            Self::Common(channel, _) => channel.inner.poll_recv(cx),
        }
    }
}

impl CallStream {
    fn new(call: StreamedCall, number: u64, replayed: VecDeque<ServerSseMessage>) -> Self {
        let session = call.guard.session.clone();
        let slot = Arc::new(CallSlot(Mutex::new(Some(call))));
        session.register_call(number, &slot);
        Self { replayed, slot, runtime: Handle::try_current().ok() }
    }
}

impl Stream for CallStream {
    type Item = ServerSseMessage;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<ServerSseMessage>> {
        match self.replayed.pop_front() {
            Some(message) => Poll::Ready(Some(message)),
            None => self.slot.poll_next(cx),
        }
    }
}

impl Drop for CallStream {
    fn drop(&mut self) {
        if self.slot.lock().is_some()
            && let Some(runtime) = &self.runtime
        {
            runtime.spawn(wait_for_resume(self.slot.clone()));
        }
    }
}

impl CallSlot {
    fn lock(&self) -> MutexGuard<'_, Option<StreamedCall>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the call out, so that it is dropped outside the lock.
    fn take(&self) -> Option<StreamedCall> {
        self.lock().take()
    }

    /// Takes the call out, if this account has room for the messages after the index. The memory
    /// that the call holds is the bound of theirs, since it includes the memory of the response.
    fn take_within(
        &self,
        index: u64,
        account: &Account,
    ) -> Result<Option<StreamedCall>, Exhausted> {
        let mut call = self.lock();
        if let Some(call) = &*call
            && !call.since(index).is_empty()
        {
            account.reserve(call.guard.account.held())?;
        }
        Ok(call.take())
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
    /// its end: the call is kept for a client that resumes.
    fn poll_disconnected(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut call = self.lock();
        let Some(call) = &mut *call else { return Poll::Ready(()) };
        while !call.is_over {
            ready!(call.poll_next(cx));
        }
        Poll::Pending
    }
}

/// A running call, with the messages that a client may have missed.
struct StreamedCall {
    guard: RequestGuard,
    messages: Receiver<ServerSseMessage>,
    recent: VecDeque<RecentMessage>,
    is_answered: bool,
    is_over: bool,
}

/// A message that a client may have missed.
struct RecentMessage {
    message: ServerSseMessage,
    /// The memory of a notification or a question. The account of the call has that of its answer.
    #[expect(dead_code, reason = "counts for as long as it lives")]
    memory: Owed,
}

impl StreamedCall {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<ServerSseMessage>> {
        let message = ready!(self.messages.poll_recv(cx));
        match &message {
            Some(message) => self.record(message.clone()),
            None => self.is_over = true,
        }
        Poll::Ready(message)
    }

    fn record(&mut self, message: ServerSseMessage) {
        let memory = match message.message.as_deref() {
            Some(JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_)) => {
                self.is_answered = true;
                Owed::default()
            }
            Some(other) => self.guard.account.owed(PARSED * text_length(other)),
            None => Owed::default(),
        };
        if self.recent.len() >= MAX_RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(RecentMessage { message, memory });
    }

    /// Returns the recent messages after this index.
    fn since(&self, index: u64) -> VecDeque<ServerSseMessage> {
        let is_later = |message: &&ServerSseMessage| {
            let position = message.event_id.as_deref().and_then(EventPosition::parse);
            position.is_some_and(|position| position.index > index)
        };
        self.recent.iter().map(|recent| &recent.message).filter(is_later).cloned().collect()
    }

    async fn cancel(self) {
        let reason = Some("the client went away".to_owned());
        let param = CancelledNotificationParam::new(Some(self.guard.id.clone()), reason);
        let notification =
            ClientNotification::CancelledNotification(CancelledNotification::new(param));
        let message = ClientJsonRpcMessage::notification(notification);
        if let Err(error) = self.guard.session.handle().push_message(message, None).await {
            tracing::debug!("a call that was left is over with its session: {error}");
        }
    }
}

/// Waits for the client of a call to resume it. Messages are drained meanwhile, so that
/// backpressure does not reach the session's other calls.
async fn wait_for_resume(slot: Arc<CallSlot>) {
    let _ = timeout(RESUME_TIMEOUT, poll_fn(|cx| slot.poll_disconnected(cx))).await;
    if let Some(call) = slot.take()
        && !call.is_answered
        && !call.is_over
    {
        call.cancel().await;
    }
}
