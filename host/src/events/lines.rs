//! Events as JSON lines, written by a thread of their own, so that a slow disk or a stuck pipe delays no call.

use super::{Envelope, Subscriber};
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Thread;
use std::time::Duration;

/// How long the writer gathers events after it has written some: to wake it for each costs more than most calls do.
const GATHERING: Duration = Duration::from_millis(1);
/// Events that wait for a slow writer, before the newest are dropped and counted.
pub const WAITING_LINES: usize = 4096;

/// How much is gathered at most, in bytes, but for the last line.
const AT_ONCE: usize = 16 << 10;

/// Writes each event as one line of JSON.
pub struct JsonLines {
    queue: Mutex<Option<SyncSender<Envelope>>>,
    lost: AtomicU64,
    waiting: Arc<AtomicUsize>,
    writer: Thread,
    done: Mutex<Receiver<io::Result<()>>>,
}

/// Lines that were not written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinesError {
    /// The destination refused them.
    #[error("the events could not be written: {0}")]
    Write(#[source] io::Error),
    /// The destination takes nothing any more.
    #[error("some events were not written: whoever reads them has stopped reading")]
    Stalled,
    /// There were more than the destination could take in time.
    #[error("{0} events were not written: they came faster than they could be written")]
    Lost(u64),
}

impl JsonLines {
    /// Starts writing.
    ///
    /// # Errors
    ///
    /// Where no thread can be started.
    pub fn new(destination: impl Write + Send + 'static) -> io::Result<Arc<Self>> {
        let (queue, lines) = sync_channel(WAITING_LINES);
        let (ended, done) = channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let taken = waiting.clone();
        let writer = std::thread::Builder::new().name("palisade-events".to_owned()).spawn(move || {
            let _ = ended.send(write(&lines, &taken, destination));
        })?;
        let (queue, writer, done) = (Mutex::new(Some(queue)), writer.thread().clone(), Mutex::new(done));
        Ok(Arc::new(Self { queue, lost: AtomicU64::new(0), waiting, writer, done }))
    }

    /// Writes what still waits, for at most this long. What comes later is dropped.
    ///
    /// # Errors
    ///
    /// [`LinesError`] where not all lines were written.
    pub fn finish(&self, within: Duration) -> Result<(), LinesError> {
        drop(self.queue.lock().unwrap_or_else(PoisonError::into_inner).take());
        self.writer.unpark();
        match self.done.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(within) {
            Ok(Err(error)) => Err(LinesError::Write(error)),
            Err(RecvTimeoutError::Timeout) => Err(LinesError::Stalled),
            Ok(Ok(())) | Err(RecvTimeoutError::Disconnected) => match self.lost.load(Ordering::Relaxed) {
                0 => Ok(()),
                lost => Err(LinesError::Lost(lost)),
            },
        }
    }
}

impl Subscriber for JsonLines {
    fn receive(&self, event: &Envelope) {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(queue) = &*queue else { return };
        // Half of the places are kept for the beginnings and ends of calls: no tool can push those out by talking.
        // Counted before it is sent, so that the writer never takes away what has not been added.
        let before = self.waiting.fetch_add(1, Ordering::Relaxed);
        let has_place = !event.event.is_chatter() || before < WAITING_LINES / 2;
        if !has_place || queue.try_send(event.clone()).is_err() {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        // What comes so fast is not gathered any longer.
        if before == WAITING_LINES / 8 {
            self.writer.unpark();
        }
    }
}

/// After the first failure the rest is taken and dropped: a full disk shall not fill the queue as well.
fn write(lines: &Receiver<Envelope>, waiting: &AtomicUsize, mut destination: impl Write) -> io::Result<()> {
    let (mut outcome, mut text) = (Ok(()), Vec::new());
    while let Ok(first) = lines.recv() {
        let mut events = std::iter::once(first).chain(lines.try_iter()).peekable();
        while let Some(event) = events.next() {
            waiting.fetch_sub(1, Ordering::Relaxed);
            event.append_to(&mut text);
            if text.len() < AT_ONCE && events.peek().is_some() {
                continue;
            }
            if outcome.is_ok() {
                outcome = destination.write_all(&text);
            }
            text.clear();
        }
        // The end of the program cuts this short.
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
    fn a_writer_that_keeps_pace_loses_nothing_however_many_lines_there_are() {
        let lines = JsonLines::new(io::sink()).unwrap();
        let subject = Subject {
            call_id: CallId::new("c"),
            session_id: None,
            turn_id: None,
            tool: "t".into(),
            side_effects: None,
        };
        let event = Event::Log(subject, Severity::Info, "chatter".to_owned());
        let event = Envelope { seq: 1, time: std::time::SystemTime::now(), event };
        for _ in 0..10 * WAITING_LINES {
            lines.receive(&event);
            while lines.waiting.load(Ordering::Relaxed) > WAITING_LINES / 4 {
                std::thread::yield_now();
            }
        }
        let waiting = lines.waiting.clone();
        lines.finish(Duration::from_secs(60)).unwrap();
        assert_eq!(waiting.load(Ordering::Relaxed), 0, "the count of what waits ends where it began");
    }
}
