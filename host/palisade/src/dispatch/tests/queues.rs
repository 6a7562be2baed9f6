//! Tests that the queues of a call share one time limit.

use crate::dispatch::CallMode;
use crate::execution::{BoxFuture, Tool, ToolContext, ToolOutput, ValidInput};
use crate::host::{Host, HostBuilder};
use crate::plugins::Shipped;
use crate::sandbox::limits::QUEUE_TIMEOUT;
use crate::tool::{Call, Definition, ErrorClass, ErrorKind, SideEffects};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// For each call, the remaining time in the queue and the time already spent.
type Seen = Arc<Mutex<Vec<(Duration, Duration)>>>;

/// A tool that records these times and ends when it is released.
struct Waiting {
    definition: Definition,
    seen: Seen,
    gate: Arc<Semaphore>,
}

impl Tool for Waiting {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn execute<'a>(
        &'a self,
        _: ValidInput,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ErrorKind>> {
        let spent = context.time_limit() - context.clock().budget();
        self.seen.lock().unwrap().push((context.times().queue, spent));
        Box::pin(async {
            self.gate.acquire().await.unwrap().forget();
            Ok(ToolOutput::text("done"))
        })
    }
}

/// Creates a host with this tool only.
fn waiting(builder: HostBuilder, schema: Value) -> (Host, Seen, Arc<Semaphore>) {
    let seen = Seen::default();
    let gate = Arc::new(Semaphore::new(0));
    let host = builder.shipped(Shipped::LeftOut).build().unwrap();
    let noted = seen.clone();
    let held = gate.clone();
    let make = move || {
        let definition =
            Definition::new("waiting", "A tool.", SideEffects::None, schema.clone()).unwrap();
        Box::new(Waiting { definition, seen: noted.clone(), gate: held.clone() }) as Box<dyn Tool>
    };
    host.registry().register(Arc::new(make)).unwrap();
    (host, seen, gate)
}

#[tokio::test]
async fn queued_input_check_is_bounded_without_using_call_time() {
    const WAIT: Duration = Duration::from_millis(200);
    let path = json!({"type": "string", "format": "workspace-path"});
    let builder = Host::builder().call_mode(CallMode::OwnThreads { threads: 1, lost: 1 });
    let (host, seen, gate) =
        waiting(builder, json!({"type": "object", "properties": {"path": path}}));
    let session = host.new_session("s").build();
    let call = |id: &str| host.dispatch(&session, Call::new("waiting", json!({})).with_id(id));
    let beside = async {
        while seen.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        let long = Call::new("waiting", json!({"path": "x".repeat(2 << 20)}));
        let refused = host.dispatch(&session, long).await;
        assert_eq!(
            refused.error().map(crate::tool::ToolError::class),
            Some(ErrorClass::ValidationError),
            "{refused}"
        );
        let let_go = async {
            let begun = Instant::now();
            while begun.elapsed() < WAIT {
                tokio::task::yield_now().await;
            }
            gate.add_permits(2);
        };
        tokio::join!(call("b"), let_go).0
    };
    let (first, second) = tokio::join!(call("a"), beside);
    assert!(first.is_success() && second.is_success(), "{first} {second}");
    let (patience, spent) = seen.lock().unwrap()[1];
    assert!(patience <= QUEUE_TIMEOUT - WAIT && patience > Duration::ZERO, "{patience:?}");
    assert!(spent < WAIT, "{spent:?}");
}

#[tokio::test]
async fn time_in_the_session_queue_reduces_the_sandbox_queue() {
    let (host, seen, gate) = waiting(Host::builder().concurrency(1), json!({"type": "object"}));
    let session = host.new_session("s").build();
    let call = |id: &str| Call::new("waiting", json!({})).with_id(id);
    let let_both_go = async {
        while session.in_flight() < 2 {
            tokio::task::yield_now().await;
        }
        gate.add_permits(2);
    };
    let (first, second, ()) = tokio::join!(
        host.dispatch(&session, call("a")),
        host.dispatch(&session, call("b")),
        let_both_go
    );
    assert!(first.is_success() && second.is_success());
    let seen = seen.lock().unwrap();
    assert_eq!(seen[0].0, QUEUE_TIMEOUT, "the first had not waited");
    assert!(seen[1].0 < QUEUE_TIMEOUT && seen[1].0 > Duration::ZERO, "the second had: {seen:?}");
}

#[tokio::test]
async fn explanation_waits_for_a_thread() {
    let path = json!({"type": "string", "format": "workspace-path"});
    let builder = Host::builder().call_mode(CallMode::OwnThreads { threads: 1, lost: 1 });
    let (host, seen, gate) =
        waiting(builder, json!({"type": "object", "properties": {"path": path}}));
    let host = Arc::new(host);
    let call = || Call::new("waiting", json!({}));
    let beside = async {
        while seen.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        let own = host.clone();
        let projected_changes = tokio::task::spawn_blocking(move || {
            own.explain(own.session(), call()).unwrap().changes
        });
        let queue = host.registry().get("waiting").unwrap().queue().clone();
        while queue.pool().held() == 0 && !projected_changes.is_finished() {
            tokio::task::yield_now().await;
        }
        gate.add_permits(1);
        projected_changes.await.unwrap()
    };
    let (ran, projected_changes) = tokio::join!(host.dispatch(host.session(), call()), beside);
    assert!(ran.is_success(), "{ran}");
    assert_eq!(projected_changes.unwrap(), [""; 0]);
}

#[tokio::test]
async fn queued_explanation_ends_when_cancelled() {
    let path = json!({"type": "string", "format": "workspace-path"});
    let builder = Host::builder().call_mode(CallMode::OwnThreads { threads: 1, lost: 1 });
    let (host, seen, gate) =
        waiting(builder, json!({"type": "object", "properties": {"path": path}}));
    let host = Arc::new(host);
    let call = || Call::new("waiting", json!({}));
    let beside = async {
        while seen.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        let own = host.clone();
        let cancelled = call();
        cancelled.cancel.cancel();
        let projected_changes = tokio::task::spawn_blocking(move || {
            own.explain(own.session(), cancelled).unwrap().changes
        });
        let projected_changes = projected_changes.await.unwrap();
        gate.add_permits(1);
        projected_changes
    };
    let (ran, projected_changes) = tokio::join!(host.dispatch(host.session(), call()), beside);
    assert!(ran.is_success(), "{ran}");
    assert!(matches!(projected_changes, Err(ErrorKind::Cancelled)), "{projected_changes:?}");
}
