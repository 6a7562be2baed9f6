//! Writes lines in order: inline while the output has room, and otherwise on a thread.

use super::ready::Room;
use crate::execution::account::Owed;
use crate::mcp::answer::Written;
use rmcp::model::ServerJsonRpcMessage;
use std::io::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};
use std::time::Duration;
use tokio::sync::{Notify, oneshot, watch};
use tokio_util::sync::CancellationToken;

/// The write timeout: the time in which the client may read no byte of pending output.
const PATIENCE: Duration = Duration::from_secs(30);

/// The size of one write, in bytes: a pipe has room for it as soon as its reader has freed one
/// page, so that a slow reader still shows progress.
const PIECE: usize = 4096;

/// The maximum number of queued lines. Requests wait above it.
const WAITING: usize = 64;
/// The maximum number of queued bytes: room for several responses of maximum size.
const WAITING_BYTES: usize = 16 << 20;

/// The reason why a client counts as disconnected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(in crate::mcp) enum Gone {
    /// The client's end is closed, or a write failed.
    #[error("the client has closed its end")]
    Closed,
    /// The client has read no byte for the write timeout.
    #[error("the client has read nothing of what waits for it for {} s", PATIENCE.as_secs())]
    Stalled,
}

/// A queue of lines to write. Its memory is bounded by the producers, which wait in [`Self::room`]
/// or for their own line.
pub(super) struct Writer {
    /// Locking this sender fixes the position of a line.
    lines: Mutex<mpsc::Sender<Waiting>>,
    /// The number of queued lines that the thread has not written yet.
    waiting: Arc<AtomicUsize>,
    /// The number of bytes in these lines.
    bytes: Arc<AtomicUsize>,
    /// Notified for each line that the thread has written.
    written: Arc<Notify>,
    /// Notified for each piece that the client has read.
    taken: watch::Sender<()>,
    room: Option<Room>,
    gone: CancellationToken,
    why: Arc<OnceLock<Gone>>,
}

struct Waiting {
    line: Vec<u8>,
    written: oneshot::Sender<()>,
    /// The memory of the line, counted for the whole process.
    owed: Owed,
}

impl Writer {
    /// Writes to this output on a thread until the queue is dropped. A thread whose output blocks
    /// stays behind.
    pub(super) fn start(mut output: impl Write + Send + 'static) -> io::Result<Self> {
        let (send, lines) = mpsc::channel::<Waiting>();
        let (gone, waiting) = (CancellationToken::new(), Arc::new(AtomicUsize::new(0)));
        let (written, fails, left) = (Arc::new(Notify::new()), gone.clone(), waiting.clone());
        let (tells, taken, bytes) =
            (written.clone(), watch::Sender::new(()), Arc::new(AtomicUsize::new(0)));
        let (takes, leaves) = (taken.clone(), bytes.clone());
        std::thread::Builder::new().name("palisade-output".to_owned()).spawn(move || {
            for Waiting { line, written: done, owed } in lines {
                if write_in_pieces(&mut output, &line, &takes).is_err() {
                    fails.cancel();
                    return;
                }
                leaves.fetch_sub(line.len(), Ordering::Release);
                left.fetch_sub(1, Ordering::Release);
                drop((line, owed));
                tells.notify_one();
                let _ = done.send(());
            }
        })?;
        Ok(Self {
            lines: Mutex::new(send),
            waiting,
            bytes,
            written,
            taken,
            room: None,
            gone,
            why: Arc::default(),
        })
    }

    /// Stores the reason here if the client disconnects.
    pub(super) fn noting(self, why: Arc<OnceLock<Gone>>) -> Self {
        Self { why, ..self }
    }

    /// Writes inline to `room`, a duplicate of the output, as far as it has room.
    pub(super) fn in_place(self, room: Room) -> Self {
        Self { room: Some(room), ..self }
    }

    /// Completes when the queue is below its limits.
    pub(super) async fn room(&self) {
        while !self.has_room() {
            self.written.notified().await;
        }
    }

    /// Returns true if the queue is below its limits.
    pub(super) fn has_room(&self) -> bool {
        self.waiting.load(Ordering::Acquire) < WAITING
            && self.bytes.load(Ordering::Acquire) < WAITING_BYTES
    }

    /// Queues a message at once. The future completes when it is written.
    pub(super) fn write(
        &self,
        message: &ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Gone>> + Send + 'static + use<> {
        self.put(Written::unasked(message))
    }

    /// Queues a serialized message at once. The future completes when it is written.
    pub(super) fn put(
        &self,
        message: Written,
    ) -> impl Future<Output = Result<(), Gone>> + Send + 'static + use<> {
        let (mut line, owed) = message.into_line();
        let waits = {
            let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
            let left = self.write_now(&line).map(|written| line.split_off(written));
            left.map(|left| (!left.is_empty()).then(|| self.queue(&lines, (left, owed))))
        };
        // A line written inline needs none of these handles.
        let slow = waits
            .transpose()
            .map(|waits| (waits, self.gone.clone(), self.why.clone(), self.taken.subscribe()));
        async move {
            let Some((waits, gone, why, taken)) = slow else { return Ok(()) };
            let ends = match waits {
                Ok(waits) => patiently(waits, taken).await,
                Err(_) => Err(Gone::Closed),
            };
            ends.map_err(|reason| {
                let reason = *why.get_or_init(|| reason);
                gone.cancel();
                reason
            })
        }
    }

    /// Writes inline as far as that does not block. Returns the number of bytes written.
    fn write_now(&self, line: &[u8]) -> io::Result<usize> {
        match &self.room {
            // Queued lines come first.
            Some(room) if self.waiting.load(Ordering::Acquire) == 0 => room.write(line),
            _ => Ok(0),
        }
    }

    /// Queues a line. The receiver completes when it is written, with an error if the thread has
    /// ended.
    fn queue(
        &self,
        lines: &mpsc::Sender<Waiting>,
        (line, owed): (Vec<u8>, Option<Owed>),
    ) -> oneshot::Receiver<()> {
        let (written, is_written) = oneshot::channel();
        self.waiting.fetch_add(1, Ordering::AcqRel);
        self.bytes.fetch_add(line.len(), Ordering::AcqRel);
        let owed = owed.unwrap_or_else(|| Owed::new(line.len()));
        // A failed send drops the line with its sender, which the receiver reports.
        let _ = lines.send(Waiting { line, written, owed });
        is_written
    }

    /// Completes when the client has disconnected.
    pub(super) async fn gone(&self) -> Gone {
        self.gone.cancelled().await;
        // No reason was stored: the thread met a write error.
        *self.why.get_or_init(|| Gone::Closed)
    }
}

/// Writes a line in pieces, and reports each piece that the output has taken.
fn write_in_pieces(
    output: &mut impl Write,
    line: &[u8],
    taken: &watch::Sender<()>,
) -> io::Result<()> {
    for piece in line.chunks(PIECE) {
        output.write_all(piece)?;
        taken.send_replace(());
    }
    output.flush()
}

/// Waits for a line to be written, as long as the client reads anything of this line or an earlier
/// one.
async fn patiently(
    mut written: oneshot::Receiver<()>,
    mut taken: watch::Receiver<()>,
) -> Result<(), Gone> {
    loop {
        tokio::select! {
            biased;
            written = &mut written => return written.map_err(|_| Gone::Closed),
            more = taken.changed() => more.map_err(|_| Gone::Closed)?,
            () = tokio::time::sleep(PATIENCE) => return Err(Gone::Stalled),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use rmcp::model::{ErrorData, JsonRpcMessage, RequestId};

    fn message(id: i64) -> ServerJsonRpcMessage {
        JsonRpcMessage::error(ErrorData::invalid_request("no", None), Some(RequestId::Number(id)))
    }

    /// Builds a message of this many letters.
    fn letters(length: usize) -> Written {
        Written::of(vec![b'x'; length])
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
    async fn lines_are_written_in_the_order_in_which_they_were_given_whenever_they_are_waited_for()
    {
        let output = Shared::default();
        let writer = Writer::start(output.clone()).unwrap();
        let mut written: Vec<_> = (0..100).map(|id| writer.write(&message(id))).collect();
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
    async fn lines_that_find_room_and_lines_that_wait_for_it_keep_their_order() {
        use std::io::Read as _;
        let (mut input, output) = io::pipe().unwrap();
        let room = Room::new(output.try_clone().unwrap().into());
        let writer = Writer::start(output).unwrap().in_place(room);
        // More lines than a pipe holds, so that some are queued.
        let written: Vec<_> = (0..2000).map(|id| writer.write(&message(id))).collect();
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

    /// Spins until another thread completes a future. Awaiting it would let the paused clock
    /// advance.
    async fn soon<T>(mut future: impl Future<Output = T> + Unpin) -> T {
        loop {
            match now(&mut future).await {
                std::task::Poll::Ready(done) => return done,
                std::task::Poll::Pending => std::thread::yield_now(),
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_read_counts_as_gone_after_a_while() {
        let ((_holds, words), (taken, _)) = (mpsc::channel(), mpsc::channel());
        let writer = Writer::start(Slow { words, taken }).unwrap();
        let start = tokio::time::Instant::now();
        assert_eq!(writer.write(&message(1)).await, Err(Gone::Stalled));
        assert_eq!(start.elapsed(), PATIENCE);
        assert_eq!(writer.gone().await, Gone::Stalled);
        assert_eq!(start.elapsed(), PATIENCE, "whoever listens knows it at once");
    }

    #[tokio::test(start_paused = true)]
    async fn patience_counts_from_the_last_byte_that_was_taken_and_not_from_queueing() {
        let ((says, words), (taken, seen)) = (mpsc::channel(), mpsc::channel());
        let writer = Writer::start(Slow { words, taken }).unwrap();
        let lines: Vec<_> = (0..4).map(|_| Box::pin(writer.put(letters(PIECE - 1)))).collect();
        let mut last = Box::pin(writer.put(letters(PIECE - 1)));
        for line in lines {
            assert!(now(&mut last).await.is_pending());
            tokio::time::advance(PATIENCE - Duration::from_millis(2)).await;
            assert!(now(&mut last).await.is_pending(), "one before it is taken");
            says.send(()).unwrap();
            seen.recv().unwrap();
            assert_eq!(soon(line).await, Ok(()));
        }
        assert!(now(&mut last).await.is_pending());
        tokio::time::advance(PATIENCE - Duration::from_millis(2)).await;
        assert!(now(&mut last).await.is_pending(), "it has waited for five times as long");
        tokio::time::advance(Duration::from_millis(4)).await;
        assert_eq!(now(&mut last).await, std::task::Poll::Ready(Err(Gone::Stalled)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_line_is_taken_piece_by_piece() {
        let ((says, words), (taken, seen)) = (mpsc::channel(), mpsc::channel());
        let writer = Writer::start(Slow { words, taken }).unwrap();
        let mut changes = writer.taken.subscribe();
        let mut line = Box::pin(writer.put(letters(4 * PIECE - 1)));
        for _ in 0..3 {
            assert!(now(&mut line).await.is_pending());
            tokio::time::advance(PATIENCE - Duration::from_millis(2)).await;
            says.send(()).unwrap();
            // The writer thread runs in real time, while the test's clock is paused.
            while !changes.has_changed().unwrap() {
                std::thread::yield_now();
            }
            changes.mark_unchanged();
            assert!(
                now(&mut line).await.is_pending(),
                "it is not written yet, and its reader reads"
            );
        }
        says.send(()).unwrap();
        seen.recv().unwrap();
        assert_eq!(soon(line).await, Ok(()));
    }

    #[tokio::test]
    async fn a_client_that_has_closed_its_end_is_gone_at_once() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let writer = Writer::start(Closed).unwrap();
        assert_eq!(writer.write(&message(1)).await, Err(Gone::Closed));
        assert_eq!(writer.gone().await, Gone::Closed);
    }
}
