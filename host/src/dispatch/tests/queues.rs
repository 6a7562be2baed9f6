//! What a call waits for in one queue, it does not wait for in the next.

use crate::execution::{BoxFuture, Tool, ToolContext, ToolOutput, ValidInput};
use crate::host::Host;
use crate::plugins::Shipped;
use crate::sandbox::limits::QUEUE_TIMEOUT;
use crate::tool::{Call, Definition, ErrorKind, SideEffects};
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Semaphore;

/// Notes how much longer each of its calls might wait for a sandbox, and ends when it is let go.
struct Waiting {
    definition: Definition,
    seen: Arc<Mutex<Vec<Duration>>>,
    gate: Arc<Semaphore>,
}

impl Tool for Waiting {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn execute<'a>(&'a self, _: ValidInput, context: &'a ToolContext) -> BoxFuture<'a, Result<ToolOutput, ErrorKind>> {
        self.seen.lock().unwrap().push(context.times().queue);
        Box::pin(async {
            self.gate.acquire().await.unwrap().forget();
            Ok(ToolOutput::text("done"))
        })
    }
}

#[tokio::test]
async fn the_time_in_the_sessions_queue_counts_for_the_sandboxs_queue_too() {
    let (seen, gate) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Semaphore::new(0)));
    let host = Host::builder().shipped(Shipped::LeftOut).concurrency(1).build().unwrap();
    let (noted, held) = (seen.clone(), gate.clone());
    let make = move || {
        let definition = Definition::new("waiting", "A tool.", SideEffects::None, json!({"type": "object"})).unwrap();
        Box::new(Waiting { definition, seen: noted.clone(), gate: held.clone() }) as Box<dyn Tool>
    };
    host.registry().register(Arc::new(make)).unwrap();
    let session = host.new_session("s").build();
    let call = |id: &str| Call::new("waiting", json!({})).with_id(id);
    let let_both_go = async {
        while session.in_flight() < 2 {
            tokio::task::yield_now().await;
        }
        gate.add_permits(2);
    };
    let (first, second, ()) =
        tokio::join!(host.dispatch(&session, call("a")), host.dispatch(&session, call("b")), let_both_go);
    assert!(first.is_success() && second.is_success());
    let seen = seen.lock().unwrap();
    assert_eq!(seen[0], QUEUE_TIMEOUT, "the first had not waited");
    assert!(seen[1] < QUEUE_TIMEOUT && seen[1] > Duration::ZERO, "the second had: {seen:?}");
}
