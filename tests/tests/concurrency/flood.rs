//! More calls than the host can queue: the surplus is rejected at once, and other tools still get a
//! slot.

use palisade::{Call, Host, ToolOutput, plugins::Shipped};
use palisade_tests::Recorder;
use palisade_tests::case::block_on;
use palisade_tests::native::{StopSignal, Waiting, echo};
use palisade_tests::oracle::turn;
use serde_json::json;
use std::sync::Arc;

/// The maximum number of queued calls of one tool.
const WAITING: usize = 512;

#[test]
fn flood_of_one_tool_leaves_room_for_others() {
    // The queue is shared by the whole process.
    let _turn = turn();
    let (flood, recorder) = (
        Waiting::new("flood", StopSignal::ByContext, || Ok(ToolOutput::text("over"))),
        Recorder::default(),
    );
    let builder =
        Host::builder().shipped(Shipped::LeftOut).tool(flood.factory()).tool(echo("other"));
    let host = Arc::new(
        builder
            .tool_concurrency("flood", 1)
            .concurrency(256)
            .subscriber(Arc::new(recorder.clone()))
            .build()
            .unwrap(),
    );
    let session = host.new_session("flooded").build();
    // One call runs, 512 are queued, and the rest is rejected.
    let calls = (0..10_000).map(|_| Call::new("flood", "{}")).collect();
    let results = block_on(async {
        let (own, of) = (host.clone(), session.clone());
        let all = tokio::spawn(async move { own.dispatch_all(&of, calls).await });
        recorder
            .until(|events| {
                events.iter().filter(|event| event.is_terminal()).count() == 10_000 - 1 - WAITING
            })
            .await;
        let other = host.dispatch(&session, Call::new("other", "{}")).await;
        assert_eq!(other.output().as_deref(), Some("other"));
        session.cancel_all();
        all.await.unwrap()
    });
    let of = |class: &str| {
        results
            .iter()
            .filter(|result| result.error().is_some_and(|error| error.class().as_str() == class))
            .count()
    };
    assert_eq!((of("resource_exhausted"), of("cancelled")), (10_000 - 1 - WAITING, 1 + WAITING));
    let refused = results.last().and_then(|result| result.error()).unwrap().to_json();
    assert_eq!(
        (&refused["detail"]["limit"], &refused["detail"]["value"]),
        (&json!("queue"), &json!(WAITING))
    );
}
