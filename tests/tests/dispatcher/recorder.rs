//! A recorder of calls: nothing runs before its record, and each call ends once.

use std::sync::{Arc, Mutex};

use palisade::confirm::{Answer, ConfirmFn};
use palisade::{BoxFuture, Call, CallEnd, CallRecorder, CallStart, NotRecorded, json};
use palisade_tests::Stage;
use palisade_tests::case::block_on;
use palisade_tests::guest::DISPATCHER_GATE;
use palisade_tests::stage::class;
use tokio::sync::Notify;

use super::{waiting, writing};

/// Whether the recorder can record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Disk {
    Works,
    Full,
    Hangs,
}

#[derive(Debug)]
struct Book {
    disk: Disk,
    lines: Mutex<Vec<String>>,
    asked: Notify,
}

impl Book {
    fn new(disk: Disk) -> Arc<Self> {
        Arc::new(Self { disk, lines: Mutex::default(), asked: Notify::new() })
    }

    fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }

    fn write(&self, line: String) {
        self.lines.lock().unwrap().push(line);
    }
}

impl CallRecorder for Book {
    fn before_run<'a>(&'a self, start: CallStart<'a>) -> BoxFuture<'a, Result<(), NotRecorded>> {
        Box::pin(async move {
            let id = &start.subject.call_id;
            let plugin = start.plugin.unwrap_or_default();
            self.write(format!("{id} starts {plugin} {}", start.input()));
            self.asked.notify_one();
            match self.disk {
                Disk::Works => Ok(()),
                Disk::Full => Err(NotRecorded::new("no space left in the journal")),
                Disk::Hangs => std::future::pending().await,
            }
        })
    }

    fn ended(&self, end: CallEnd<'_>) {
        let how = end
            .result
            .map_or("gone", |result| if result.is_success() { "succeeded" } else { class(result) });
        self.write(format!("{} ends {how}", end.subject.call_id));
    }
}

fn stage(book: &Arc<Book>) -> Stage {
    let book = book.clone();
    Stage::new(&[DISPATCHER_GATE], |builder| {
        builder.recorder(book).confirmer(Arc::new(ConfirmFn::new(|_| Answer::Allow)))
    })
}

#[test]
fn call_is_recorded_before_it_runs_and_after_it_ended() {
    let book = Book::new(Disk::Works);
    let stage = stage(&book);
    let result = block_on(stage.host.dispatch(&stage.session(), writing("w")));
    assert!(result.is_success());
    let lines = book.lines();
    assert!(lines[0].starts_with("w starts ") && lines[0].contains("made.txt"), "{lines:?}");
    assert_eq!(lines[1..], ["w ends succeeded"]);
}

#[test]
fn call_without_a_record_does_not_run() {
    let book = Book::new(Disk::Full);
    let stage = stage(&book);
    let result = block_on(stage.host.dispatch(&stage.session(), writing("w")));
    let error = &result.to_json()["error"];
    assert_eq!(error["class"], "permission_denied");
    assert_eq!(error["detail"], json!({"reason": "not_recorded"}));
    assert_eq!(stage.world.read("made.txt"), None, "nothing was written");
    assert!(!stage.recorder.names_of("w").contains(&"tool.called"));
    assert_eq!(book.lines()[1..], ["w ends permission_denied"]);
}

#[test]
fn refused_call_has_an_end_and_no_start() {
    let book = Book::new(Disk::Works);
    let stage = stage(&book);
    let call = Call::new("no_such_tool", json!({})).with_id("n");
    block_on(stage.host.dispatch(&stage.session(), call));
    assert_eq!(book.lines(), ["n ends not_found"]);
}

#[test]
fn cancellation_ends_the_wait_for_the_record() {
    let book = Book::new(Disk::Hangs);
    let stage = stage(&book);
    let session = stage.session();
    block_on(async {
        let call = stage.begin(&session, writing("w"));
        book.asked.notified().await;
        assert_eq!(session.cancel_all(), 1);
        assert_eq!(class(&call.await.unwrap()), "cancelled");
    });
    assert_eq!(book.lines()[1..], ["w ends cancelled"]);
    assert_eq!(stage.world.read("made.txt"), None, "nothing was written");
}

#[test]
fn call_that_its_caller_drops_ends_once() {
    let book = Book::new(Disk::Works);
    let stage = stage(&book);
    block_on(async {
        let call = stage.begin(&stage.session(), waiting("c"));
        stage.started(1).await;
        call.abort();
        let _ = call.await;
    });
    assert_eq!(book.lines()[1..], ["c ends gone"]);
}

#[test]
fn turn_is_cancelled_while_another_goes_on() {
    let book = Book::new(Disk::Works);
    let stage = stage(&book);
    let session = stage.session();
    block_on(async {
        let first = stage.begin(&session, waiting("first").with_turn("one"));
        let other = stage.begin(&session, waiting("other").with_turn("two"));
        stage.started(2).await;
        assert_eq!(session.cancel_turn("one"), 1);
        assert_eq!(class(&first.await.unwrap()), "cancelled");
        assert_eq!(session.in_flight(), 1);
        stage.world.file("open", "");
        assert!(other.await.unwrap().is_success());
    });
}
