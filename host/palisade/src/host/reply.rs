//! One step of an agent loop: from a model's reply to the messages that answer it.

use super::Host;
use crate::dispatch::{ReplyAnswers, Transcript};
use crate::session::Session;
use crate::tool::{Call, ToolResult};
use palisade_formats::{Provider, ReplyError, ToolUse};

/// A model's reply that was read and not run. A server reads long replies on a thread of their own.
#[doc(hidden)]
#[derive(Debug)]
pub struct ReadReply {
    transcript: Transcript,
    tool_uses: Vec<ToolUse>,
}

impl ReadReply {
    /// Reads a reply as the first message of a transcript.
    ///
    /// # Errors
    ///
    /// [`ReplyError`] if the text is not a reply of the provider.
    pub fn read(provider: Provider, reply: &str) -> Result<Self, ReplyError> {
        let mut transcript = Transcript::new(provider);
        let tool_uses = transcript.append_reply(reply)?;
        Ok(Self { transcript, tool_uses })
    }
}

impl Host {
    /// Runs the calls of a reply that was read, as [`dispatch_reply`](Self::dispatch_reply) does.
    #[doc(hidden)]
    pub async fn run_reply(
        &self,
        session: &Session,
        reply: ReadReply,
        prepare: impl FnMut(Call) -> Call,
    ) -> (Vec<ToolResult>, Transcript) {
        let ReadReply { mut transcript, tool_uses } = reply;
        let results = self.run_tool_uses(session, tool_uses, &mut transcript, prepare).await;
        (results, transcript)
    }

    /// Takes a model's reply: appends its message to the transcript, runs its calls, and appends
    /// the answer to each, as the provider's next request takes it. Returns the results in the
    /// order of the calls; none means that the model asked for no tool.
    ///
    /// `prepare` may add to each call: its turn, context, timeout or cancellation. The order of the
    /// answers and the end of a dropped future are those of [`dispatch_into`](Self::dispatch_into).
    ///
    /// # Errors
    ///
    /// [`ReplyError`] if the text is not a reply of the transcript's provider. Nothing is run or
    /// appended then.
    pub async fn dispatch_reply(
        &self,
        session: &Session,
        reply: &str,
        transcript: &mut Transcript,
        prepare: impl FnMut(Call) -> Call,
    ) -> Result<Vec<ToolResult>, ReplyError> {
        let tool_uses = transcript.append_reply(reply)?;
        Ok(self.run_tool_uses(session, tool_uses, transcript, prepare).await)
    }

    async fn run_tool_uses(
        &self,
        session: &Session,
        tool_uses: Vec<ToolUse>,
        transcript: &mut Transcript,
        prepare: impl FnMut(Call) -> Call,
    ) -> Vec<ToolResult> {
        let calls = tool_uses.iter().map(Call::from).map(prepare).collect();
        let mut answers = ReplyAnswers::new(transcript, tool_uses);
        self.dispatch_into(session, calls, &mut answers).await
    }
}
