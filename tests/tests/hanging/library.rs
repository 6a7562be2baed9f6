//! A host with its own worker threads, and calls that hang.

use std::sync::Arc;

use palisade::{
    CancellationToken, Definition, ErrorKind, Session, ToolOutput, workspace::Workspace,
};
use palisade_tests::Recorder;
use palisade_tests::case::block_on;
use palisade_tests::frozen::NOTES;
use palisade_tests::native::Native;

use super::*;

#[test]
fn own_threads_run_ordinary_calls() {
    Scene::play(|scene| {
        let host = scene.host();
        block_on(async {
            assert_eq!(answered(&host, read("notes.txt")).await.output().as_deref(), Some(NOTES));
            let listed = answered(&host, Call::new("list_dir", "{}")).await;
            assert!(listed.output().is_some_and(|text| text.contains("trap.txt")), "{listed:?}");
            let escaped = answered(&host, read("../secret.txt")).await;
            assert_eq!(error(&escaped).0, "permission_denied");
            let missing = answered(&host, Call::new("read_file", json!({"pfad": 1}))).await;
            assert_eq!(error(&missing).0, "validation_error");
        });
    });
}

#[test]
fn hanging_call_ends_at_its_deadline_and_frees_its_thread() {
    Scene::play(|scene| {
        let (host, other) = (scene.host(), World::new());
        other.file("here.txt", "at hand");
        let elsewhere = Session::builder(Arc::new(Workspace::open(&other.root()).unwrap())).build();
        scene.frozen.stop();
        block_on(async {
            let (hung, ()) = tokio::join!(answered(&host, read("notes.txt")), async {
                for _ in 0..20 {
                    let call = Call::new("read_file", json!({"path": "here.txt"}));
                    assert_eq!(
                        host.dispatch(&elsewhere, call).await.output().as_deref(),
                        Some("at hand")
                    );
                }
            });
            was_given_up(&hung);
            assert_eq!((host.lost_threads(), host.session().in_flight()), (1, 0));
            scene.frozen.resume();
            until(|| host.lost_threads() == 0).await;
            assert_eq!(answered(&host, read("notes.txt")).await.output().as_deref(), Some(NOTES));
        });
    });
}

#[test]
fn hanging_guest_ends_at_deadline_and_cancellation() {
    Scene::play(|scene| {
        let (host, token) = (scene.host(), CancellationToken::new());
        block_on(async {
            was_given_up(&answered(&host, read("trap.txt")).await);
            has_stopped(scene).await;
            scene.frozen.resume();
            until(|| host.lost_threads() == 0).await;
            let call = Call::new("read_file", json!({"path": "trap.txt"}))
                .with_cancellation(token.clone());
            let (result, ()) = tokio::join!(host.dispatch(host.session(), call), async {
                has_stopped(scene).await;
                token.cancel();
            });
            assert_eq!((error(&result), host.lost_threads()), (("cancelled", json!({})), 1));
        });
    });
}

#[test]
fn listing_and_writing_hang_no_longer_than_reading() {
    Scene::play(|scene| {
        for call in [
            Call::new("list_dir", "{}"),
            Call::new("find_files", json!({"pattern": "*"})),
            Call::new("write_file", json!({"path": "new.txt", "content": "x"})),
            Call::new("delete_file", json!({"path": "notes.txt"})),
        ] {
            let host = scene.host();
            scene.frozen.stop();
            was_given_up(&block_on(answered(&host, call.with_timeout(SHORT))));
            scene.frozen.resume();
            block_on(until(|| host.lost_threads() == 0));
        }
    });
}

#[test]
fn workspace_hanging_on_open_is_an_error() {
    Scene::play(|scene| {
        scene.frozen.stop();
        let folder = scene.world.root().join("folder");
        let opened = Workspace::open_within(folder.clone(), SHORT);
        assert!(
            opened.as_ref().is_err_and(palisade::workspace::WorkspaceError::is_unanswered),
            "{opened:?}"
        );
        scene.frozen.resume();
        assert!(Workspace::open_within(folder, Duration::from_secs(20)).is_ok());
    });
}

#[test]
fn hanging_native_tool_gives_its_place_to_the_next() {
    Scene::play(|scene| {
        let peek = Native::new("peek", |_, context| match context.files().read("notes.txt") {
            Ok(text) => Ok(ToolOutput::text(text)),
            Err(error) => Err(ErrorKind::from(error.to_string())),
        });
        let reads =
            Definition::new("peek", "Reads a file.", SideEffects::Read, json!({"type": "object"}))
                .unwrap();
        let peek = peek.defined(reads);
        let host = scene.builder().tool(peek.factory()).build().unwrap();
        let session = host.new_session("one at a time").concurrency(1).build();
        block_on(async {
            let call = || Call::new("peek", "{}").with_timeout(SHORT);
            assert_eq!(host.dispatch(&session, call()).await.output().as_deref(), Some(NOTES));
            scene.frozen.stop();
            was_given_up(&host.dispatch(&session, call()).await);
            let sum = host
                .dispatch(&session, Call::new("calculate", json!({"expression": "6 * 7"})))
                .await;
            assert_eq!((sum.output().as_deref(), host.lost_threads()), (Some("42"), 1));
            scene.frozen.resume();
            until(|| host.lost_threads() == 0).await;
        });
    });
}

#[test]
fn explanation_of_a_hanging_call_ends_in_time() {
    Scene::play(|scene| {
        let host = scene.host();
        assert!(
            host.explain(host.session(), read("notes.txt"))
                .is_ok_and(|explanation| explanation.changes.is_ok())
        );
        scene.frozen.stop();
        let explanation = host.explain(host.session(), read("notes.txt"));
        assert!(
            matches!(explanation, Ok(explanation) if matches!(explanation.changes, Err(ErrorKind::Unanswered { .. })))
        );
    });
}

#[test]
fn dropped_hanging_call_has_one_terminal_event_and_a_counted_thread() {
    Scene::play(|scene| {
        let recorder = Recorder::default();
        let host =
            Arc::new(scene.builder().subscriber(Arc::new(recorder.clone())).build().unwrap());
        block_on(async {
            let call = Call::new("read_file", json!({"path": "trap.txt"}));
            let own = host.clone();
            let task = tokio::spawn(async move { own.dispatch(own.session(), call).await });
            has_stopped(scene).await;
            task.abort();
            assert!(task.await.unwrap_err().is_cancelled());
            until(|| host.lost_threads() == 1).await;
            scene.frozen.resume();
            until(|| host.lost_threads() == 0).await;
        });
        assert_eq!(recorder.terminal().len(), 1);
    });
}

#[test]
fn definition_without_paths_is_checked_in_place() {
    Scene::play(|scene| {
        let schema = json!({"type": "object"});
        let definition =
            Definition::new("idle", "Does nothing.", SideEffects::None, schema).unwrap();
        let idle = Native::new("idle", |_, _| Ok(ToolOutput::text("done"))).defined(definition);
        let host = scene.builder().tool(idle.factory()).build().unwrap();
        scene.frozen.stop();
        let result = block_on(answered(&host, Call::new("idle", "{}")));
        assert_eq!(result.output().as_deref(), Some("done"));
    });
}
