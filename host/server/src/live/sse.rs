//! Events as server-sent events.

use super::reader::{Batch, Stream};
use super::{STALLED, draining};
use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::{Instant, sleep_until};

/// The size at which a chunk is sent, in bytes.
const CHUNK: usize = 64 << 10;

/// Returns the response that streams events.
pub(crate) fn respond(stream: Stream) -> Response {
    // One chunk waits; the task reads no further meanwhile.
    let (send, chunks) = channel(1);
    tokio::spawn(write(stream, send));
    let mut response = Response::new(Body::from_stream(Chunks(chunks)));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store, no-transform"));
    // Proxies would hold events back.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

struct Chunks(Receiver<Bytes>);

impl futures_core::Stream for Chunks {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(cx).map(|chunk| chunk.map(Ok))
    }
}

/// Writes events until the connection ends, stalls, or the server ends.
async fn write(mut stream: Stream, send: Sender<Bytes>) {
    // An `id` without data: a browser continues here if it connects again before the first event.
    let mut ready = vec![place(&stream)];
    loop {
        let length = ready.iter().map(Bytes::len).sum();
        let _unsent = stream.account.owed(length);
        for chunk in ready {
            if send.send_timeout(chunk, STALLED).await.is_err() {
                return;
            }
        }
        let quiet_until = Instant::now() + stream.heartbeat;
        ready = tokio::select! {
            biased;
            () = stream.closing.cancelled() => return,
            () = send.closed() => return,
            line = stream.draining.next() => {
                vec![format!("event: {}\ndata: {line}\n\n", draining::NAME).into()]
            }
            next = stream.reader.next() => match next {
                Ok(batch) => chunks(&batch),
                Err(error) => {
                    tracing::warn!("a stream of events ends: {error}");
                    return;
                }
            },
            () = sleep_until(quiet_until) => vec![place(&stream)],
        };
    }
}

/// Returns a comment, which keeps the connection alive, and the place up to which the reader has
/// seen everything that it may see.
fn place(stream: &Stream) -> Bytes {
    format!(":\nid: {}\n\n", stream.reader.place()).into()
}

fn chunks(batch: &Batch) -> Vec<Bytes> {
    let mut all = Vec::new();
    let mut text = String::new();
    if let Some(oldest) = batch.gap {
        let _ = write!(text, "event: journal.gap\ndata: {{\"oldest\":\"{oldest}\"}}\n\n");
    }
    for event in &batch.events {
        // Names and lines have no line breaks: a name is a word, and a line is JSON.
        let (id, name, line) = (event.id, &event.name, event.line.trim_end());
        let _ = write!(text, "id: {id}\nevent: {name}\ndata: {line}\n\n");
        if text.len() >= CHUNK {
            all.push(std::mem::take(&mut text).into());
        }
    }
    if !text.is_empty() {
        all.push(text.into());
    }
    all
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test whose preparation fails has failed")]
    use super::*;
    use crate::journal::{EventFilter, EventId, Journal, JournalSettings};
    use crate::live::position::Position;
    use crate::live::{Draining, Reader};
    use crate::metrics::Metrics;
    use palisade::CancellationToken;
    use palisade::internal::{Account, MemoryLimits};
    use std::sync::Arc;
    use std::time::Duration;
    use tokio::sync::Semaphore;
    use tokio::time::timeout;

    #[tokio::test(start_paused = true)]
    async fn connection_that_takes_nothing_is_dropped() {
        let journal = Journal::temporary(JournalSettings::default()).unwrap();
        let streams = Arc::new(Semaphore::new(1));
        let heartbeat = Duration::from_secs(15);
        let stream = Stream {
            reader: Reader::new(journal, EventFilter::default(), Position::Now, EventId::START),
            heartbeat,
            draining: Draining::of(CancellationToken::new()),
            closing: CancellationToken::new(),
            _permit: streams.clone().try_acquire_owned().unwrap(),
            _counted: Metrics::default().count_reader(),
            account: Account::new(MemoryLimits { call: 0, total: 0 }),
            _attending: None,
        };
        let (send, chunks) = channel(1);
        let writing = tokio::spawn(write(stream, send));
        // The first chunk waits in the channel, and the second one is a sign of life.
        let begun = Instant::now();
        timeout(10 * STALLED, writing).await.unwrap().unwrap();
        assert!(begun.elapsed() >= heartbeat + STALLED);
        assert_eq!((streams.available_permits(), chunks.len()), (1, 1));
    }
}
