//! Writes lines in order: inline while the output has room, and otherwise on a thread.

use super::nonblocking::NonblockingWriter;
use crate::messages::serialize::Serialized;
use palisade::internal::Owed;
use std::io::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};
use std::time::Duration;
use tokio::sync::{Notify, oneshot, watch};
use tokio_util::sync::CancellationToken;

/// The write timeout: the time in which the client may read no byte of pending output.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// The size of one write, in bytes: a pipe has room for it as soon as its reader has freed one
/// page, so that a slow reader still shows progress.
const PIECE: usize = 4096;

/// The maximum number of queued lines. Requests wait above it.
const MAX_LINES: usize = 64;
/// The maximum number of queued bytes: room for several responses of maximum size.
const MAX_BYTES: usize = 16 << 20;

/// The reason why a client counts as disconnected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Disconnect {
    /// The client's end is closed, or a write failed.
    #[error("the client has closed its end")]
    Closed,
    /// The client has read no byte for the write timeout.
    #[error("the client has read none of its pending output for {} s", WRITE_TIMEOUT.as_secs())]
    Stalled,
}

/// A queue of lines to write. Its memory is bounded by the producers, which wait in [`Self::room`]
/// or for their own line.
pub(super) struct LineWriter {
    /// Locking this sender fixes the position of a line.
    sender: Mutex<mpsc::Sender<QueuedLine>>,
    queue: Arc<Queue>,
    /// Notified for each piece that the client has read.
    pieces: watch::Sender<()>,
    inline: Option<NonblockingWriter>,
    disconnected: CancellationToken,
    reason: Arc<OnceLock<Disconnect>>,
}

impl LineWriter {
    /// Writes to this output on a thread until the queue is dropped. A thread whose output blocks
    /// stays behind.
    pub(super) fn start(output: impl Write + Send + 'static) -> io::Result<Self> {
        let (sender, lines) = mpsc::channel();
        let queue = Arc::new(Queue::default());
        let pieces = watch::Sender::new(());
        let disconnected = CancellationToken::new();
        let thread = WriterThread {
            output,
            queue: queue.clone(),
            pieces: pieces.clone(),
            disconnected: disconnected.clone(),
        };
        std::thread::Builder::new()
            .name("palisade-output".to_owned())
            .spawn(move || thread.run(&lines))?;
        Ok(Self {
            sender: Mutex::new(sender),
            queue,
            pieces,
            inline: None,
            disconnected,
            reason: Arc::default(),
        })
    }

    /// Stores the reason here if the client disconnects.
    pub(super) fn with_reason(self, reason: Arc<OnceLock<Disconnect>>) -> Self {
        Self { reason, ..self }
    }

    /// Writes inline to `writer`, a duplicate of the output, as far as it has room.
    pub(super) fn with_inline(self, writer: NonblockingWriter) -> Self {
        Self { inline: Some(writer), ..self }
    }

    /// Completes when the queue is below its limits.
    pub(super) async fn room(&self) {
        while !self.has_room() {
            self.queue.written.notified().await;
        }
    }

    /// Returns true if the queue is below its limits.
    pub(super) fn has_room(&self) -> bool {
        self.queue.lines.load(Ordering::Acquire) < MAX_LINES
            && self.queue.bytes.load(Ordering::Acquire) < MAX_BYTES
    }

    /// Queues a message at once. The future completes when it is written.
    pub(super) fn write(
        &self,
        message: Serialized,
    ) -> impl Future<Output = Result<(), Disconnect>> + Send + 'static + use<> {
        let pending = self.write_or_queue(message);
        // A line written inline needs none of these handles.
        let slow = pending.transpose().map(|pending| {
            let pieces = self.pieces.subscribe();
            (pending, pieces, self.reason.clone(), self.disconnected.clone())
        });
        async move {
            let Some((pending, pieces, reason, disconnected)) = slow else { return Ok(()) };
            let written = match pending {
                Ok(pending) => wait_until_written(pending, pieces).await,
                Err(_) => Err(Disconnect::Closed),
            };
            written.map_err(|cause| {
                let cause = *reason.get_or_init(|| cause);
                disconnected.cancel();
                cause
            })
        }
    }

    /// Completes when the client has disconnected.
    pub(super) async fn disconnected(&self) -> Disconnect {
        self.disconnected.cancelled().await;
        // No reason was stored: the thread met a write error.
        *self.reason.get_or_init(|| Disconnect::Closed)
    }

    /// Writes a line inline as far as that does not block, and queues the rest. The receiver
    /// completes when it is written, with an error if the thread has ended.
    fn write_or_queue(&self, message: Serialized) -> io::Result<Option<oneshot::Receiver<()>>> {
        let (line, owed) = message.into_line();
        let sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = self.write_inline(&line)?;
        let rest = line.len().saturating_sub(begun);
        if rest == 0 {
            return Ok(None);
        }
        let owed = owed.unwrap_or_else(|| Owed::new(line.len()));
        let (written, is_written) = oneshot::channel();
        self.queue.add(rest);
        // A failed send drops the line with its sender, which the receiver reports.
        let _ = sender.send(QueuedLine { line, begun, written, owed });
        Ok(Some(is_written))
    }

    /// Returns the number of bytes written.
    fn write_inline(&self, line: &[u8]) -> io::Result<usize> {
        match &self.inline {
            // Queued lines come first.
            Some(writer) if self.queue.lines.load(Ordering::Acquire) == 0 => writer.write(line),
            _ => Ok(0),
        }
    }
}

/// The lines that the thread has not written yet.
#[derive(Default)]
struct Queue {
    lines: AtomicUsize,
    bytes: AtomicUsize,
    /// Notified for each line that the thread has written.
    written: Notify,
}

impl Queue {
    fn add(&self, bytes: usize) {
        self.lines.fetch_add(1, Ordering::AcqRel);
        self.bytes.fetch_add(bytes, Ordering::AcqRel);
    }

    fn remove(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Release);
        self.lines.fetch_sub(1, Ordering::Release);
    }
}

struct QueuedLine {
    /// The whole line: the rest of a long one is not copied.
    line: Vec<u8>,
    /// The number of bytes that were written inline.
    begun: usize,
    written: oneshot::Sender<()>,
    /// The memory of the line, counted for the whole process.
    owed: Owed,
}

/// The thread that writes queued lines.
struct WriterThread<W> {
    output: W,
    queue: Arc<Queue>,
    pieces: watch::Sender<()>,
    disconnected: CancellationToken,
}

impl<W: Write> WriterThread<W> {
    fn run(mut self, lines: &mpsc::Receiver<QueuedLine>) {
        for QueuedLine { line, begun, written, owed } in lines {
            let rest = line.get(begun..).unwrap_or_default();
            if self.write_in_pieces(rest).is_err() {
                self.disconnected.cancel();
                return;
            }
            self.queue.remove(rest.len());
            drop((line, owed));
            self.queue.written.notify_one();
            let _ = written.send(());
        }
    }

    /// Writes a line in pieces, and reports each piece that the output has taken.
    fn write_in_pieces(&mut self, line: &[u8]) -> io::Result<()> {
        for piece in line.chunks(PIECE) {
            self.output.write_all(piece)?;
            self.pieces.send_replace(());
        }
        self.output.flush()
    }
}

/// Waits for a line to be written, as long as the client reads anything of this line or an earlier
/// one.
async fn wait_until_written(
    mut written: oneshot::Receiver<()>,
    mut pieces: watch::Receiver<()>,
) -> Result<(), Disconnect> {
    loop {
        tokio::select! {
            biased;
            written = &mut written => return written.map_err(|_| Disconnect::Closed),
            piece = pieces.changed() => piece.map_err(|_| Disconnect::Closed)?,
            () = tokio::time::sleep(WRITE_TIMEOUT) => return Err(Disconnect::Stalled),
        }
    }
}

#[cfg(test)]
mod tests;
