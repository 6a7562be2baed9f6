//! Writes events as JSON lines on a separate thread, so that a slow disk or a stuck pipe delays no
//! call.

use super::queue_limits::{QueueLimits, QueuedEvent};
use super::{Envelope, Subscriber};
use std::fmt;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Thread;
use std::time::Duration;

/// The time for which the writer collects events between writes: waking it for each event would
/// cost more than most calls.
const GATHERING: Duration = Duration::from_millis(1);
/// The queue length at which new events are dropped and counted.
pub const WAITING_LINES: usize = 4096;
/// The memory limit of the queued events, in bytes.
pub const WAITING_BYTES: usize = 8 << 20;

/// The size in bytes at which collected lines are written; the last line may exceed it.
const AT_ONCE: usize = 16 << 10;

/// A subscriber that writes each event as one line of JSON.
pub struct JsonLines {
    queue: Mutex<Option<SyncSender<QueuedEvent>>>,
    limits: Arc<QueueLimits>,
    lost: AtomicU64,
    writer: Thread,
    done: Mutex<Receiver<io::Result<()>>>,
}

impl fmt::Debug for JsonLines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JsonLines").field("lost", &self.lost).finish_non_exhaustive()
    }
}

/// The reason why lines were not written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinesError {
    /// The destination returned an error.
    #[error("the events could not be written: {0}")]
    Write(#[source] io::Error),
    /// The destination no longer accepts data.
    #[error("some events were not written: their reader has stopped reading")]
    Stalled,
    /// Events arrived faster than the destination could accept them.
    #[error("{0} events were not written: they came faster than they could be written")]
    Lost(u64),
}

impl JsonLines {
    /// Starts the writer thread.
    ///
    /// # Errors
    ///
    /// The system's error if no thread can be started.
    pub fn new(destination: impl Write + Send + 'static) -> io::Result<Arc<Self>> {
        let (queue, lines) = sync_channel(WAITING_LINES);
        let (ended, done) = channel();
        let writer =
            std::thread::Builder::new().name("palisade-events".to_owned()).spawn(move || {
                let _ = ended.send(write(&lines, destination));
            })?;
        let queue = Mutex::new(Some(queue));
        let writer = writer.thread().clone();
        let done = Mutex::new(done);
        let limits = QueueLimits::new(WAITING_LINES, WAITING_BYTES);
        Ok(Arc::new(Self { queue, limits, lost: AtomicU64::new(0), writer, done }))
    }

    /// Writes the queued events, for at most this long. Later events are dropped.
    ///
    /// # Errors
    ///
    /// [`LinesError`] if not all lines were written.
    pub fn finish(&self, within: Duration) -> Result<(), LinesError> {
        drop(self.queue.lock().unwrap_or_else(PoisonError::into_inner).take());
        self.writer.unpark();
        match self.done.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(within) {
            Ok(Err(error)) => Err(LinesError::Write(error)),
            Err(RecvTimeoutError::Timeout) => Err(LinesError::Stalled),
            Ok(Ok(())) | Err(RecvTimeoutError::Disconnected) => {
                match self.lost.load(Ordering::Relaxed) {
                    0 => Ok(()),
                    lost => Err(LinesError::Lost(lost)),
                }
            }
        }
    }
}

impl Subscriber for JsonLines {
    fn receive(&self, event: &Envelope) {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(queue) = &*queue else { return };
        let entry = self.limits.admit(event);
        let before = entry.as_ref().map(|entry| entry.before);
        if entry.is_none_or(|entry| queue.try_send(entry).is_err()) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        // A burst of events: wake the writer before the queue fills up.
        if before == Some(WAITING_LINES / 8) {
            self.writer.unpark();
        }
    }
}

/// Writes events until the queue closes. After an error it drains the queue without writing, so
/// that a full disk does not fill the queue too.
fn write(lines: &Receiver<QueuedEvent>, mut destination: impl Write) -> io::Result<()> {
    let mut outcome = Ok(());
    let mut text = Vec::new();
    while let Ok(first) = lines.recv() {
        let mut events = std::iter::once(first).chain(lines.try_iter()).peekable();
        while let Some(event) = events.next() {
            event.event.append_to(&mut text);
            drop(event);
            if text.len() < AT_ONCE && events.peek().is_some() {
                continue;
            }
            if outcome.is_ok() {
                outcome = destination.write_all(&text);
            }
            text.clear();
        }
        // `finish` and a burst of events cut this short by unparking the thread.
        std::thread::park_timeout(GATHERING);
    }
    outcome.and_then(|()| destination.flush())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use super::*;
    use crate::events::{Event, Subject};
    use crate::execution::Severity;
    use crate::tool::CallId;

    #[test]
    fn fast_writer_loses_no_line() {
        let lines = JsonLines::new(io::sink()).unwrap();
        let subject = Subject {
            call_id: CallId::new("c"),
            parent: None,
            session_id: None,
            turn_id: None,
            tool: "t".into(),
            side_effects: None,
        };
        let event = Event::Log(subject, Severity::Info, "chatter".to_owned());
        let event = Envelope { seq: 1, time: std::time::SystemTime::now(), event };
        for _ in 0..10 * WAITING_LINES {
            lines.receive(&event);
            while lines.limits.waiting() > WAITING_LINES / 4 {
                std::thread::yield_now();
            }
        }
        let limits = lines.limits.clone();
        lines.finish(Duration::from_secs(60)).unwrap();
        assert_eq!(limits.waiting(), 0, "the count of what waits ends where it began");
    }

    /// A destination that blocks until it is released.
    struct Stuck(Receiver<()>);

    impl Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn slow_writer_queue_is_bounded_in_bytes() {
        let (let_go, stuck) = channel();
        let lines = JsonLines::new(Stuck(stuck)).unwrap();
        let subject = Subject {
            call_id: CallId::new("c"),
            parent: None,
            session_id: None,
            turn_id: None,
            tool: "t".into(),
            side_effects: None,
        };
        let event = Event::OutputDelta(subject, "x".repeat(128 << 10));
        let event = Envelope { seq: 1, time: std::time::SystemTime::now(), event };
        for _ in 0..1000 {
            lines.receive(&event);
        }
        drop(let_go);
        let most = WAITING_BYTES / 2 / (128 << 10);
        // The writer may have taken some events before it blocked.
        let lost = match lines.finish(Duration::from_secs(60)) {
            Err(LinesError::Lost(lost)) => lost as usize,
            other => panic!("{other:?}"),
        };
        assert!((1000 - most - 2..=1000 - most + 2).contains(&lost), "{lost} of 1000 are lost");
    }
}
