//! The input of a client: reads and parses messages in order, and while the output is full as far
//! as they can be held back.

use super::super::fast_path::SimpleCall;
use super::backlog::{Backlog, HeldMessage, Incoming, ParsedMessage};
use super::line_splitter::Line;
use super::reader::LineReader;
use super::writer::LineWriter;
use crate::handler::McpHandler;
use crate::handler::prepare::Prepare as _;
use crate::messages::catch_panic::panic_error;
use crate::messages::offload::{self, MessageSize};
use crate::messages::parse::{BOUNDS, RejectedMessage};
use crate::messages::request_id;
use crate::protocol::methods::is_subscription;
use palisade::internal::Account;
use palisade::sandbox::limits::Limits;
use rmcp::model::{ErrorData, RequestId};
use serde_json::Value;
use std::sync::Arc;
use tokio::task::JoinHandle;

/// The input of one client.
pub(super) struct Input {
    reader: LineReader,
    writer: Arc<LineWriter>,
    limits: Limits,
    handler: Arc<McpHandler>,
    /// Messages that wait for room in the output.
    backlog: Backlog,
    /// A message that is parsed or prepared by a task. It is kept here, because `rmcp` may drop the
    /// future of the next message while it waits.
    parsing: Option<Parsing>,
}

/// The next event of the input.
pub(super) enum InputEvent {
    /// A message to handle now.
    Message(ParsedMessage, Backpressure),
    /// A message that is not valid.
    Rejected(RejectedMessage, Backpressure),
    /// The input has ended. These requests were held back, and will not begin.
    Ended(Vec<RequestId>),
    /// The client has disconnected.
    Disconnected,
}

/// Whether messages are held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Backpressure {
    /// The output has room.
    Off,
    /// The output is full, or earlier messages wait. Only cancellations and responses are handled.
    On,
}

impl Input {
    /// Creates the input of a client with this reader, whose output goes to this writer, and whose
    /// messages go to this handler.
    pub(super) fn new(
        reader: LineReader,
        writer: Arc<LineWriter>,
        limits: Limits,
        handler: Arc<McpHandler>,
    ) -> Self {
        Self { reader, writer, limits, handler, backlog: Backlog::default(), parsing: None }
    }

    /// Returns the next event. Cancel safe.
    pub(super) async fn next(&mut self) -> InputEvent {
        loop {
            let event = match self.parsing.is_some() {
                true => self.parsed().await,
                false => self.read().await,
            };
            if let Some(event) = event {
                return event;
            }
        }
    }

    /// Holds an error response back.
    pub(super) fn hold_back(&mut self, rejected: RejectedMessage) {
        self.backlog.push_rejected(rejected);
    }

    /// Cancels a request that is held back. Returns true if there is one.
    pub(super) fn cancel(&mut self, id: &RequestId) -> bool {
        self.backlog.cancel(id)
    }

    /// Waits for the message that a task parses or prepares.
    async fn parsed(&mut self) -> Option<InputEvent> {
        let parsed = (&mut self.parsing.as_mut()?.task).await;
        let Parsing { account, backpressure, .. } = self.parsing.take()?;
        // Only the end of the runtime ends the task early.
        let parsed =
            parsed.unwrap_or_else(|_| Err(RejectedMessage { id: None, error: panic_error() }));
        self.receive(parsed, account, backpressure)
    }

    /// Waits for room in the output for the first message of the backlog, or for a line.
    async fn read(&mut self) -> Option<InputEvent> {
        tokio::select! {
            biased;
            _ = self.writer.disconnected() => Some(InputEvent::Disconnected),
            () = self.writer.room(), if !self.backlog.is_empty() => self.take_held(),
            line = self.reader.next(), if self.backlog.has_room() => match line {
                Some(line) => self.receive_line(line),
                None => Some(InputEvent::Ended(self.backlog.clear())),
            },
        }
    }

    fn take_held(&mut self) -> Option<InputEvent> {
        match self.backlog.pop()? {
            HeldMessage::Line(line) => self.parse(line, Backpressure::Off),
            HeldMessage::Parsed(message) => Some(InputEvent::Message(message, Backpressure::Off)),
            HeldMessage::Rejected(rejected) => {
                Some(InputEvent::Rejected(rejected, Backpressure::Off))
            }
        }
    }

    /// Parses a line that was just read, or holds it back.
    fn receive_line(&mut self, line: Line) -> Option<InputEvent> {
        let is_free = self.backlog.is_empty() && self.writer.has_room();
        if is_free {
            return self.parse(line, Backpressure::Off);
        }
        match self.backlog.push_line(line) {
            Ok(()) => None,
            Err(line) => self.parse(line, Backpressure::On),
        }
    }

    /// Parses and prepares a line. A step that may take long runs in a task.
    fn parse(&mut self, line: Line, backpressure: Backpressure) -> Option<InputEvent> {
        let bytes = match line {
            Line::Whole(bytes) => bytes,
            Line::TooLong(id) => {
                let rejected = RejectedMessage { id, error: too_long() };
                return Some(InputEvent::Rejected(rejected, backpressure));
            }
        };
        // Holds the memory of the message until it is answered.
        let account = self.limits.account();
        let (own, handler) = (account.clone(), self.handler.clone());
        let (text, limits) = (bytes.len(), self.limits);
        let task = match offload::parse_in_place(&bytes, &account) {
            Some(Err(rejected)) => return Some(InputEvent::Rejected(rejected, backpressure)),
            Some(Ok(value)) if !is_subscription(&value) => {
                return self.receive(Incoming::convert(value), account, backpressure);
            }
            Some(Ok(value)) => {
                tokio::spawn(async move { prepared(&handler, value, text, &own, limits).await })
            }
            None => tokio::spawn(async move {
                let value = offload::parse(bytes, &own).await?;
                prepared(&handler, value, text, &own, limits).await
            }),
        };
        self.parsing = Some(Parsing { task, account, backpressure });
        None
    }

    /// Delivers a parsed message, or holds it back.
    fn receive(
        &mut self,
        parsed: Result<Incoming, RejectedMessage>,
        account: Account,
        backpressure: Backpressure,
    ) -> Option<InputEvent> {
        let message = match parsed {
            Ok(message) => ParsedMessage { message, account },
            Err(rejected) => return Some(InputEvent::Rejected(rejected, backpressure)),
        };
        match backpressure {
            Backpressure::Off => Some(InputEvent::Message(message, backpressure)),
            Backpressure::On => {
                let passed = self.backlog.push_parsed(message).err()?;
                Some(InputEvent::Message(passed, backpressure))
            }
        }
    }
}

/// Prepares a message with a text of this length for its handler, and converts it.
async fn prepared(
    handler: &McpHandler,
    mut message: Value,
    text: usize,
    account: &Account,
    limits: Limits,
) -> Result<Incoming, RejectedMessage> {
    if let Err(error) = handler.prepare(&mut message, account).await {
        return Err(RejectedMessage { id: request_id::of_object(&message), error });
    }
    match SimpleCall::from_message(message) {
        Ok(call) => Ok(Incoming::Call(Box::new(call))),
        Err(other) => {
            let size = MessageSize { text, memory: account.held() };
            // In an account of its own: a plugin hears of an answer that is too large for its call.
            let converted = offload::convert(other, size, &limits.account()).await?;
            Ok(Incoming::Message(Box::new(converted)))
        }
    }
}

/// A message that a task parses or prepares.
struct Parsing {
    task: JoinHandle<Result<Incoming, RejectedMessage>>,
    account: Account,
    backpressure: Backpressure,
}

fn too_long() -> ErrorData {
    let max = BOUNDS.bytes;
    ErrorData::invalid_request(format!("a message may have {max} bytes; this one is longer"), None)
}
