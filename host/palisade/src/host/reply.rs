//! One step of an agent loop: from a model's reply to the messages that answer it.

use super::Host;
use crate::dispatch::{Admission, ReplyAnswers, Transcript};
use crate::session::Session;
use crate::tool::{Call, ToolResult};
use palisade_formats::ReplyError;
use std::sync::Arc;

impl Host {
    /// Runs the calls of one message as [`dispatch_all`](Self::dispatch_all) does, with a decision
    /// on each result: a server keeps only those that its client's memory has room for.
    #[doc(hidden)]
    pub async fn dispatch_admitted(
        &self,
        session: &Session,
        calls: Vec<Call>,
        admission: Arc<dyn Admission>,
    ) -> Vec<ToolResult> {
        self.dispatcher.dispatch_admitted(session, calls, admission).await
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
    /// [`ReplyError`] if the text is not a reply of the transcript's provider, or takes more memory
    /// than a call may. Nothing is run or appended then.
    pub async fn dispatch_reply(
        &self,
        session: &Session,
        reply: &str,
        transcript: &mut Transcript,
        prepare: impl FnMut(Call) -> Call,
    ) -> Result<Vec<ToolResult>, ReplyError> {
        // The account ends with the reading: the transcript is the program's own.
        let tool_uses = transcript.append_reply(reply, &self.limits().account())?;
        let calls = tool_uses.iter().map(Call::from).map(prepare).collect();
        let mut answers = ReplyAnswers::new(transcript, tool_uses);
        Ok(self.dispatch_into(session, calls, &mut answers).await)
    }
}
