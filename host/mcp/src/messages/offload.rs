//! Parses and serializes large messages on the host's own threads: the threads of the runtime serve
//! all clients, so they do no work that is proportional to a message.

use super::catch_panic::panic_error;
use super::parse::{RejectedMessage, parse_object};
use super::request_id::{self, HEAD_LENGTH};
use super::response_resources::ResponseResources;
use super::serialize::Serialized;
use crate::protocol::tool_result::exhausted_error;
use bytes::Bytes;
use palisade::internal::{
    Account, CallBudget, Charge, IN_PLACE, catch_panic, input_turns_within, offload,
};
use palisade::tool::budget::Budget;
use rmcp::model::{ErrorData, ServerJsonRpcMessage};
use serde_json::Value;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

/// The time limit of parsing or serializing one message, with the wait for a turn.
const TIME_LIMIT: Duration = Duration::from_secs(30);
/// The beginning of the error for a message that there is no memory or time for.
const UNREAD: &str = "the message cannot be read";

/// Serializes a response, reserving its memory in the account of the request. Returns an error
/// response instead if there is not enough memory or time.
pub(crate) async fn serialize(
    message: ServerJsonRpcMessage,
    resources: ResponseResources,
) -> Serialized {
    match Serialized::short_response(&message, &resources.account) {
        Some(serialized) => serialized,
        None => serialize_long(message, resources).await,
    }
}

/// Serializes a response that is too long for this thread, in the turns of its plugin: many large
/// responses of one plugin delay no other work.
pub(crate) async fn serialize_long(
    message: ServerJsonRpcMessage,
    resources: ResponseResources,
) -> Serialized {
    let late = Serialized::late_response(&message);
    let account = resources.account.clone();
    let budget = budget(account.clone());
    let work = move |_| Ok(Serialized::response(&message, &account));
    let serialized = catch_panic(offload(&budget, resources.turns(), work)).await;
    serialized.ok().and_then(Result::ok).unwrap_or(late)
}

/// Parses one JSON object. Its memory stays reserved in the account.
pub(crate) async fn parse(bytes: Bytes, account: &Account) -> Result<Value, RejectedMessage> {
    parse_with(bytes, account, parse_object).await
}

/// A function that parses one JSON object.
type Parser = fn(&[u8], &dyn Budget) -> Result<Value, RejectedMessage>;

async fn parse_with(
    bytes: Bytes,
    account: &Account,
    parser: Parser,
) -> Result<Value, RejectedMessage> {
    if bytes.len() <= IN_PLACE {
        return parser(&bytes, account);
    }
    let head = bytes.slice(..HEAD_LENGTH);
    let budget = budget(account.clone());
    let parsed =
        offload(&budget, input_turns_within(&budget), move |budget| Ok(parser(&bytes, &*budget)));
    let error = match catch_panic(parsed).await {
        Ok(Ok(parsed)) => return parsed,
        Ok(Err(why)) => exhausted_error(UNREAD, why),
        Err(_) => panic_error(),
    };
    Err(RejectedMessage { id: request_id::in_head(&head), error })
}

/// Runs a future whose first poll parses a message of this length: that poll on one of the host's
/// own threads if the message is long, the others here. The reservation is for the first poll.
pub(crate) async fn poll_first<F>(
    future: F,
    length: usize,
    parse_memory: Charge,
) -> Result<F::Output, ErrorData>
where
    F: Future<Output: Send> + Send + 'static,
{
    let mut future = Box::pin(future);
    let first = match length {
        ..=IN_PLACE => poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await,
        _ => {
            let polled;
            (polled, future) = poll_offloaded(future, parse_memory.account()).await?;
            polled
        }
    };
    // The future may wait for an answer to a question.
    drop(parse_memory);
    match first {
        Poll::Ready(output) => Ok(output),
        Poll::Pending => Ok(future.await),
    }
}

/// Polls a future once, on one of the host's own threads.
async fn poll_offloaded<F>(
    mut future: Pin<Box<F>>,
    account: &Account,
) -> Result<(Poll<F::Output>, Pin<Box<F>>), ErrorData>
where
    F: Future<Output: Send> + Send + 'static,
{
    let runtime = Handle::current();
    let first = move |_| {
        let _entered = runtime.enter();
        // Pending futures are polled again by the caller, with a waker.
        let first = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        Ok((first, future))
    };
    let budget = budget(account.clone());
    let polled = offload(&budget, input_turns_within(&budget), first);
    match catch_panic(polled).await {
        Ok(Ok(polled)) => Ok(polled),
        Ok(Err(why)) => Err(exhausted_error(UNREAD, why)),
        Err(_) => Err(panic_error()),
    }
}

/// Reserves memory in an account.
pub(crate) fn reserve(account: &Account, bytes: u64) -> Result<Charge, ErrorData> {
    account.charge(bytes).map_err(|why| exhausted_error(UNREAD, why))
}

/// Returns the budget of work on one message.
pub(crate) fn budget(account: Account) -> CallBudget {
    CallBudget::new(account, Instant::now() + TIME_LIMIT, CancellationToken::new())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use crate::messages::response_resources::set_plugin_turns;
    use palisade::internal::{MemoryLimits, Pool};
    use palisade::tool::Digest;
    use rmcp::model::{CallToolResult, ContentBlock, Extensions, RequestId, ServerResult};
    use std::pin::pin;
    use std::thread;

    fn account() -> Account {
        Account::new(MemoryLimits { call: u64::MAX, total: u64::MAX })
    }

    #[tokio::test]
    async fn waiting_answers_do_not_delay_a_large_input() {
        let pool = Pool::new(1);
        let taken = pool.share(Digest::of(b"another")).try_take(1).unwrap();
        let resources = ResponseResources::new(account());
        let mut extensions = Extensions::new();
        resources.attach(&mut extensions);
        set_plugin_turns(&extensions, &pool.share(Digest::of(b"a plugin")));
        let result = CallToolResult::success(vec![ContentBlock::text("x".repeat(IN_PLACE))]);
        let answer = ServerJsonRpcMessage::response(
            ServerResult::CallToolResult(result),
            RequestId::Number(7),
        );
        let mut waits = pin!(serialize_long(answer, resources));
        let own = account();
        let input = format!(r#"{{"id":8,"params":"{}"}}"#, "x".repeat(IN_PLACE));
        tokio::select! {
            biased;
            _ = &mut waits => panic!("it has no turn"),
            read = parse(input.into(), &own) => assert!(read.is_ok()),
        }
        drop(taken);
        assert!(waits.await.into_line().0.len() > IN_PLACE);
    }

    #[tokio::test]
    async fn first_poll_of_a_long_message_is_not_on_a_thread_of_the_runtime() {
        let mut polls = Vec::new();
        let future = poll_fn(move |context| {
            polls.push(thread::current().id());
            match polls.len() {
                1 => {
                    // A pending future is polled again, by the runtime.
                    context.waker().wake_by_ref();
                    Poll::Pending
                }
                _ => Poll::Ready(polls.clone()),
            }
        });
        let account = account();
        let parse_memory = account.charge(7).unwrap();
        let polls = poll_first(future, IN_PLACE + 1, parse_memory).await.unwrap();
        let own = thread::current().id();
        assert_eq!((polls[0] == own, polls[1] == own, polls.len()), (false, true, 2));
    }

    #[tokio::test]
    async fn memory_of_parsing_is_released_before_the_answer() {
        for length in [IN_PLACE, IN_PLACE + 1] {
            let account = account();
            let parse_memory = account.charge(7).unwrap();
            let (send, answer) = tokio::sync::oneshot::channel::<u64>();
            let answered = tokio::spawn(poll_first(answer, length, parse_memory));
            while account.held() > 0 {
                tokio::task::yield_now().await;
            }
            send.send(3).unwrap();
            assert_eq!(answered.await.unwrap().unwrap(), Ok(3), "{length}");
        }
    }

    #[tokio::test]
    async fn parser_panic_is_an_error_of_the_request() {
        for (head, id) in
            [(r#""id":7,"method":"x""#, Some(RequestId::Number(7))), (r#""a":1"#, None)]
        {
            let message = format!(r#"{{{head},"params":"{}"}}"#, "x".repeat(IN_PLACE));
            let refused = parse_with(message.into(), &account(), |_, _| panic!("on purpose"))
                .await
                .unwrap_err();
            assert_eq!((refused.id, refused.error.code.0), (id, -32603));
        }
    }
}
