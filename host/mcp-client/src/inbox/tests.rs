//! Tests of the messages of a server, within bounds.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use super::*;
use palisade_tests::program::address_space_in_use;
use rmcp::model::{ClientRequest, PingRequest};

fn inbox() -> Inbox {
    Inbox::new(Handler::default(), Fault::default())
}

/// Takes a message with a place, if one is free.
fn take(inbox: &Inbox, text: &[u8]) -> Option<Taken> {
    inbox.take_here(text, inbox.free_place())
}

#[test]
fn invalid_response_fails_its_request() {
    let inbox = inbox();
    let text = br#"{"jsonrpc":"2.0","id":7,"error":{"code":"none"}}"#;
    let Some(Taken::Message(JsonRpcMessage::Error(error))) = take(&inbox, text) else {
        panic!("no error")
    };
    assert_eq!(error.id, Some(RequestId::Number(7)));
    assert_eq!(inbox.fault().get(), None);
}

#[test]
fn message_without_address_space_is_a_fault() {
    let own = "inbox::tests::message_without_address_space_is_a_fault";
    let Some(_held) = address_space_in_use(own) else { return };
    let many = format!(r#"{{"jsonrpc":"2.0","id":1,"result":[{}1]}}"#, "{},".repeat(100_000));
    let inbox = inbox();
    assert!(take(&inbox, many.as_bytes()).is_none());
    let fault = inbox.fault().get().expect("a fault");
    assert!(fault.contains("ulimit -v"), "{fault}");
}

#[test]
fn message_beyond_the_bounds_is_a_fault() {
    let deep =
        format!(r#"{{"jsonrpc":"2.0","id":1,"result":{}1{}}}"#, "[".repeat(90), "]".repeat(90));
    let many = format!(r#"{{"jsonrpc":"2.0","id":1,"result":[{}1]}}"#, "1,".repeat(101_000));
    let twice = r#"{"jsonrpc":"2.0","id":1,"id":2,"result":{}}"#;
    for (text, reason) in
        [(deep.as_str(), "nested"), (many.as_str(), "more than"), (twice, "twice"), ("{1", "JSON")]
    {
        let inbox = inbox();
        assert!(take(&inbox, text.as_bytes()).is_none());
        let fault = inbox.fault().get().expect("a fault");
        assert!(fault.contains(reason), "{fault}");
    }
}

#[test]
fn notifications_end_here_and_are_bounded() {
    let inbox = inbox();
    let note = br#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    for _ in 0..MAX_NOTIFICATIONS {
        assert!(take(&inbox, note).is_none());
    }
    assert!(inbox.handler.has_new_list());
    assert_eq!(inbox.fault().get(), None);
    assert!(take(&inbox, note).is_none());
    assert!(inbox.fault().get().is_some_and(|fault| fault.contains("100,000 notifications")));
}

#[test]
fn bytes_between_two_requests_are_bounded() {
    let inbox = inbox();
    let note =
        format!(r#"{{"jsonrpc":"2.0","method":"x","params":{{"a":"{}"}}}}"#, "x".repeat(1 << 20));
    let request = || {
        JsonRpcMessage::request(
            ClientRequest::PingRequest(PingRequest::default()),
            RequestId::Number(1),
        )
    };
    for _ in 0..2 {
        for _ in 0..MAX_UNASKED_BYTES / note.len() {
            assert!(take(&inbox, note.as_bytes()).is_none());
        }
        assert_eq!(inbox.fault().get(), None);
        // The response to a request may be as long, and is not counted.
        inbox.sent(&request());
        let response =
            format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"a":"{}"}}}}"#, "x".repeat(1 << 20));
        assert!(take(&inbox, response.as_bytes()).is_some());
    }
    for _ in 0..=MAX_UNASKED_BYTES / note.len() {
        assert!(take(&inbox, note.as_bytes()).is_none());
    }
    let reason = "it sent more than 64 MiB between two requests";
    assert_eq!(inbox.fault().get().as_deref(), Some(reason));
}

#[test]
fn messages_of_a_server_that_goes_on_are_read_in_turns() {
    let inbox = inbox();
    let note = format!(r#"{{"jsonrpc":"2.0","method":"x","params":"{}"}}"#, "x".repeat(8 << 10));
    assert!(inbox.reads_in_place(note.len()) && !inbox.reads_in_place(IN_PLACE + 1));
    let read = (0..100).take_while(|_| {
        let is_in_place = inbox.reads_in_place(note.len());
        assert!(take(&inbox, note.as_bytes()).is_none());
        is_in_place
    });
    assert_eq!(read.count(), IN_PLACE_TOGETHER / note.len());
    assert_eq!(inbox.fault().get(), None);
}

#[test]
fn requests_are_bounded_until_their_responses_are_sent() {
    let inbox = inbox();
    let request = format!(r#"{{"jsonrpc":"2.0","id":0,"method":"{}"}}"#, "x".repeat(1 << 19));
    for _ in 0..3 {
        let mut waiting = Vec::new();
        for _ in 0..MAX_UNANSWERED {
            let Some(Taken::Response(response)) = take(&inbox, request.as_bytes()) else {
                panic!("no response: {:?}", inbox.fault().get())
            };
            let text = serde_json::to_string(&response.message).unwrap();
            assert!(text.len() < 200, "{text}");
            waiting.push(response);
        }
    }
    let waiting: Vec<_> = (0..=MAX_UNANSWERED).map(|_| take(&inbox, request.as_bytes())).collect();
    assert!(waiting.last().is_some_and(Option::is_none));
    let reason = "it sent more than 16 requests and did not read the responses";
    assert_eq!(inbox.fault().get().as_deref(), Some(reason));
}

#[test]
fn readers_that_wait_for_the_same_places_get_one_each() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let ping = br#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#;
    let inbox = inbox();
    runtime.block_on(async {
        let read = |inbox: Inbox| async move {
            for _ in 0..100 {
                let place = inbox.place().await;
                // Other readers go on between the two steps, as on a busy thread.
                tokio::task::yield_now().await;
                let taken = inbox.take(ping.to_vec(), place).await;
                assert!(taken.is_some(), "{:?}", inbox.fault().get());
                tokio::task::yield_now().await;
            }
        };
        let readers: Vec<_> =
            (0..2 * MAX_UNANSWERED).map(|_| tokio::spawn(read(inbox.clone()))).collect();
        for reader in readers {
            reader.await.unwrap();
        }
    });
}

#[test]
fn id_of_a_request_is_bounded() {
    for (length, reason) in
        [(MAX_ID, None), (MAX_ID + 1, Some("it sent a request with an id of more than 1 KiB"))]
    {
        let inbox = inbox();
        let id = "x".repeat(length);
        let ping = format!(r#"{{"jsonrpc":"2.0","id":"{id}","method":"ping"}}"#);
        assert_eq!(take(&inbox, ping.as_bytes()).is_none(), reason.is_some());
        assert_eq!(inbox.fault().get().as_deref(), reason);
    }
}

#[test]
fn texts_that_are_no_messages_are_bounded() {
    let inbox = inbox();
    for _ in 0..MAX_OTHER_TEXTS {
        assert!(take(&inbox, b"starting").is_none());
        assert_eq!(inbox.fault().get(), None);
    }
    assert!(take(&inbox, b"starting").is_none());
    let reason = "it sent more than 1,000 lines that are no messages";
    assert_eq!(inbox.fault().get().as_deref(), Some(reason));
}
