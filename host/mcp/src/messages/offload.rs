//! Parses and serializes large messages on the host's own threads: the threads of the runtime serve
//! all clients, so they do no work that is proportional to a message.

use super::catch_panic::panic_error;
use super::long_polls::LongPolls;
use super::parse::{RejectedMessage, parse_object, to_message};
use super::request_id::{self, HEAD_LENGTH};
use super::response_resources::ResponseResources;
use super::serialize::{CANNOT_ANSWER, Serialized, charged_text, is_short_text};
use crate::protocol::tool_result::exhausted_error;
use bytes::Bytes;
use palisade::internal::{
    Account, CallBudget, Charge, IN_PLACE, InPlaceBudget, catch_panic, input_turns_within,
    is_short, offload,
};
use palisade::tool::budget::Budget;
use rmcp::model::{ClientJsonRpcMessage, ErrorData, ServerJsonRpcMessage};
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

/// Serializes a client's message that was changed. Returns it with its text, whose memory is
/// reserved until it is dropped.
///
/// # Errors
///
/// The error response if there is not enough memory or time.
pub(crate) async fn to_text(
    message: Value,
    account: &Account,
) -> Result<(Value, Bytes), ErrorData> {
    let text = match is_short_text(&message) {
        true => charged_text(&message, account).map(|text| (message, text)),
        false => {
            let own = account.clone();
            let budget = budget(account.clone());
            let work = move |_| charged_text(&message, &own).map(|text| (message, text));
            offload(&budget, input_turns_within(&budget), work).await
        }
    };
    text.map_err(|why| exhausted_error(UNREAD, why))
}

/// Parses one JSON object. Its memory stays reserved in the account.
pub(crate) async fn parse(bytes: Bytes, account: &Account) -> Result<Value, RejectedMessage> {
    parse_with(bytes, account, parse_object).await
}

/// Parses one JSON object on this thread, as [`parse`] does. `None` if that would take long.
pub(crate) fn parse_in_place(
    bytes: &[u8],
    account: &Account,
) -> Option<Result<Value, RejectedMessage>> {
    in_place(bytes, account, parse_object)
}

fn in_place(
    bytes: &[u8],
    account: &Account,
    parser: Parser,
) -> Option<Result<Value, RejectedMessage>> {
    let budget = InPlaceBudget::new(account);
    let parsed = (bytes.len() <= IN_PLACE).then(|| parser(bytes, &budget));
    parsed.filter(|_| !budget.is_exceeded())
}

/// A function that parses one JSON object.
type Parser = fn(&[u8], &dyn Budget) -> Result<Value, RejectedMessage>;

async fn parse_with(
    bytes: Bytes,
    account: &Account,
    parser: Parser,
) -> Result<Value, RejectedMessage> {
    if let Some(parsed) = in_place(&bytes, account, parser) {
        return parsed;
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

/// The memory of `rmcp`'s parser, in multiples of the parsed message: it builds a form of its own,
/// copies that for each kind of message that it tries, and then builds the message.
pub(crate) const SECOND_PARSE: u64 = 2;

/// Converts a JSON object of this size into a message.
pub(crate) async fn convert(
    value: Value,
    size: MessageSize,
    account: &Account,
) -> Result<ClientJsonRpcMessage, RejectedMessage> {
    if is_short(size.text, size.memory) {
        return to_message(value);
    }
    let id = request_id::of_object(&value);
    let rejected = |error| RejectedMessage { id, error };
    let memory = match reserve(account, size.memory.saturating_mul(SECOND_PARSE)) {
        Ok(memory) => memory,
        Err(error) => return Err(rejected(error)),
    };
    let budget = budget(account.clone());
    let work = offload(&budget, input_turns_within(&budget), move |_| Ok(to_message(value)));
    let converted = catch_panic(work).await;
    drop(memory);
    match converted {
        Ok(Ok(converted)) => converted,
        Ok(Err(why)) => Err(rejected(exhausted_error(UNREAD, why))),
        Err(_) => Err(rejected(panic_error())),
    }
}

/// The size of a message that has been parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MessageSize {
    /// The length of its text, in bytes.
    pub(crate) text: usize,
    /// The memory of its parsed form, in bytes.
    pub(crate) memory: u64,
}

/// The resources that are held for the first poll alone. A body takes a share of its address until
/// it is dropped, and the future may wait for minutes.
#[derive(Debug)]
pub(crate) struct FirstPoll {
    /// The memory of the parser.
    pub(crate) parse_memory: Charge,
    /// The message.
    #[expect(dead_code, reason = "counts for as long as it lives")]
    pub(crate) body: Bytes,
}

/// Runs a future whose first poll parses a message of this size: that poll on one of the host's own
/// threads if the message is long, the others there while the account holds much memory, since one
/// of them serializes the response.
pub(crate) async fn poll_first<F>(
    future: F,
    size: MessageSize,
    held: FirstPoll,
) -> Result<F::Output, ErrorData>
where
    F: Future<Output: Send> + Send + 'static,
{
    let mut future = Box::pin(future);
    let first = match is_short(size.text, size.memory) {
        true => poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await,
        false => {
            let polled;
            (polled, future) = poll_offloaded(future, held.parse_memory.account()).await?;
            polled
        }
    };
    let account = held.parse_memory.account().clone();
    // The future may wait for an answer to a question.
    drop(held);
    match first {
        Poll::Ready(output) => Ok(output),
        Poll::Pending => {
            let mut rest = LongPolls::new(future, account);
            let output = poll_fn(|cx| rest.poll(cx)).await;
            output.map_err(|why| exhausted_error(CANNOT_ANSWER, why))
        }
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
    use crate::http::guarded_bytes;
    use crate::messages::response_resources::set_plugin_turns;
    use palisade::internal::{MemoryLimits, Pool};
    use palisade::tool::Digest;
    use rmcp::model::{CallToolResult, ContentBlock, Extensions, RequestId, ServerResult};
    use std::cell::Cell;
    use std::pin::pin;
    use std::sync::Arc;
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

    /// Returns true if the first poll of a message is on this thread. All other polls are.
    async fn is_first_poll_here(text: usize, memory: u64) -> bool {
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
        let size = MessageSize { text, memory };
        let held = FirstPoll { parse_memory, body: Bytes::new() };
        let polls = poll_first(future, size, held).await.unwrap();
        let own = thread::current().id();
        assert_eq!((polls[1] == own, polls.len()), (true, 2));
        polls[0] == own
    }

    #[tokio::test]
    async fn first_poll_of_a_long_message_is_not_on_a_thread_of_the_runtime() {
        assert!(is_first_poll_here(IN_PLACE, IN_PLACE as u64).await);
        assert!(!is_first_poll_here(IN_PLACE + 1, IN_PLACE as u64).await);
        assert!(!is_first_poll_here(100, 1 << 20).await, "its parsed form is large");
    }

    #[tokio::test]
    async fn long_answer_is_not_made_on_a_thread_of_the_runtime() {
        let account = account();
        let of_request = account.clone();
        let mut polls = 0;
        let future = poll_fn(move |context| {
            polls += 1;
            if polls == 2 {
                return Poll::Ready(thread::current().id());
            }
            // The handler reserves the memory of the response before it is written.
            of_request.reserve(IN_PLACE as u64 + 1).unwrap();
            context.waker().wake_by_ref();
            Poll::Pending
        });
        let held = FirstPoll { parse_memory: account.charge(0).unwrap(), body: Bytes::new() };
        let size = MessageSize { text: 1, memory: 1 };
        assert_ne!(poll_first(future, size, held).await.unwrap(), thread::current().id());
    }

    #[tokio::test]
    async fn short_message_with_a_large_parsed_form_is_parsed_elsewhere() {
        thread_local! { static PARSED: Cell<usize> = const { Cell::new(0) } }
        fn counted(bytes: &[u8], budget: &dyn Budget) -> Result<Value, RejectedMessage> {
            let parsed = parse_object(bytes, budget)?;
            PARSED.set(PARSED.get() + 1);
            Ok(parsed)
        }
        let objects =
            |count: usize| format!(r#"{{"id":1,"a":[{}]}}"#, vec![r#"{"":0}"#; count].join(","));
        for (count, here) in [(20, 1), (4_600, 0)] {
            let message = objects(count);
            assert!(message.len() < IN_PLACE);
            PARSED.set(0);
            let account = account();
            let parsed = parse_with(message.into(), &account, counted).await.unwrap();
            assert_eq!(parsed["a"].as_array().unwrap().len(), count);
            assert_eq!(PARSED.get(), here, "{count}");
            assert!(account.held() > 600 * count as u64);
        }
    }

    #[tokio::test]
    async fn memory_of_parsing_and_the_body_are_released_before_the_answer() {
        for text in [IN_PLACE, IN_PLACE + 1] {
            let account = account();
            let parse_memory = account.charge(7).unwrap();
            let (send, answer) = tokio::sync::oneshot::channel::<u64>();
            let share = Arc::new(());
            let body = guarded_bytes(vec![7], share.clone());
            let held = FirstPoll { parse_memory, body };
            let answered = tokio::spawn(poll_first(answer, MessageSize { text, memory: 7 }, held));
            while account.held() > 0 || Arc::strong_count(&share) > 1 {
                tokio::task::yield_now().await;
            }
            send.send(3).unwrap();
            assert_eq!(answered.await.unwrap().unwrap(), Ok(3), "{text}");
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
