//! Writes lines in order: inline while the output has room, and otherwise on a thread.

use super::nonblocking::Room;
use crate::messages::serialize::Written;
use palisade::internal::Owed;
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
pub(crate) enum Gone {
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
        let gone = CancellationToken::new();
        let waiting = Arc::new(AtomicUsize::new(0));
        let written = Arc::new(Notify::new());
        let fails = gone.clone();
        let left = waiting.clone();
        let tells = written.clone();
        let taken = watch::Sender::new(());
        let bytes = Arc::new(AtomicUsize::new(0));
        let takes = taken.clone();
        let leaves = bytes.clone();
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
mod tests;
