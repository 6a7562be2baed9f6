//! The maximum number of lost threads, and shutdown of a host and its runtime while threads are
//! lost.

use palisade_tests::case::block_on;
use palisade_tests::frozen::NOTES;

use super::*;

/// Loses both threads that one plugin may lose: half of the limit.
async fn lose_all(host: &Host) {
    for lost in 1..=2 {
        was_given_up(&answered(host, read("notes.txt")).await);
        assert_eq!(host.lost_threads(), lost);
    }
}

#[test]
fn calls_are_refused_while_all_threads_are_lost() {
    Scene::play(|scene| {
        let host = scene.host();
        scene.frozen.stop();
        block_on(async {
            lose_all(&host).await;
            let start = Instant::now();
            let refused = answered(&host, read("notes.txt")).await;
            assert!(start.elapsed() < SHORT, "at once: {:?}", start.elapsed());
            let without_files =
                answered(&host, Call::new("calculate", json!({"expression": "1 + 1"}))).await;
            assert_eq!(
                without_files.output().as_deref(),
                Some("2"),
                "a tool without files needs no thread of its own"
            );
            let (class, detail) = error(&refused);
            assert_eq!(
                (class, &detail["limit"], &detail["value"]),
                ("resource_exhausted", &json!("lost_threads"), &json!(4))
            );
            assert!(detail["advice"].as_str().unwrap().contains("file system"));
            scene.frozen.resume();
            until(|| host.lost_threads() == 0).await;
            // The pool has recovered exactly its size: three concurrent calls share two threads.
            let again = tokio::join!(
                answered(&host, read("notes.txt")),
                answered(&host, read("notes.txt")),
                answered(&host, read("notes.txt"))
            );
            for result in [again.0, again.1, again.2] {
                assert_eq!(result.output().as_deref(), Some(NOTES));
            }
        });
    });
}

#[test]
fn queued_calls_are_refused_once_too_many_threads_are_lost() {
    Scene::play(|scene| {
        let host = scene.host();
        scene.frozen.stop();
        block_on(async {
            // The third may still get the replacement for the first lost thread; the fourth waits
            // until the second thread is lost too.
            let (first, second, _, fourth) = tokio::join!(
                answered(&host, read("notes.txt")),
                answered(&host, read("notes.txt")),
                answered(&host, read("notes.txt")),
                answered(&host, read("notes.txt"))
            );
            was_given_up(&first);
            was_given_up(&second);
            assert_eq!(
                error(&fourth).0,
                "resource_exhausted",
                "it does not wait for threads that are not there"
            );
        });
    });
}

#[test]
fn shutdown_does_not_wait_for_lost_threads() {
    Scene::play(|scene| {
        let host = scene.host();
        scene.frozen.stop();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(lose_all(&host));
        let start = Instant::now();
        drop(host);
        drop(runtime);
        assert!(start.elapsed() < AT_MOST, "{:?}", start.elapsed());
    });
}

#[test]
fn own_thread_limits_are_checked_on_build() {
    for (mode, named) in [
        (CallMode::OwnThreads { threads: 0, lost: 1 }, "`threads`"),
        (CallMode::OwnThreads { threads: 257, lost: 1 }, "1 to 256"),
        (CallMode::OwnThreads { threads: 1, lost: 0 }, "`lost_threads`"),
        (CallMode::OwnThreads { threads: 1, lost: 129 }, "1 to 128"),
    ] {
        let refused = Host::builder().call_mode(mode).build().err().map(|error| error.to_string());
        assert!(refused.as_ref().is_some_and(|text| text.contains(named)), "{mode:?}: {refused:?}");
    }
}
