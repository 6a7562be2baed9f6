//! Parses and serializes large messages on other threads: the thread of the connections serves every
//! client, so it does no work that is proportional to a message.

use super::answer::Written;
use super::frame::{self, Refused};
use super::outcome;
use crate::execution::account::{Account, CallBudget};
use crate::execution::offload::{IN_PLACE, offload};
use crate::execution::owner::input_turns;
use bytes::Bytes;
use rmcp::model::ServerJsonRpcMessage;
use serde_json::Value;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// The time limit of parsing or serializing one message, with the wait for a turn.
const TIME: Duration = Duration::from_secs(30);
/// The part of a message in which its id is looked for when it could not be parsed in time, in bytes.
const HEAD: usize = 4 << 10;

/// Serializes a response, reserving its memory in the account of the request. Returns an error
/// response instead if there is not enough memory or time.
pub(super) async fn written(message: ServerJsonRpcMessage, account: Account) -> Written {
    match Written::at_once(&message, &account) {
        Some(written) => written,
        None => large(message, account).await,
    }
}

/// Serializes a response that is too long for this thread.
pub(super) async fn large(message: ServerJsonRpcMessage, account: Account) -> Written {
    let late = Written::late(&message);
    let budget = budget(account.clone());
    let work = move |_| Ok(Written::answer(&message, &account));
    offload(&budget, input_turns(), work).await.unwrap_or(late)
}

/// Parses one JSON object. Its memory stays reserved in the account.
pub(super) async fn checked(bytes: Bytes, account: &Account) -> Result<Value, Refused> {
    if bytes.len() <= IN_PLACE {
        return frame::check(&bytes, account);
    }
    let head = bytes.slice(..HEAD);
    let budget = budget(account.clone());
    let parsed = offload(&budget, input_turns(), move |budget| Ok(frame::check(&bytes, &*budget)));
    parsed.await.unwrap_or_else(|why| {
        let error = outcome::exhausted("the message cannot be read", why);
        Err(Refused { id: frame::id_at_head(&head), error })
    })
}

fn budget(account: Account) -> CallBudget {
    CallBudget::new(account, Instant::now() + TIME, CancellationToken::new())
}
