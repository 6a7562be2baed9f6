//! Reads the input: in order, and while the output is full as far as it can be held back.

use super::backlog::Input;
use super::line_splitter::Line;
use super::{Lines, too_long};
use crate::messages::catch_panic;
use crate::messages::offload;
use crate::messages::parse::{self, Refused};
use palisade::internal::{Account, IN_PLACE};
use rmcp::model::{ClientJsonRpcMessage, ErrorData};
use serde_json::Value;
use tokio::task::JoinHandle;

/// A long message that is being parsed.
pub(super) struct Parsing {
    task: JoinHandle<Result<Value, Refused>>,
    account: Account,
    turn: Turn,
}

/// Whether it is a message's turn to be handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    Now,
    /// The output is full, or earlier messages wait. Only cancellations and responses are handled.
    Later,
}

/// The next event of the input.
pub(super) enum Heard {
    Line(Line),
    /// There is room for this message, which was held back.
    Due(Input),
    Parsed(Result<Value, Refused>, Account, Turn),
}

impl Lines {
    /// Returns the next event. While the output is full, input is read on as long as it can be held
    /// back. `None` at the end of the input, and if the client is gone.
    pub(super) async fn heard(&mut self) -> Option<Heard> {
        if let Some(parsing) = &mut self.parsing {
            let parsed = (&mut parsing.task).await;
            let Parsing { account, turn, .. } = self.parsing.take()?;
            // Only the end of the runtime ends the task early.
            let parsed =
                parsed.unwrap_or_else(|_| Err(Refused { id: None, error: catch_panic::failed() }));
            return Some(Heard::Parsed(parsed, account, turn));
        }
        let heard = tokio::select! {
            biased;
            _ = self.writer.gone() => return None,
            () = self.writer.room(), if !self.held.is_empty() => self.held.take().map(Heard::Due),
            line = self.reader.next(), if self.held.has_room() => line.map(Heard::Line),
        };
        if heard.is_none() {
            // The input has ended: these requests will not begin.
            for id in self.held.clear() {
                let error = ErrorData::internal_error(
                    "the input ended before the request could begin",
                    None,
                );
                self.refuse(Refused { id: Some(id), error });
            }
        }
        heard
    }

    /// Returns the turn of a message that was just read.
    pub(super) fn turn(&self) -> Turn {
        if self.held.is_empty() && self.writer.has_room() { Turn::Now } else { Turn::Later }
    }

    /// Handles a line that was just read, or holds it back.
    pub(super) fn come(
        &mut self,
        line: Line,
        turn: Turn,
    ) -> Result<Option<ClientJsonRpcMessage>, Refused> {
        if turn == Turn::Now {
            return self.read(line, turn);
        }
        match self.held.put(line) {
            Ok(()) => Ok(None),
            Err(line) => self.read(line, turn),
        }
    }

    /// Parses a line, a long one on another thread. Returns `None` for that one, and for a call
    /// that was started on the fast path.
    pub(super) fn read(
        &mut self,
        line: Line,
        turn: Turn,
    ) -> Result<Option<ClientJsonRpcMessage>, Refused> {
        let bytes = match line {
            Line::Whole(bytes) => bytes,
            Line::TooLong(id) => return Err(Refused { id, error: too_long() }),
        };
        // Hold the memory of the message until it is answered.
        let account = self.ends.short.account();
        if bytes.len() <= IN_PLACE {
            let value = parse::check(&bytes, &account)?;
            return self.parsed(value, account, turn);
        }
        let own = account.clone();
        let task = tokio::spawn(async move { offload::checked(bytes.into(), &own).await });
        self.parsing = Some(Parsing { task, account, turn });
        Ok(None)
    }

    /// Takes a parsed message, or holds it back.
    pub(super) fn parsed(
        &mut self,
        value: Value,
        account: Account,
        turn: Turn,
    ) -> Result<Option<ClientJsonRpcMessage>, Refused> {
        if turn == Turn::Now {
            return self.take(value, account);
        }
        match self.held.put_parsed(value, account) {
            Ok(()) => Ok(None),
            Err((value, account)) => self.take(value, account),
        }
    }
}
