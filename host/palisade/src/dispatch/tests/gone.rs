//! Tests of the events of a call whose caller is gone.

use crate::events::{Envelope, Event, Subscriber};
use crate::execution::{BoxFuture, Tool, ToolContext, ToolOutput, ValidInput};
use crate::host::Host;
use crate::plugins::Shipped;
use crate::tool::{Definition, ErrorClass, ErrorKind, SideEffects};
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

/// A tool that emits the pieces of its input and never ends.
struct Endless(Definition);

impl Tool for Endless {
    fn definition(&self) -> &Definition {
        &self.0
    }

    fn execute<'a>(
        &'a self,
        input: ValidInput,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ErrorKind>> {
        Box::pin(async move {
            for piece in input.value()["pieces"].as_array().into_iter().flatten() {
                context.sink().emit(piece.as_str().unwrap_or_default());
            }
            std::future::pending().await
        })
    }
}

/// A subscriber that records failed calls.
#[derive(Default)]
struct Failures(Mutex<Vec<(ErrorClass, Option<String>)>>);

impl Subscriber for Failures {
    fn receive(&self, event: &Envelope) {
        if let Event::Failed(_, failure) = &event.event {
            self.0.lock().unwrap().push((failure.class, failure.partial_output.clone()));
        }
    }
}

#[tokio::test]
async fn partial_output_survives_a_dropped_caller() {
    let failures = Arc::new(Failures::default());
    let definition =
        Definition::new("endless", "A tool.", SideEffects::None, json!({"type": "object"}))
            .unwrap();
    let host = Host::builder()
        .shipped(Shipped::LeftOut)
        .tool(Arc::new(move || Box::new(Endless(definition.clone()))))
        .subscriber(failures.clone())
        .build()
        .unwrap();
    for (pieces, expected) in
        [(json!(["one ", "two"]), Some("one two".to_owned())), (json!([]), None)]
    {
        let mut call = Box::pin(host.call("endless", json!({"pieces": pieces}), json!({})));
        // The native tool runs in a task of its own, which makes progress between these polls.
        for _ in 0..16 {
            assert!(matches!(
                call.as_mut().poll(&mut Context::from_waker(Waker::noop())),
                Poll::Pending
            ));
            tokio::task::yield_now().await;
        }
        drop(call);
        let failed = std::mem::take(&mut *failures.0.lock().unwrap());
        assert_eq!(failed, [(ErrorClass::Cancelled, expected)]);
    }
}
