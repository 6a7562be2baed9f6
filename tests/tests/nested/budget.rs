//! The budget of a program: what its calls use is its own.

use super::{granting, making, results};
use palisade::policy::Policy;
use palisade::{Call, SideEffects, ToolOutput, json};
use palisade_tests::native::Native;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

#[tokio::test]
async fn program_makes_at_most_256_calls() {
    let stage = granting(&["calculate"], |builder| builder);
    let calls = json!([{"tool": "calculate", "input": {"expression": "1"}}]);
    let times = |times: usize| Call::new("nested_run", json!({"calls": calls, "times": times}));
    let result = stage.host.dispatch(&stage.session(), times(256)).await;
    assert!(results(&result).iter().all(|(class, _)| class.is_empty()), "{result}");
    let result = stage.host.dispatch(&stage.session(), times(10_000).with_id("many")).await;
    let last = results(&result).pop().unwrap();
    assert_eq!(last.0, "resource_exhausted");
    assert!(last.1.contains("`nested_calls` of 256"), "{}", last.1);
    let inner = stage.recorder.events();
    let inner = inner.iter().filter(|event| event.is_terminal()).filter(|event| {
        event.subject().unwrap().parent.as_ref().is_some_and(|parent| parent.as_str() == "many")
    });
    assert_eq!(inner.count(), 256);
}

#[tokio::test]
async fn memory_of_calls_is_that_of_their_program() {
    let stage = granting(&["nested_hold"], |builder| builder);
    let hold = |mib: usize| json!({"tool": "nested_hold", "input": {"mib": mib}});
    let result = stage.host.dispatch(&stage.session(), making(&json!([hold(90), hold(90)]))).await;
    let one_after_the_other = results(&result);
    assert!(one_after_the_other.iter().all(|(class, _)| class.is_empty()), "{result}");
    let result = stage.host.dispatch(&stage.session(), making(&json!([hold(160)]))).await;
    let (class, text) = results(&result).remove(0);
    assert_eq!(class, "resource_exhausted", "{text}");
    assert!(text.contains("`memory`"), "{text}");
}

#[tokio::test]
async fn results_of_calls_count_in_the_memory_of_their_program() {
    let stage = granting(&["read_file"], |builder| builder);
    stage.world.file("large.txt", "x".repeat(3 << 20));
    let read = json!({"path": "large.txt", "limit": 3 << 20});
    let calls: Vec<_> = (0..32).map(|_| json!({"tool": "read_file", "input": read})).collect();
    let input = json!({"calls": calls, "order": "at_once"});
    let result = stage.host.dispatch(&stage.session(), Call::new("nested_run", input)).await;
    let error = result.error().expect("it has no memory for 96 MiB of results and a copy");
    assert_eq!(error.class().as_str(), "resource_exhausted", "{result}");
}

#[tokio::test]
async fn files_that_calls_write_are_bounded_together() {
    let stage = granting(&["write_file"], |builder| {
        builder.policy(Policy::default().allowing(SideEffects::Write))
    });
    let content = "x".repeat(900 << 10);
    let write = |n: usize| json!({"path": format!("{n}.txt"), "content": content});
    // 64 MiB is the quota of one call. The inputs stay small, since the guest repeats them.
    let calls = json!([{"tool": "write_file", "input": write(0)}]);
    let input = json!({"calls": calls, "times": 100});
    let call = Call::new("nested_run", input).with_id("outer");
    let result = stage.host.dispatch(&stage.session(), call).await;
    let last = results(&result).pop().unwrap();
    assert_eq!(last.0, "resource_exhausted", "{}", last.1);
    assert!(last.1.contains("bytes_written"), "{}", last.1);
    assert!(result.usage().bytes_written <= 64 << 20);
}

#[tokio::test]
async fn more_than_32_calls_at_once_are_refused() {
    let stage = granting(&["calculate"], |builder| builder);
    let call = json!({"tool": "calculate", "input": {"expression": "1"}});
    for (count, class) in [(32, ""), (33, "validation_error")] {
        let calls: Vec<_> = (0..count).map(|_| call.clone()).collect();
        let input = json!({"calls": calls, "order": "at_once"});
        let result = stage.host.dispatch(&stage.session(), Call::new("nested_run", input)).await;
        assert!(results(&result).iter().all(|it| it.0 == class), "{result}");
    }
}

/// Without the limit the calls run at once, as the second case shows.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn limit_of_a_tool_holds_for_the_calls_of_a_program() {
    for (limit, is_limited) in [(1, true), (32, false)] {
        let running = Arc::new(AtomicUsize::new(0));
        let most = Arc::new(AtomicUsize::new(0));
        let (now, peak) = (running.clone(), most.clone());
        let nap = Native::new("nap", move |_: &_, _: &_| {
            peak.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(30));
            now.fetch_sub(1, Ordering::SeqCst);
            Ok(ToolOutput::text("rested"))
        });
        let stage = granting(&["nap"], |builder| {
            builder.tool(nap.factory()).tool_concurrency("nap", limit)
        });
        let calls: Vec<_> = (0..8).map(|_| json!({"tool": "nap", "input": {}})).collect();
        let input = json!({"calls": calls, "order": "at_once"});
        let call = Call::new("nested_run", input).with_id("outer");
        let result = stage.host.dispatch(&stage.session(), call).await;
        assert!(results(&result).iter().all(|(class, _)| class.is_empty()), "{result}");
        assert_eq!(most.load(Ordering::SeqCst) == 1, is_limited);
    }
}
