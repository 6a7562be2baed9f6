//! One step of an agent loop: from a model's reply to the messages that answer it.

use super::Host;
use crate::dispatch::{ReplyAnswers, Transcript};
use crate::session::Session;
use crate::tool::{Call, ToolResult};
use palisade_formats::ReplyError;

impl Host {
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
        let calls = tool_uses.iter().map(Call::from).map(prepare).collect();
        let mut answers = ReplyAnswers::new(transcript, tool_uses);
        Ok(self.dispatch_into(session, calls, &mut answers).await)
    }
}
