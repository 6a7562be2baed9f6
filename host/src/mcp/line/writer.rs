//! Writes lines in the order in which they were given: in place where the output has room, and otherwise on a thread of its own.

#[cfg(unix)]
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

/// How long the client may take no byte of what waits to be written. Then it counts as gone.
const PATIENCE: Duration = Duration::from_secs(30);

/// How much is written at once, in bytes: a pipe whose reader has freed one page takes so much, so that a slow reader is
/// seen to read.
const PIECE: usize = 4096;

/// How many lines may wait to be written before nothing more is read.
const WAITING: usize = 64;
/// How many bytes they may have together: some answers of the largest size.
const WAITING_BYTES: usize = 16 << 20;

/// The client does not read any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(in crate::mcp) enum Gone {
    /// Its end is closed, or cannot be written.
    #[error("the client has closed its end")]
    Closed,
    /// It has taken no byte for too long.
    #[error("the client has read nothing of what waits for it for {} s", PATIENCE.as_secs())]
    Stalled,
}

/// The lines of an output. What waits in it is bounded by what waits for it to be written.
pub(super) struct Writer {
    /// Whoever has it gives a line its place.
    lines: Mutex<mpsc::Sender<Waiting>>,
    /// How many of them the thread has not written yet.
    waiting: Arc<AtomicUsize>,
    /// How many bytes those have.
    bytes: Arc<AtomicUsize>,
    /// Told of each that the thread has written.
    written: Arc<Notify>,
    /// Told of each piece that the client has taken.
    taken: watch::Sender<()>,
    #[cfg(unix)]
    room: Option<Room>,
    gone: CancellationToken,
    why: Arc<OnceLock<Gone>>,
}

struct Waiting {
    line: Vec<u8>,
    written: oneshot::Sender<()>,
    /// It counts among the memory of all calls.
    owed: Owed,
}

impl Writer {
    /// Writes to this output until nobody has lines any more. The thread may stay behind where the output blocks.
    pub(super) fn start(mut output: impl Write + Send + 'static) -> io::Result<Self> {
        let (send, lines) = mpsc::channel::<Waiting>();
        let (gone, waiting) = (CancellationToken::new(), Arc::new(AtomicUsize::new(0)));
        let (written, fails, left) = (Arc::new(Notify::new()), gone.clone(), waiting.clone());
        let (tells, taken, bytes) = (written.clone(), watch::Sender::new(()), Arc::new(AtomicUsize::new(0)));
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
            #[cfg(unix)]
            room: None,
            gone,
            why: Arc::default(),
        })
    }

    /// Leaves the reason here where the client does not read any more.
    pub(super) fn noting(self, why: Arc<OnceLock<Gone>>) -> Self {
        Self { why, ..self }
    }

    /// Writes in place what this output, which is the same, has room for.
    #[cfg(unix)]
    pub(super) fn in_place(self, room: Room) -> Self {
        Self { room: Some(room), ..self }
    }

    /// Completes once no more lines wait to be written than may.
    pub(super) async fn room(&self) {
        let is_full =
            || self.waiting.load(Ordering::Acquire) >= WAITING || self.bytes.load(Ordering::Acquire) >= WAITING_BYTES;
        while is_full() {
            self.written.notified().await;
        }
    }

    /// Gives a message its place, at once; the future ends when it is written.
    pub(super) fn write(
        &self,
        message: &ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Gone>> + Send + 'static + use<> {
        self.put(Written::unasked(message))
    }

    /// The same with a message that is made into bytes.
    pub(super) fn put(&self, message: Written) -> impl Future<Output = Result<(), Gone>> + Send + 'static + use<> {
        let (mut line, owed) = message.into_line();
        let waits = {
            let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
            let left = self.write_now(&line).map(|written| line.split_off(written));
            left.map(|left| (!left.is_empty()).then(|| self.queue(&lines, (left, owed))))
        };
        // What was written in place needs nothing of this.
        let slow = waits.transpose().map(|waits| (waits, self.gone.clone(), self.why.clone(), self.taken.subscribe()));
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

    /// What of a line could be written without waiting, in bytes.
    #[cfg(unix)]
    fn write_now(&self, line: &[u8]) -> io::Result<usize> {
        match &self.room {
            // What waits came first.
            Some(room) if self.waiting.load(Ordering::Acquire) == 0 => room.write(line),
            _ => Ok(0),
        }
    }

    #[cfg(not(unix))]
    fn write_now(&self, _: &[u8]) -> io::Result<usize> {
        Ok(0)
    }

    /// Completes, with an error where the thread has ended, once a line is written.
    fn queue(&self, lines: &mpsc::Sender<Waiting>, (line, owed): (Vec<u8>, Option<Owed>)) -> oneshot::Receiver<()> {
        let (written, is_written) = oneshot::channel();
        self.waiting.fetch_add(1, Ordering::AcqRel);
        self.bytes.fetch_add(line.len(), Ordering::AcqRel);
        let owed = owed.unwrap_or_else(|| Owed::new(line.len()));
        // Where nobody takes it, it is dropped, and that is known.
        let _ = lines.send(Waiting { line, written, owed });
        is_written
    }

    /// Completes once the client does not read any more.
    pub(super) async fn gone(&self) -> Gone {
        self.gone.cancelled().await;
        // Without another reason the thread has met an error.
        *self.why.get_or_init(|| Gone::Closed)
    }
}

/// Tells of each piece that the output has taken.
fn write_in_pieces(output: &mut impl Write, line: &[u8], taken: &watch::Sender<()>) -> io::Result<()> {
    for piece in line.chunks(PIECE) {
        output.write_all(piece)?;
        taken.send_replace(());
    }
    output.flush()
}

/// Waits for a line to be written for as long as the client takes something, of this line or of one before it.
async fn patiently(mut written: oneshot::Receiver<()>, mut taken: watch::Receiver<()>) -> Result<(), Gone> {
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

    /// A message of so many letters.
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

    /// A pipe whose reader takes one piece at each word, and none without.
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
    async fn lines_are_written_in_the_order_in_which_they_were_given_whenever_they_are_waited_for() {
        let output = Shared::default();
        let writer = Writer::start(output.clone()).unwrap();
        let mut written: Vec<_> = (0..100).map(|id| writer.write(&message(id))).collect();
        while let Some(last) = written.pop() {
            assert_eq!(last.await, Ok(()));
        }
        let text = String::from_utf8(output.0.lock().unwrap().clone()).unwrap();
        let id = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["id"].as_i64().unwrap();
        assert_eq!(text.lines().map(id).collect::<Vec<_>>(), (0..100).collect::<Vec<_>>());
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn lines_that_find_room_and_lines_that_wait_for_it_keep_their_order() {
        use std::io::Read as _;
        let (mut input, output) = io::pipe().unwrap();
        let room = Room::new(output.try_clone().unwrap().into());
        let writer = Writer::start(output).unwrap().in_place(room);
        // More than a pipe holds, so that some wait.
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
        let id = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["id"].as_i64().unwrap();
        assert_eq!(text.lines().map(id).collect::<Vec<_>>(), (0..2000).collect::<Vec<_>>());
    }

    /// Whether a future is ready now. Nothing is waited for, so that the clock stays where it is.
    async fn now<T>(future: &mut (impl Future<Output = T> + Unpin)) -> std::task::Poll<T> {
        std::future::poll_fn(|cx| std::task::Poll::Ready(std::pin::Pin::new(&mut *future).poll(cx))).await
    }

    /// What comes of a future that another thread completes. The clock would go on if this waited for it.
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
            // The thread is another's: real time passes here, and the clock of the test does not.
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
