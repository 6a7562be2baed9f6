//! Events over a WebSocket. It is one-way: events come, actions go by HTTP.

use super::reader::{Batch, Stream};
use super::{STALLED, draining};
use axum::extract::FromRequestParts as _;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use axum::response::Response;
use serde_json::Value;
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout};

/// The longest message that a client may send. It has nothing to say.
const MOST: usize = 1024;
/// The most control frames that a client may send in the time between two heartbeats.
const CONTROL_FRAMES: u32 = 32;

/// Returns true if the request asks for a WebSocket.
pub(crate) fn is_upgrade(headers: &HeaderMap) -> bool {
    let wanted = headers.get(header::UPGRADE).and_then(|value| value.to_str().ok());
    wanted.is_some_and(|protocol| protocol.eq_ignore_ascii_case("websocket"))
}

/// Returns the response that turns the connection into a WebSocket with events.
pub(crate) async fn respond(
    parts: &mut Parts,
    stream: Stream,
) -> Result<Response, WebSocketUpgradeRejection> {
    let upgrade = WebSocketUpgrade::from_request_parts(parts, &()).await?;
    let upgrade = upgrade.max_message_size(MOST).max_frame_size(MOST);
    Ok(upgrade.on_upgrade(move |socket| write(socket, stream)))
}

/// Writes events until the connection ends, stalls, or the server ends.
async fn write(mut socket: WebSocket, mut stream: Stream) {
    let mut controls = ControlFrames { count: 0, since: Instant::now() };
    loop {
        let quiet_until = Instant::now() + stream.heartbeat;
        let messages = tokio::select! {
            biased;
            () = stream.closing.cancelled() => return close(socket, close_code::AWAY, "ends").await,
            said = socket.recv() => match said {
                Some(Ok(Message::Ping(_) | Message::Pong(_))) if !controls.admit(stream.heartbeat) => {
                    return close(socket, close_code::POLICY, "too many control frames").await;
                }
                // Sent before the next message is read: the answers to a client that reads nothing
                // would wait in memory without a bound.
                Some(Ok(Message::Ping(data))) => vec![Message::Pong(data)],
                Some(Ok(Message::Pong(_))) => continue,
                Some(Ok(Message::Text(_) | Message::Binary(_))) => {
                    let why = "events come this way; actions go by HTTP";
                    return close(socket, close_code::POLICY, why).await;
                }
                Some(Ok(Message::Close(_)) | Err(_)) | None => return,
            },
            line = stream.draining.next() => {
                let name = draining::NAME;
                let text = format!(r#"{{"id":null,"event":"{name}","data":{line}}}"#);
                vec![Message::Text(text.into())]
            }
            next = stream.reader.next() => match next {
                Ok(batch) => messages(&batch),
                Err(error) => {
                    tracing::warn!("a stream of events ends: {error}");
                    return close(socket, close_code::ERROR, "the journal fails").await;
                }
            },
            () = sleep_until(quiet_until) => vec![Message::Ping(axum::body::Bytes::new())],
        };
        let unsent = messages.iter().map(length).sum();
        let _unsent = stream.account.owed(unsent);
        for message in messages {
            if !matches!(timeout(STALLED, socket.send(message)).await, Ok(Ok(()))) {
                return;
            }
        }
    }
}

/// Counts the control frames of a client.
struct ControlFrames {
    count: u32,
    since: Instant,
}

impl ControlFrames {
    /// Returns false if there are too many in this time.
    fn admit(&mut self, time: Duration) -> bool {
        if self.since.elapsed() > time {
            *self = Self { count: 0, since: Instant::now() };
        }
        self.count += 1;
        self.count <= CONTROL_FRAMES
    }
}

/// Returns the length of the text of a message, in bytes.
fn length(message: &Message) -> usize {
    match message {
        Message::Text(text) => text.as_str().len(),
        _ => 0,
    }
}

async fn close(mut socket: WebSocket, code: u16, reason: &'static str) {
    let frame = CloseFrame { code, reason: reason.into() };
    let _ = timeout(STALLED, socket.send(Message::Close(Some(frame)))).await;
}

/// Returns a message for each event: `{"id", "event", "data"}`.
fn messages(batch: &Batch) -> Vec<Message> {
    let gap = batch.gap.map(|oldest| {
        format!(r#"{{"id":null,"event":"journal.gap","data":{{"oldest":"{oldest}"}}}}"#)
    });
    let events = batch.events.iter().map(|event| {
        let (id, name, line) = (event.id, Value::from(&*event.name), event.line.trim_end());
        format!(r#"{{"id":"{id}","event":{name},"data":{line}}}"#)
    });
    gap.into_iter().chain(events).map(|text| Message::Text(text.into())).collect()
}
