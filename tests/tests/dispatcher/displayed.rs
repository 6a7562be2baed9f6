//! An answer applies to the files as the question displayed them.

use super::stage;
use palisade::confirm::{Answer, ConfirmationRequest};
use palisade::{Call, ToolResult, json};
use palisade_tests::Stage;
use palisade_tests::case::block_on;
use std::os::unix::fs::symlink;

/// Records the state of each file, as a confirmer that displays the differences.
fn display(stage: &Stage, question: &ConfirmationRequest) {
    for path in &question.projected_modifications {
        let read = stage.host.workspace().files().read_with_state(path);
        let missing = palisade::workspace::FileState::MISSING;
        question.displayed.record(path, read.map_or(missing, |(_, state)| state));
    }
}

/// Writes `by the call` to a path, displays the question, does something else, and allows the call.
fn allowed_after(
    stage: &Stage,
    path: &str,
    shows: impl FnOnce(&ConfirmationRequest),
    meanwhile: impl FnOnce(),
) -> ToolResult {
    block_on(async {
        let write = Call::new("write_file", json!({"path": path, "content": "by the call"}));
        let waiting = stage.begin(&stage.session(), write.with_id("w"));
        let question = stage.confirmations.next().await;
        shows(&question);
        meanwhile();
        stage.confirmations.answer(&question.id, Answer::Allow).unwrap();
        waiting.await.unwrap()
    })
}

#[test]
fn call_whose_file_is_as_displayed_runs() {
    let stage = stage();
    stage.world.file("there.txt", "before");
    for path in ["there.txt", "new.txt"] {
        let result = allowed_after(&stage, path, |question| display(&stage, question), || ());
        assert!(result.is_success(), "{path}: {result:?}");
        assert_eq!(stage.world.read(path).as_deref(), Some("by the call"));
    }
}

#[test]
fn call_whose_file_has_changed_since_is_refused() {
    let stage = stage();
    stage.world.file("written.txt", "before");
    stage.world.file("removed.txt", "before");
    let root = stage.world.root();
    let write = || {
        stage.world.file("written.txt", "edited");
    };
    let remove = || std::fs::remove_file(root.join("removed.txt")).unwrap();
    let create = || {
        stage.world.file("created.txt", "edited");
    };
    let meanwhile: [(&str, &dyn Fn(), _); 3] = [
        ("written.txt", &write, Some("edited")),
        ("removed.txt", &remove, None),
        ("created.txt", &create, Some("edited")),
    ];
    for (path, change, stays) in meanwhile {
        let result = allowed_after(&stage, path, |question| display(&stage, question), change);
        let error = &result.to_json()["error"];
        assert_eq!(error["detail"], json!({"reason": "file_changed"}), "{path}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(&format!("`{path}` has changed since")), "{message}");
        assert!(message.contains("make the call again"), "{message}");
        assert_eq!(stage.world.read(path).as_deref(), stays, "{path}");
    }
}

#[test]
fn link_that_leads_elsewhere_since_is_refused() {
    let stage = stage();
    stage.world.file("one.txt", "before");
    stage.world.file("other.txt", "before");
    let link = stage.world.root().join("link.txt");
    symlink("one.txt", &link).unwrap();
    let swap = || {
        std::fs::remove_file(&link).unwrap();
        symlink("other.txt", &link).unwrap();
    };
    let result = allowed_after(&stage, "link.txt", |question| display(&stage, question), swap);
    assert_eq!(result.to_json()["error"]["detail"], json!({"reason": "file_changed"}));
    assert_eq!(stage.world.read("other.txt").as_deref(), Some("before"));
}

#[test]
fn answer_may_follow_from_the_older_of_two_displays() {
    let stage = stage();
    stage.world.file("a.txt", "before");
    let show_twice = |question: &ConfirmationRequest| {
        display(&stage, question);
        stage.world.file("a.txt", "edited");
        display(&stage, question);
    };
    let result = allowed_after(&stage, "a.txt", show_twice, || ());
    assert_eq!(result.to_json()["error"]["detail"], json!({"reason": "file_changed"}));
}

#[test]
fn call_whose_change_nobody_has_seen_is_not_checked() {
    let stage = stage();
    stage.world.file("a.txt", "before");
    let edit = || {
        stage.world.file("a.txt", "edited");
    };
    assert!(allowed_after(&stage, "a.txt", |_| (), edit).is_success());
}
