//! Tests of large inputs: their check ends midway with the call, and a question holds only their
//! text.

use crate::confirm::{Answer, ConfirmationRequest, Confirmer, Unavailable};
use crate::dispatch::{CallMode, Requester};
use crate::execution::account::Account;
use crate::execution::account::budget_checks::wait_until_exhausted;
use crate::execution::{BoxFuture, Tool, ToolContext, ToolOutput, ValidInput};
use crate::host::Host;
use crate::plugins::Shipped;
use crate::sandbox::Limits;
use crate::tool::json::JsonBounds;
use crate::tool::{Call, Definition, ErrorClass, ErrorKind, SideEffects, ToolError};
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A tool that does nothing.
struct Idle(Definition);

impl Tool for Idle {
    fn definition(&self) -> &Definition {
        &self.0
    }

    fn execute<'a>(
        &'a self,
        _: ValidInput,
        _: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ErrorKind>> {
        Box::pin(async { Ok(ToolOutput::text("done")) })
    }
}

/// Creates a host with a tool whose list has so many keywords, and which names a path, so that the
/// call mode applies.
fn host(mode: CallMode, keywords: usize) -> Host {
    let list = json!({"type": "array", "items": {"allOf": vec![json!({"minimum": -1}); keywords]}});
    let path = json!({"type": "string", "format": "workspace-path"});
    let schema = json!({"type": "object", "properties": {"list": list, "path": path}});
    let definition = Definition::new("idle", "A tool.", SideEffects::None, schema).unwrap();
    let host = Host::builder().shipped(Shipped::LeftOut).call_mode(mode);
    host.tool(Arc::new(move || Box::new(Idle(definition.clone())))).build().unwrap()
}

/// Runs a call with a long input that ends its budget, once `end` was called, within the given
/// budget check. Returns the class of its error and the number of checks.
async fn called_until(
    check: usize,
    host: Host,
    time: Duration,
    cancel: CancellationToken,
    end: impl Fn() + Send + Sync + 'static,
) -> (Option<ErrorClass>, usize) {
    let account = Limits::default().account();
    account.on_budget_check(move |number, budget| {
        if number == check {
            end();
            wait_until_exhausted(budget);
        }
    });
    let input = format!("{{\"list\":[{}1]}}", "1,".repeat(20_000));
    let call = Call::new("idle", input).with_timeout(time).with_cancellation(cancel);
    let tool = host.registry().get("idle").unwrap();
    let class = {
        let requester = Requester::default().with_account(Some(account.clone()));
        let result = host.dispatch_to(host.session(), call, tool, &requester).await;
        result.error().map(ToolError::class)
    };
    drop(host);
    (class, account.count_budget_checks().await)
}

const LONG: Duration = Duration::from_secs(60);
/// The timeout of a call that waits for its deadline.
const SHORT: Duration = Duration::from_secs(1);

#[tokio::test]
async fn input_check_ends_at_deadline_and_cancellation() {
    for mode in [CallMode::InPlace, CallMode::OWN_THREADS] {
        let never = CancellationToken::new;
        let (_, parsing) = called_until(0, host(mode, 1), LONG, never(), || {}).await;
        let (class, whole) = called_until(0, host(mode, 90), LONG, never(), || {}).await;
        let midway = 2 * parsing;
        assert!(class.is_none() && whole > 2 * midway, "{mode:?}: {class:?}, {parsing} of {whole}");

        let late = called_until(midway, host(mode, 90), SHORT, never(), || {}).await;
        assert_eq!(late, (Some(ErrorClass::Timeout), midway), "{mode:?}");

        let cancel = CancellationToken::new();
        let own = cancel.clone();
        let cancelled =
            called_until(midway, host(mode, 90), LONG, cancel, move || own.cancel()).await;
        assert_eq!(cancelled, (Some(ErrorClass::Cancelled), midway), "{mode:?}");
    }
}

/// A confirmer that notes the memory of the call's account while it is asked.
struct NotesMemory(Account, Mutex<u64>);

impl Confirmer for NotesMemory {
    fn confirm<'a>(
        &'a self,
        _: &'a ConfirmationRequest,
    ) -> BoxFuture<'a, Result<Answer, Unavailable>> {
        *self.1.lock().unwrap() = self.0.held();
        Box::pin(async { Ok(Answer::Allow) })
    }
}

#[tokio::test]
async fn open_question_holds_the_text_of_the_input_only() {
    for members in [10_000, 90_000] {
        let account = Limits::default().account();
        let confirmer = Arc::new(NotesMemory(account.clone(), Mutex::new(0)));
        let schema = json!({"type": "object"});
        let definition = Definition::new("idle", "A tool.", SideEffects::Write, schema).unwrap();
        let host = Host::builder().shipped(Shipped::LeftOut).confirmer(confirmer.clone());
        let host = host.tool(Arc::new(move || Box::new(Idle(definition.clone())))).build().unwrap();
        let input = json!({"list": vec![1; members]});
        let length = input.to_string().len() as u64;
        let requester = Requester::default().with_account(Some(account.clone()));
        account.reserve(JsonBounds::CALL_INPUT.admit(&input).unwrap()).unwrap();
        let parsed = account.held();
        let tool = host.registry().get("idle").unwrap();
        let call = Call::new("idle", input);
        let result = host.dispatch_to(host.session(), call, tool, &requester).await;
        assert!(result.is_success(), "{result:?}");
        let held = *confirmer.1.lock().unwrap();
        assert!(held < 2 * length && parsed > 4 * length, "{held} of {parsed}, text {length}");
    }
}
