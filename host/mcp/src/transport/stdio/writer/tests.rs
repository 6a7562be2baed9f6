//! The writer of lines: their order, and clients that read slowly, not at all, or have gone.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use super::*;
use rmcp::model::{ErrorData, JsonRpcMessage, RequestId};

fn message(id: i64) -> Serialized {
    let error = ErrorData::invalid_request("no", None);
    Serialized::bounded(&JsonRpcMessage::error(error, Some(RequestId::Number(id))))
}

/// Builds a message of this many letters.
fn letters(length: usize) -> Serialized {
    Serialized::from_bytes(vec![b'x'; length])
}

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A pipe whose reader takes one piece per signal.
struct Slow {
    words: mpsc::Receiver<()>,
    taken: mpsc::Sender<()>,
}

impl Write for Slow {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = self.words.recv();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let _ = self.taken.send(());
        Ok(())
    }
}

#[tokio::test]
async fn lines_are_written_in_submission_order() {
    let output = Shared::default();
    let writer = LineWriter::start(output.clone()).unwrap();
    let mut written: Vec<_> = (0..100).map(|id| writer.write(message(id))).collect();
    while let Some(last) = written.pop() {
        assert_eq!(last.await, Ok(()));
    }
    let text = String::from_utf8(output.0.lock().unwrap().clone()).unwrap();
    let id = |line: &str| {
        serde_json::from_str::<serde_json::Value>(line).unwrap()["id"].as_i64().unwrap()
    };
    assert_eq!(text.lines().map(id).collect::<Vec<_>>(), (0..100).collect::<Vec<_>>());
}

#[tokio::test]
async fn immediate_and_waiting_lines_keep_their_order() {
    use std::io::Read as _;
    let (mut input, output) = io::pipe().unwrap();
    let inline = NonblockingWriter::new(output.try_clone().unwrap().into());
    let writer = LineWriter::start(output).unwrap().with_inline(inline);
    // More lines than a pipe holds, so that some are queued.
    let written: Vec<_> = (0..2000).map(|id| writer.write(message(id))).collect();
    let reading = std::thread::spawn(move || {
        let mut text = String::new();
        input.read_to_string(&mut text).map(|_| text)
    });
    for one in written {
        assert_eq!(one.await, Ok(()));
    }
    drop(writer);
    let text = reading.join().unwrap().unwrap();
    let id = |line: &str| {
        serde_json::from_str::<serde_json::Value>(line).unwrap()["id"].as_i64().unwrap()
    };
    assert_eq!(text.lines().map(id).collect::<Vec<_>>(), (0..2000).collect::<Vec<_>>());
}

/// Polls a future once. Awaiting it would let the paused clock advance.
async fn now<T>(future: &mut (impl Future<Output = T> + Unpin)) -> std::task::Poll<T> {
    std::future::poll_fn(|cx| std::task::Poll::Ready(std::pin::Pin::new(&mut *future).poll(cx)))
        .await
}

/// Spins until another thread completes a future. Awaiting it would let the paused clock advance.
async fn soon<T>(mut future: impl Future<Output = T> + Unpin) -> T {
    loop {
        match now(&mut future).await {
            std::task::Poll::Ready(done) => return done,
            std::task::Poll::Pending => std::thread::yield_now(),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn stalled_client_is_dropped_after_a_timeout() {
    let (_holds, words) = mpsc::channel();
    let (taken, _) = mpsc::channel();
    let writer = LineWriter::start(Slow { words, taken }).unwrap();
    let start = tokio::time::Instant::now();
    assert_eq!(writer.write(message(1)).await, Err(Disconnect::Stalled));
    assert_eq!(start.elapsed(), WRITE_TIMEOUT);
    assert_eq!(writer.disconnected().await, Disconnect::Stalled);
    assert_eq!(start.elapsed(), WRITE_TIMEOUT, "the sender is told at once");
}

#[tokio::test(start_paused = true)]
async fn write_timeout_counts_from_the_last_progress() {
    let (says, words) = mpsc::channel();
    let (taken, seen) = mpsc::channel();
    let writer = LineWriter::start(Slow { words, taken }).unwrap();
    let lines: Vec<_> = (0..4).map(|_| Box::pin(writer.write(letters(PIECE - 1)))).collect();
    let mut last = Box::pin(writer.write(letters(PIECE - 1)));
    for line in lines {
        assert!(now(&mut last).await.is_pending());
        tokio::time::advance(WRITE_TIMEOUT - Duration::from_millis(2)).await;
        assert!(now(&mut last).await.is_pending(), "one before it is taken");
        says.send(()).unwrap();
        seen.recv().unwrap();
        assert_eq!(soon(line).await, Ok(()));
    }
    assert!(now(&mut last).await.is_pending());
    tokio::time::advance(WRITE_TIMEOUT - Duration::from_millis(2)).await;
    assert!(now(&mut last).await.is_pending(), "it has waited for five times as long");
    tokio::time::advance(Duration::from_millis(4)).await;
    assert_eq!(now(&mut last).await, std::task::Poll::Ready(Err(Disconnect::Stalled)));
}

#[tokio::test(start_paused = true)]
async fn long_line_is_written_in_parts() {
    let (says, words) = mpsc::channel();
    let (taken, seen) = mpsc::channel();
    let writer = LineWriter::start(Slow { words, taken }).unwrap();
    let mut changes = writer.pieces.subscribe();
    let mut line = Box::pin(writer.write(letters(4 * PIECE - 1)));
    for _ in 0..3 {
        assert!(now(&mut line).await.is_pending());
        tokio::time::advance(WRITE_TIMEOUT - Duration::from_millis(2)).await;
        says.send(()).unwrap();
        // The writer thread runs in real time, while the test's clock is paused.
        while !changes.has_changed().unwrap() {
            std::thread::yield_now();
        }
        changes.mark_unchanged();
        assert!(now(&mut line).await.is_pending(), "it is not written yet, and its reader reads");
    }
    says.send(()).unwrap();
    seen.recv().unwrap();
    assert_eq!(soon(line).await, Ok(()));
}

#[tokio::test]
async fn closed_pipe_is_detected_at_once() {
    struct Closed;
    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let writer = LineWriter::start(Closed).unwrap();
    assert_eq!(writer.write(message(1)).await, Err(Disconnect::Closed));
    assert_eq!(writer.disconnected().await, Disconnect::Closed);
}
