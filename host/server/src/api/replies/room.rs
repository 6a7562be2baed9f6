//! The room for the results of one reply in the memory of its request. Each result is charged before
//! it counts, with the bytes that it will take in the answer; one without room becomes a failure.

use crate::api::calls::run::without_room;
use crate::api::offload;
use palisade::formats::{Messages, Provider, Repeated, ToolUse, answer_length};
use palisade::internal::{Account, Admission, Charge};
use palisade::tool::budget::Exhausted;
use palisade::tool::json::text_length;
use palisade::{BoxFuture, ToolResult};
use std::sync::{Arc, Mutex, PoisonError};

/// The room for the failure of a call in its message and in its result, in bytes, beside the names
/// that it repeats.
const FAILURE: usize = 8 << 10;
/// The most bytes of a name in the answer, for each of its bytes: its escapes, in a message and in
/// a result.
const NAME: usize = 12;

/// The room for the results of one reply.
pub(super) struct ReplyRoom {
    /// The calls, without their inputs.
    calls: Arc<[ToolUse]>,
    provider: Provider,
    account: Account,
    held: Mutex<Held>,
}

/// The charges of all results so far.
#[derive(Default)]
struct Held {
    /// The memory of the results themselves.
    results: Vec<Charge>,
    /// The memory of the answer's text.
    text: Vec<Charge>,
}

impl ReplyRoom {
    /// Reserves the room of an answer in which each call has failed.
    pub(super) fn new(
        repeated: &Repeated,
        calls: &[ToolUse],
        account: &Account,
    ) -> Result<Self, Exhausted> {
        let messages = text_length(&Messages::<ToolResult>::after(repeated, &[]));
        let names = |call: &ToolUse| call.name().len() + call.id().map_or(0, str::len);
        let failures: usize = calls.iter().map(|call| FAILURE + NAME * names(call)).sum();
        let text = account.charge((messages + failures) as u64)?;
        // The names are copied once here.
        let names = account.charge(calls.iter().map(|call| names(call) as u64).sum())?;
        Ok(Self {
            calls: calls.iter().map(ToolUse::without_input).collect(),
            provider: repeated.provider(),
            account: account.clone(),
            held: Mutex::new(Held { results: vec![names], text: vec![text] }),
        })
    }

    /// Returns the charges of the results, which end with them, and those of the answer's text.
    pub(super) fn take(&self) -> (Vec<Charge>, Vec<Charge>) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let Held { results, text } = std::mem::take(&mut *held);
        (results, text)
    }

    /// Charges a result and its part of the answer, and returns it.
    async fn charge(&self, index: usize, result: ToolResult) -> Result<ToolResult, Exhausted> {
        let memory = result.footprint();
        let own = self.account.charge(memory as u64)?;
        let (calls, provider) = (self.calls.clone(), self.provider);
        let measure = move || {
            let answer = calls
                .get(index)
                .map(|call| answer_length(provider, call, &result) + text_length(&result));
            (answer.unwrap_or_default(), result)
        };
        let (length, result) = offload::work(memory, &self.account, measure).await?;
        let text = self.account.charge(length as u64)?;
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.results.push(own);
        held.text.push(text);
        Ok(result)
    }
}

impl Admission for ReplyRoom {
    fn admit(&self, index: usize, result: ToolResult) -> BoxFuture<'_, ToolResult> {
        Box::pin(async move {
            let (id, tool) = (result.call_id().clone(), result.tool().to_owned());
            let charged = self.charge(index, result).await;
            charged.unwrap_or_else(|why| without_room(id, &tool, why))
        })
    }
}
