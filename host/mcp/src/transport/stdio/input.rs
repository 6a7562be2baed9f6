//! The input of a client: reads and parses messages in order, and while the output is full as far
//! as they can be held back.

use super::backlog::{Backlog, HeldMessage, ParsedMessage};
use super::line_splitter::Line;
use super::reader::LineReader;
use super::writer::LineWriter;
use crate::messages::catch_panic::panic_error;
use crate::messages::offload;
use crate::messages::parse::{BOUNDS, RejectedMessage, parse_object};
use palisade::internal::{Account, IN_PLACE};
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
    /// Messages that wait for room in the output.
    backlog: Backlog,
    /// A long message that is parsed on another thread. It is kept here, because `rmcp` may drop
    /// the future of the next message while it waits.
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
    /// Creates the input of a client with this reader, whose output goes to this writer.
    pub(super) fn new(reader: LineReader, writer: Arc<LineWriter>, limits: Limits) -> Self {
        Self { reader, writer, limits, backlog: Backlog::default(), parsing: None }
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

    /// Waits for the message that is being parsed on another thread.
    async fn parsed(&mut self) -> Option<InputEvent> {
        let parsed = (&mut self.parsing.as_mut()?.task).await;
        let Parsing { account, backpressure, .. } = self.parsing.take()?;
        // Only the end of the runtime ends the task early.
        let parsed =
            parsed.unwrap_or_else(|_| Err(RejectedMessage { id: None, error: panic_error() }));
        match parsed {
            Ok(value) => self.receive(ParsedMessage { value, account }, backpressure),
            Err(rejected) => Some(InputEvent::Rejected(rejected, backpressure)),
        }
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

    /// Parses a line, a long one on another thread.
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
        if bytes.len() <= IN_PLACE {
            return match parse_object(&bytes, &account) {
                Ok(value) => self.receive(ParsedMessage { value, account }, backpressure),
                Err(rejected) => Some(InputEvent::Rejected(rejected, backpressure)),
            };
        }
        let own = account.clone();
        let task = tokio::spawn(async move { offload::parse(bytes, &own).await });
        self.parsing = Some(Parsing { task, account, backpressure });
        None
    }

    /// Delivers a parsed message, or holds it back.
    fn receive(
        &mut self,
        message: ParsedMessage,
        backpressure: Backpressure,
    ) -> Option<InputEvent> {
        match backpressure {
            Backpressure::Off => Some(InputEvent::Message(message, backpressure)),
            Backpressure::On => {
                let passed = self.backlog.push_parsed(message).err()?;
                Some(InputEvent::Message(passed, backpressure))
            }
        }
    }
}

/// A long message that is being parsed.
struct Parsing {
    task: JoinHandle<Result<Value, RejectedMessage>>,
    account: Account,
    backpressure: Backpressure,
}

fn too_long() -> ErrorData {
    let max = BOUNDS.bytes;
    ErrorData::invalid_request(format!("a message may have {max} bytes; this one is longer"), None)
}
