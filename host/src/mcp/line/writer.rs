//! Writes lines in the order in which they were given: in place where the output has room, and otherwise on a thread of its own.

#[cfg(unix)]
use super::ready::Room;
use rmcp::model::ServerJsonRpcMessage;
use std::io::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;

/// How long a line may wait until the client has read enough for it to be written. Then the client counts as gone.
const PATIENCE: Duration = Duration::from_secs(30);

/// How many lines may wait to be written before nothing more is read.
const WAITING: usize = 64;

/// Nobody reads any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the client does not read any more")]
pub(in crate::mcp) struct Gone;

/// The lines of an output. What waits in it is bounded by what waits for it to be written.
pub(super) struct Writer {
    /// Whoever has it gives a line its place.
    lines: Mutex<mpsc::Sender<Waiting>>,
    /// How many of them the thread has not written yet.
    waiting: Arc<AtomicUsize>,
    /// Told of each that the thread has written.
    written: Arc<Notify>,
    #[cfg(unix)]
    room: Option<Room>,
    gone: CancellationToken,
}

struct Waiting {
    line: Vec<u8>,
    written: oneshot::Sender<()>,
}

impl Writer {
    /// Writes to this output until nobody has lines any more. The thread may stay behind where the output blocks.
    pub(super) fn start(mut output: impl Write + Send + 'static) -> io::Result<Self> {
        let (send, lines) = mpsc::channel::<Waiting>();
        let (gone, waiting) = (CancellationToken::new(), Arc::new(AtomicUsize::new(0)));
        let (written, fails, left) = (Arc::new(Notify::new()), gone.clone(), waiting.clone());
        let tells = written.clone();
        std::thread::Builder::new().name("palisade-output".to_owned()).spawn(move || {
            for Waiting { line, written: done } in lines {
                if output.write_all(&line).and_then(|()| output.flush()).is_err() {
                    fails.cancel();
                    return;
                }
                left.fetch_sub(1, Ordering::Release);
                tells.notify_one();
                let _ = done.send(());
            }
        })?;
        Ok(Self {
            lines: Mutex::new(send),
            waiting,
            written,
            #[cfg(unix)]
            room: None,
            gone,
        })
    }

    /// Writes in place what this output, which is the same, has room for.
    #[cfg(unix)]
    pub(super) fn in_place(self, room: Room) -> Self {
        Self { room: Some(room), ..self }
    }

    /// Completes once no more lines wait to be written than may.
    pub(super) async fn room(&self) {
        while self.waiting.load(Ordering::Acquire) >= WAITING {
            self.written.notified().await;
        }
    }

    /// Gives a message its place, at once; the future ends when it is written.
    pub(super) fn write(
        &self,
        message: &ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Gone>> + Send + 'static + use<> {
        self.put(line(message))
    }

    /// The same with a line.
    pub(super) fn put(&self, mut line: Vec<u8>) -> impl Future<Output = Result<(), Gone>> + Send + 'static + use<> {
        let waits = {
            let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
            let left = self.write_now(&line).map(|written| line.split_off(written));
            left.map(|left| (!left.is_empty()).then(|| self.queue(&lines, left)))
        };
        let gone = self.gone.clone();
        async move {
            let is_written = match waits {
                Ok(None) => return Ok(()),
                Ok(Some(waits)) => matches!(tokio::time::timeout(PATIENCE, waits).await, Ok(Ok(()))),
                Err(_) => false,
            };
            if is_written {
                return Ok(());
            }
            gone.cancel();
            Err(Gone)
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
    fn queue(&self, lines: &mpsc::Sender<Waiting>, line: Vec<u8>) -> oneshot::Receiver<()> {
        let (written, is_written) = oneshot::channel();
        self.waiting.fetch_add(1, Ordering::AcqRel);
        // Where nobody takes it, it is dropped, and that is known.
        let _ = lines.send(Waiting { line, written });
        is_written
    }

    /// Completes once nobody reads any more.
    pub(super) async fn gone(&self) {
        self.gone.cancelled().await;
    }
}

/// The line of a message.
pub(super) fn line(message: &ServerJsonRpcMessage) -> Vec<u8> {
    // A message of the library's own is JSON.
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use rmcp::model::{ErrorData, JsonRpcMessage, RequestId};

    fn message(id: i64) -> ServerJsonRpcMessage {
        JsonRpcMessage::error(ErrorData::invalid_request("no", None), Some(RequestId::Number(id)))
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

    /// A pipe that nobody reads.
    struct Stuck(mpsc::Receiver<()>);

    impl Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
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

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_read_counts_as_gone_after_a_while() {
        let (_holds, stuck) = mpsc::channel();
        let writer = Writer::start(Stuck(stuck)).unwrap();
        let start = tokio::time::Instant::now();
        assert_eq!(writer.write(&message(1)).await, Err(Gone));
        assert_eq!(start.elapsed(), PATIENCE);
        writer.gone().await;
        assert_eq!(start.elapsed(), PATIENCE, "whoever listens knows it at once");
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
        assert_eq!(writer.write(&message(1)).await, Err(Gone));
        writer.gone().await;
    }
}
