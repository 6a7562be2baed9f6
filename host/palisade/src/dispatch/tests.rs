//! Tests of the pipeline with misbehaving collaborators.

#![allow(clippy::unwrap_used, reason = "a test that cannot prepare its host has failed")]

mod checked;
mod gone;
mod queues;
mod unused;

use super::Requester;
use crate::confirm::{Answer, ConfirmationRequest, Confirmer, Unavailable};
use crate::events::{Envelope, Subscriber};
use crate::execution::{BoxFuture, Tool, ToolContext, ToolOutput, ValidInput};
use crate::host::Host;
use crate::plugins::Shipped;
use crate::policy::Mode;
use crate::tool::{Call, Definition, ErrorClass, ErrorKind, SideEffects};
use crate::workspace::{HardLinks, ProtectedTree, Protection, Reading};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

type Body = fn(&Value) -> Result<ToolOutput, ErrorKind>;

struct Native(Definition, Body);

impl Tool for Native {
    fn definition(&self) -> &Definition {
        &self.0
    }

    fn execute<'a>(
        &'a self,
        input: ValidInput,
        _: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ErrorKind>> {
        Box::pin(async move { (self.1)(input.value()) })
    }
}

#[derive(Default)]
struct Recording(Mutex<Vec<&'static str>>);

impl Subscriber for Recording {
    fn receive(&self, event: &Envelope) {
        self.0.lock().unwrap().push(event.event.name());
    }
}

struct PanickingSubscriber;

impl Subscriber for PanickingSubscriber {
    fn receive(&self, _: &Envelope) {
        panic!("a subscriber of somebody else");
    }
}

struct PanickingConfirmer;

impl Confirmer for PanickingConfirmer {
    fn confirm<'a>(
        &'a self,
        _: &'a ConfirmationRequest,
    ) -> BoxFuture<'a, Result<Answer, Unavailable>> {
        panic!("a confirmer of somebody else");
    }
}

/// A confirmer that counts its requests and allows each.
#[derive(Default)]
struct Yes(AtomicUsize);

impl Confirmer for Yes {
    fn confirm<'a>(
        &'a self,
        _: &'a ConfirmationRequest,
    ) -> BoxFuture<'a, Result<Answer, Unavailable>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Box::pin(async { Ok(Answer::Allow) })
    }
}

fn host(
    class: SideEffects,
    body: Body,
    change: impl FnOnce(crate::host::HostBuilder) -> crate::host::HostBuilder,
) -> Host {
    let host = change(Host::builder().shipped(Shipped::LeftOut)).build().unwrap();
    let make = move || {
        let definition =
            Definition::new("native", "A tool.", class, json!({"type": "object"})).unwrap();
        Box::new(Native(definition, body)) as Box<dyn Tool>
    };
    host.registry().register(Arc::new(make)).unwrap();
    host
}

#[tokio::test]
async fn native_panic_becomes_a_result() {
    let recording = Arc::new(Recording::default());
    let body: Body = |input| {
        if input["panic"] == true {
            panic!("secret of the developer")
        } else {
            Ok(ToolOutput::text("fine"))
        }
    };
    let host = host(SideEffects::None, body, |builder| builder.subscriber(recording.clone()));
    let failed = host.call("native", json!({"panic": true}), json!({})).await;
    let error = failed.error().unwrap();
    assert_eq!((error.class(), error.is_user_visible()), (ErrorClass::ExecutionError, false));
    assert!(!error.message().contains("secret"), "{error}");
    assert!(host.call("native", json!({}), json!({})).await.is_success());
    assert_eq!(
        *recording.0.lock().unwrap(),
        ["tool.called", "tool.failed", "tool.called", "tool.completed"]
    );
}

#[tokio::test]
async fn confirmer_panic_denies_the_call() {
    let host = host(
        SideEffects::Write,
        |_| Ok(ToolOutput::text("ran")),
        |builder| builder.confirmer(Arc::new(PanickingConfirmer)),
    );
    assert!(host.call("native", json!({}), json!({})).await.is_failure());
}

#[tokio::test]
async fn subscriber_panic_does_not_affect_the_call() {
    let recording = Arc::new(Recording::default());
    let both = |builder: crate::host::HostBuilder| {
        builder.subscriber(Arc::new(PanickingSubscriber)).subscriber(recording.clone())
    };
    let host = host(SideEffects::None, |_| Ok(ToolOutput::text("ran")), both);
    assert!(host.call("native", json!({}), json!({})).await.is_success());
    assert_eq!(*recording.0.lock().unwrap(), ["tool.called", "tool.completed"]);
}

#[tokio::test]
async fn prompt_once_asks_once_and_prompt_every_time() {
    for (mode, questions) in [(Mode::PromptOnce, 1), (Mode::Prompt, 2)] {
        let confirmer = Arc::new(Yes::default());
        let policy = crate::policy::Policy::default().with_tool("native", mode);
        let host = host(
            SideEffects::Write,
            |_| Ok(ToolOutput::text("ran")),
            |builder| builder.policy(policy).confirmer(confirmer.clone()),
        );
        for _ in 0..2 {
            assert!(host.call("native", json!({}), json!({})).await.is_success());
        }
        assert_eq!(confirmer.0.load(Ordering::SeqCst), questions, "{mode}");
    }
}

/// A confirmer that counts its requests and answers each with *always*.
#[derive(Default)]
struct Always(AtomicUsize);

impl Confirmer for Always {
    fn confirm<'a>(
        &'a self,
        _: &'a ConfirmationRequest,
    ) -> BoxFuture<'a, Result<Answer, Unavailable>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Box::pin(async { Ok(Answer::Always) })
    }
}

#[tokio::test]
async fn question_has_an_expiry() {
    let in_time = |request: &ConfirmationRequest| {
        let left = request.expires.duration_since(std::time::SystemTime::now());
        if left.is_ok_and(|left| left <= request.valid_for) { Answer::Allow } else { Answer::Deny }
    };
    let change = |builder: crate::host::HostBuilder| {
        builder.confirmer(Arc::new(crate::confirm::ConfirmFn::new(in_time)))
    };
    let host = host(SideEffects::Write, |_| Ok(ToolOutput::text("ran")), change);
    assert!(host.call("native", json!({}), json!({})).await.is_success());
}

#[tokio::test]
async fn call_reading_a_hidden_path_is_refused_without_question() {
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("own"), "x").unwrap();
    let asked = Arc::new(Yes::default());
    let policy = crate::policy::Policy::default().with_tool("native", Mode::Prompt);
    let builder = Host::builder().shipped(Shipped::LeftOut).workspace(root.path());
    let host = builder.policy(policy).confirmer(asked.clone()).build().unwrap();
    let make = || {
        let schema = json!({"type": "object", "properties": {"path": {"type": "string", "format": "workspace-path"}}});
        let definition = Definition::new("native", "A tool.", SideEffects::Read, schema).unwrap();
        Box::new(Native(definition, |_| Ok(ToolOutput::text("ran")))) as Box<dyn Tool>
    };
    host.registry().register(Arc::new(make)).unwrap();
    let session = host.new_session("s").build();
    let own = root.path().canonicalize().unwrap().join("own");
    let trees = vec![Arc::new(ProtectedTree::open(&own, Reading::Refused).unwrap())];
    session.workspace().keep_rules_of(&Arc::new(Protection::new(HardLinks::Refuse, trees)));
    for (path, runs) in [("own", false), ("other", true)] {
        let result = host.dispatch(&session, Call::new("native", json!({"path": path}))).await;
        assert_eq!(
            (result.is_success(), asked.0.load(Ordering::SeqCst) == 1),
            (runs, runs),
            "{path}"
        );
    }
}

#[test]
fn changes_are_projected_for_writing_classes_only() {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string", "format": "workspace-path"}}});
    for (class, changes) in [
        (SideEffects::None, false),
        (SideEffects::Read, false),
        (SideEffects::Network, false),
        (SideEffects::Write, true),
        (SideEffects::Execute, true),
    ] {
        let root = tempfile::tempdir().unwrap();
        let host =
            Host::builder().shipped(Shipped::LeftOut).workspace(root.path()).build().unwrap();
        let schema = schema.clone();
        let make = move || {
            let definition = Definition::new("native", "A tool.", class, schema.clone()).unwrap();
            Box::new(Native(definition, |_| Ok(ToolOutput::text("ran")))) as Box<dyn Tool>
        };
        host.registry().register(Arc::new(make)).unwrap();
        let explanation =
            host.explain(host.session(), Call::new("native", json!({"path": "a.txt"}))).unwrap();
        let expected: &[&str] = if changes { &["a.txt"] } else { &[] };
        assert_eq!(explanation.changes.unwrap(), expected, "{class}");
    }
}

#[test]
fn path_that_is_only_read_is_not_listed_as_changed() {
    let path = |access| json!({"type": "string", "format": "workspace-path", "x-access": access});
    let schema = json!({"type": "object", "properties": {
        "from": path("read"),
        "more": {"type": "array", "items": path("read")},
        "to": path("write"),
        "unsaid": {"type": "string", "format": "workspace-path"},
    }});
    for class in [SideEffects::Write, SideEffects::Execute] {
        let root = tempfile::tempdir().unwrap();
        let host =
            Host::builder().shipped(Shipped::LeftOut).workspace(root.path()).build().unwrap();
        let schema = schema.clone();
        let make = move || {
            let definition = Definition::new("native", "A tool.", class, schema.clone()).unwrap();
            Box::new(Native(definition, |_| Ok(ToolOutput::text("ran")))) as Box<dyn Tool>
        };
        host.registry().register(Arc::new(make)).unwrap();
        let changes =
            |input| host.explain(host.session(), Call::new("native", input)).unwrap().changes;
        let input = json!({"from": "a", "more": ["b", ".git/HEAD"], "to": "c", "unsaid": "d"});
        assert_eq!(changes(input).unwrap(), ["c", "d"], "{class}");
        let protected = changes(json!({"to": ".git/HEAD"}));
        assert_eq!(protected.is_err(), class == SideEffects::Write, "{protected:?}");
    }
}

#[tokio::test]
async fn question_is_prepared_within_the_calls_timeout() {
    let paths = json!({"type": "array", "items": {"type": "string", "format": "workspace-path"}});
    let schema = json!({"type": "object", "properties": {"paths": paths}});
    let root = tempfile::tempdir().unwrap();
    let builder = Host::builder()
        .shipped(Shipped::LeftOut)
        .workspace(root.path())
        .confirmer(Arc::new(Yes::default()));
    let host = builder.tool_timeout("native", Duration::from_millis(1)).build().unwrap();
    let make = move || {
        let definition =
            Definition::new("native", "A tool.", SideEffects::Write, schema.clone()).unwrap();
        Box::new(Native(definition, |_| Ok(ToolOutput::text("ran")))) as Box<dyn Tool>
    };
    host.registry().register(Arc::new(make)).unwrap();
    let paths: Vec<String> = (0..4_000).map(|number| number.to_string()).collect();
    let call = Call::new("native", json!({"paths": paths})).with_timeout(Duration::from_secs(60));
    let result = host.dispatch(host.session(), call).await;
    assert!(result.is_success(), "{result}");
}

#[tokio::test]
async fn missing_confirmer_refusal_names_tool_or_class() {
    let by_tool = crate::policy::Policy::default().with_tool("native", Mode::Prompt);
    for (policy, words) in [
        (by_tool, "`native` (class write) needs a confirmation"),
        (
            crate::policy::Policy::default(),
            "`native` is of class write, which needs a confirmation",
        ),
    ] {
        let host = host(
            SideEffects::Write,
            |_| Ok(ToolOutput::text("ran")),
            |builder| builder.policy(policy),
        );
        let refused = host.call("native", json!({}), json!({})).await;
        assert!(refused.error().unwrap().message().contains(words), "{:?}", refused.error());
    }
}

#[tokio::test]
async fn always_answer_of_an_unidentified_caller_counts_once() {
    for mode in [Mode::Prompt, Mode::PromptOnce] {
        for (requester, questions) in
            [(Requester::default(), 1), (Requester::default().without_memory(), 3)]
        {
            let confirmer = Arc::new(Always::default());
            let policy = crate::policy::Policy::default().with_tool("native", mode);
            let change = |builder: crate::host::HostBuilder| {
                builder.policy(policy).confirmer(confirmer.clone())
            };
            let host = host(SideEffects::Write, |_| Ok(ToolOutput::text("ran")), change);
            let session = host.new_session("s").build();
            for _ in 0..3 {
                let call = Call::new("native", json!({}));
                assert!(host.dispatch_as(&session, call, &requester).await.is_success());
            }
            assert_eq!(confirmer.0.load(Ordering::SeqCst), questions, "{mode}");
            // The answer does not apply to an identified caller either.
            let call = Call::new("native", json!({}));
            assert!(host.dispatch_as(&session, call, &Requester::default()).await.is_success());
            assert_eq!(
                confirmer.0.load(Ordering::SeqCst),
                if questions == 1 { 1 } else { 4 },
                "{mode}"
            );
        }
    }
}

#[tokio::test]
async fn call_cancelled_before_start_never_runs() {
    let recording = Arc::new(Recording::default());
    let host = host(
        SideEffects::None,
        |_| Ok(ToolOutput::text("ran")),
        |builder| builder.subscriber(recording.clone()),
    );
    let call = Call::new("native", json!({}));
    call.cancel.cancel();
    let result = host.dispatch(host.session(), call).await;
    assert_eq!(result.error().unwrap().class(), ErrorClass::Cancelled);
    assert_eq!(*recording.0.lock().unwrap(), ["tool.failed"]);
}

#[test]
fn call_without_a_runtime_is_a_result() {
    let host = host(SideEffects::None, |_| Ok(ToolOutput::text("ran")), |builder| builder);
    let mut call = std::pin::pin!(host.call("native", json!({}), json!({})));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let std::task::Poll::Ready(result) = Future::poll(call.as_mut(), &mut context) else {
        panic!("it waits")
    };
    assert!(result.error().unwrap().message().contains("tokio runtime"));
}
