//! Many calls of one tool, concurrent and sequential.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use palisade::{Call, CancellationToken, Host, SideEffects, ToolResult};
use palisade_tests::case::block_on;
use palisade_tests::guest::{CANCEL_SLEEP, CONCURRENCY_COUNT};
use palisade_tests::oracle::turn;
use palisade_tests::{Case, Recorder, World};
use serde_json::json;
use tokio::sync::Notify;

fn host(world: &World, recorder: &Recorder) -> Arc<Host> {
    let builder = Case::new(CONCURRENCY_COUNT, "count").allow(SideEffects::Write).builder(world);
    Arc::new(builder.subscriber(Arc::new(recorder.clone())).build().unwrap())
}

/// Makes concurrent calls on a multi-threaded runtime and returns the results in call order.
fn at_once(host: &Arc<Host>, tool: &'static str, count: usize) -> Vec<ToolResult> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
    runtime.block_on(async {
        let call = |number: usize| {
            let host = host.clone();
            tokio::spawn(async move {
                let call = Call::new(tool, json!({"text": format!("t{number}")}))
                    .with_id(&format!("id{number}"));
                host.dispatch(host.session(), call).await
            })
        };
        let tasks: Vec<_> = (0..count).map(call).collect();
        let mut results = Vec::with_capacity(count);
        for task in tasks {
            results.push(task.await.unwrap());
        }
        results
    })
}

#[track_caller]
fn each_saw_one_call(results: &[ToolResult]) {
    for (number, result) in results.iter().enumerate() {
        assert_eq!(result.output().as_deref(), Some(&*format!("1 t{number}")), "{result}");
        assert_eq!(result.call_id().as_str(), format!("id{number}"));
    }
}

#[test]
fn hundred_concurrent_calls_share_no_state() {
    let (world, recorder) = (World::new(), Recorder::default());
    let results = at_once(&host(&world, &recorder), "count", 100);
    each_saw_one_call(&results);
    assert_eq!(recorder.terminal().len(), 100);
}

#[test]
fn hundred_overlapping_calls_share_no_state() {
    let (world, recorder) = (World::new(), Recorder::default());
    let results = at_once(&host(&world, &recorder), "count_slowly", 100);
    each_saw_one_call(&results);
}

#[test]
fn calls_beyond_the_sandboxes_are_all_answered() {
    // The pool of sandboxes is shared by the whole process.
    let _turn = turn();
    let (world, recorder) = (World::new(), Recorder::default());
    let results = at_once(&host(&world, &recorder), "count_slowly", 300);
    each_saw_one_call(&results);
}

#[test]
fn plugin_loads_while_another_fills_its_share() {
    // The pool of sandboxes is shared by the whole process.
    let _turn = turn();
    let (world, recorder, started) =
        (World::new(), Recorder::default(), Arc::new(AtomicUsize::new(0)));
    let (full, counter) = (Arc::new(Notify::new()), started.clone());
    let (notify, token) = (full.clone(), CancellationToken::new());
    let counting = Recorder::reacting(move |event| {
        if event.name() == "tool.output_delta" && counter.fetch_add(1, Ordering::SeqCst) + 1 == 128
        {
            notify.notify_one();
        }
    });
    let sleepers = Arc::new(
        Case::new(CANCEL_SLEEP, "sleep")
            .builder(&world)
            .subscriber(Arc::new(counting))
            .build()
            .unwrap(),
    );
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let tasks: Vec<_> = (0..256)
        .map(|_| {
            let (host, call) =
                (sleepers.clone(), Call::new("sleep", "{}").with_cancellation(token.clone()));
            runtime.spawn(async move { host.dispatch(host.session(), call).await })
        })
        .collect();
    runtime.block_on(full.notified());
    let (send, receive) = std::sync::mpsc::channel();
    let loading = std::thread::scope(|scope| {
        scope.spawn(|| send.send(host(&world, &recorder).rejected().to_vec()).unwrap());
        // Loading either has a sandbox of its own and succeeds at once, or waits until the
        // cancelled calls free one.
        let at_once = receive.recv_timeout(Duration::from_secs(1));
        token.cancel();
        at_once.unwrap_or_else(|_| receive.recv().unwrap())
    });
    assert_eq!(loading, []);
    for task in tasks {
        assert_eq!(
            runtime.block_on(task).unwrap().error().map(|error| error.class().as_str()),
            Some("cancelled")
        );
    }
}

#[test]
fn waiting_calls_on_one_thread_overlap() {
    let (world, recorder) = (World::new(), Recorder::default());
    let host = host(&world, &recorder);
    let call = |text: &str| Call::new("count_slowly", json!({"text": text}));
    let (one, other) = block_on(async {
        tokio::join!(
            host.dispatch(host.session(), call("a")),
            host.dispatch(host.session(), call("b"))
        )
    });
    assert_eq!((one.output().as_deref(), other.output().as_deref()), (Some("1 a"), Some("1 b")));
    let names = recorder.names();
    let places = |name: &str| {
        let places: Vec<usize> = (0..names.len()).filter(|place| names[*place] == name).collect();
        <[usize; 2]>::try_from(places).unwrap_or_else(|_| panic!("not twice `{name}`: {names:?}"))
    };
    let ([_, second_start], [first_end, _]) = (places("tool.called"), places("tool.completed"));
    assert!(second_start < first_end, "both ran at once: {names:?}");
}

#[test]
fn successive_calls_share_no_state() {
    for text in ["a", "b"] {
        let seen = Case::new(CONCURRENCY_COUNT, "count").input(json!({"text": text})).check();
        assert_eq!(seen.output(), format!("1 {text}"));
    }
    let (world, recorder) = (World::new(), Recorder::default());
    let host = host(&world, &recorder);
    block_on(async {
        for number in 0..20 {
            let result = host.call("count", json!({"text": format!("{number}")}), json!({})).await;
            assert_eq!(result.output().as_deref(), Some(&*format!("1 {number}")));
        }
    });
}

#[test]
fn concurrent_writers_report_their_own_files() {
    let (world, recorder) = (World::new(), Recorder::default());
    let results = at_once(&host(&world, &recorder), "append", 50);
    for (number, result) in results.iter().enumerate() {
        assert_eq!(result.files_modified(), [std::path::PathBuf::from(format!("t{number}.txt"))]);
        assert_eq!(world.read(&format!("t{number}.txt")), Some(format!("t{number}")));
    }
}

#[test]
fn concurrent_hosts_share_only_the_engine() {
    let worlds: Vec<World> = (0..4).map(|_| World::new()).collect();
    std::thread::scope(|scope| {
        for world in &worlds {
            scope.spawn(move || {
                let host = host(world, &Recorder::default());
                let result = block_on(host.call("append", json!({"text": "mine"}), json!({})));
                assert!(result.is_success(), "{result}");
            });
        }
    });
    assert!(worlds.iter().all(|world| world.inside().len() == 1));
}
