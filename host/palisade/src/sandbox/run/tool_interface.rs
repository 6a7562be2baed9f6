//! The `palisade:tool/tools` interface: the calls that a running guest makes of other tools. They
//! end before the guest does: at its deadline and its cancellation, which they share, the guest
//! does not go on.

use super::interrupt::Interrupted;
use super::state::State;
use crate::sandbox::bindings::calling::palisade::tool::tools::{
    Failure, Host, Listed, Reply, Request,
};
use crate::sandbox::limits;
use crate::tool::ErrorClass;
use std::time::Instant;

/// The refusal of a tool that may call no others.
const MAY_NOT: &str =
    "this tool may call no other tool: it has no grant for that, or another tool has called it";
/// The refusal of too many calls at once.
const TOO_MANY: &str = "at most 32 calls are made at once; make them in several steps";

impl Host for State {
    fn list(&mut self) -> wasmtime::Result<Vec<Listed>> {
        self.tool_calls.as_mut().map_or_else(|| Ok(Vec::new()), |calls| calls.list())
    }

    async fn call(&mut self, request: Request) -> wasmtime::Result<Result<Reply, Failure>> {
        let mut results = self.call_all(vec![request]).await?;
        Ok(results.pop().unwrap_or_else(|| Err(refused(ErrorClass::Cancelled, "no result"))))
    }

    async fn call_all(
        &mut self,
        requests: Vec<Request>,
    ) -> wasmtime::Result<Vec<Result<Reply, Failure>>> {
        let refuse = |class, reason| -> wasmtime::Result<Vec<Result<Reply, Failure>>> {
            Ok(requests.iter().map(|_| Err(refused(class, reason))).collect())
        };
        let Some(calls) = &mut self.tool_calls else {
            return refuse(ErrorClass::PermissionDenied, MAY_NOT);
        };
        if requests.len() > limits::NESTED_AT_ONCE {
            return refuse(ErrorClass::ValidationError, TOO_MANY);
        }
        let signals = self.messages.signals().clone();
        let answered = calls.call(requests, &signals).await;
        // A question has paused the clock, which moves the deadline.
        self.deadline = calls.deadline();
        if self.messages.cancel().is_cancelled() {
            return Err(Interrupted::Cancelled.into());
        }
        if Instant::now() >= self.deadline {
            return Err(Interrupted::Deadline.into());
        }
        answered
    }
}

fn refused(class: ErrorClass, reason: &str) -> Failure {
    Failure { class: class.as_str().to_owned(), message: reason.to_owned(), content: Vec::new() }
}
