//! Parses and serializes large messages on the host's own threads: the threads of the runtime serve
//! all clients, so they do no work that is proportional to a message.

use super::answer::Written;
use super::frame::{self, HEAD, Refused};
use super::maker::Maker;
use super::{guarded, outcome};
use bytes::Bytes;
use palisade::internal::{Account, CallBudget, IN_PLACE, caught, input_turns, offload};
use palisade::tool::budget::Budget;
use rmcp::model::ServerJsonRpcMessage;
use serde_json::Value;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// The time limit of parsing or serializing one message, with the wait for a turn.
const TIME: Duration = Duration::from_secs(30);

/// Serializes a response, reserving its memory in the account of the request. Returns an error
/// response instead if there is not enough memory or time.
pub(super) async fn written(message: ServerJsonRpcMessage, maker: Maker) -> Written {
    match Written::at_once(&message, &maker.account) {
        Some(written) => written,
        None => large(message, maker).await,
    }
}

/// Serializes a response that is too long for this thread, in the turns of its plugin: many large
/// responses of one plugin delay no other work.
pub(super) async fn large(message: ServerJsonRpcMessage, maker: Maker) -> Written {
    let late = Written::late(&message);
    let (budget, account) = (budget(maker.account.clone()), maker.account.clone());
    let work = move |_| Ok(Written::answer(&message, &account));
    caught(offload(&budget, maker.turns(), work)).await.ok().and_then(Result::ok).unwrap_or(late)
}

/// A function that parses one JSON object.
type Parser = fn(&[u8], &dyn Budget) -> Result<Value, Refused>;

/// Parses one JSON object. Its memory stays reserved in the account.
pub(super) async fn checked(bytes: Bytes, account: &Account) -> Result<Value, Refused> {
    checked_by(bytes, account, frame::check).await
}

async fn checked_by(bytes: Bytes, account: &Account, parser: Parser) -> Result<Value, Refused> {
    if bytes.len() <= IN_PLACE {
        return parser(&bytes, account);
    }
    let head = bytes.slice(..HEAD);
    let budget = budget(account.clone());
    let parsed = offload(&budget, input_turns(), move |budget| Ok(parser(&bytes, &*budget)));
    let error = match caught(parsed).await {
        Ok(Ok(parsed)) => return parsed,
        Ok(Err(why)) => outcome::exhausted("the message cannot be read", why),
        Err(_) => guarded::failed(),
    };
    Err(Refused { id: frame::id_at_head(&head), error })
}

fn budget(account: Account) -> CallBudget {
    CallBudget::new(account, Instant::now() + TIME, CancellationToken::new())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use crate::maker;
    use palisade::internal::{MemoryLimits, Pool};
    use palisade::tool::Digest;
    use rmcp::model::{CallToolResult, ContentBlock, Extensions, RequestId, ServerResult};
    use std::pin::pin;

    fn account() -> Account {
        Account::new(MemoryLimits { call: u64::MAX, total: u64::MAX })
    }

    #[tokio::test]
    async fn waiting_answers_do_not_delay_a_large_input() {
        let pool = Pool::new(1);
        let taken = pool.share(Digest::of(b"another")).try_take(1).unwrap();
        let (maker, mut extensions) = (Maker::new(account()), Extensions::new());
        maker.attach(&mut extensions);
        maker::comes_from(&extensions, &pool.share(Digest::of(b"a plugin")));
        let result = CallToolResult::success(vec![ContentBlock::text("x".repeat(IN_PLACE))]);
        let answer = ServerJsonRpcMessage::response(
            ServerResult::CallToolResult(result),
            RequestId::Number(7),
        );
        let mut waits = pin!(large(answer, maker));
        let own = account();
        let input = format!(r#"{{"id":8,"params":"{}"}}"#, "x".repeat(IN_PLACE));
        tokio::select! {
            biased;
            _ = &mut waits => panic!("it has no turn"),
            read = checked(input.into(), &own) => assert!(read.is_ok()),
        }
        drop(taken);
        assert!(waits.await.into_line().0.len() > IN_PLACE);
    }

    #[tokio::test]
    async fn parser_panic_is_an_error_of_the_request() {
        for (head, id) in
            [(r#""id":7,"method":"x""#, Some(RequestId::Number(7))), (r#""a":1"#, None)]
        {
            let message = format!(r#"{{{head},"params":"{}"}}"#, "x".repeat(IN_PLACE));
            let refused = checked_by(message.into(), &account(), |_, _| panic!("on purpose"))
                .await
                .unwrap_err();
            assert_eq!((refused.id, refused.error.code.0), (id, -32603));
        }
    }
}
