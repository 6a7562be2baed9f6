//! Writes lines in the order in which they were given, on a thread of its own.

use rmcp::model::ServerJsonRpcMessage;
use std::io::{self, Write};
use std::sync::mpsc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// How long a line may wait until the client has read enough for it to be written. Then the client counts as gone.
const PATIENCE: Duration = Duration::from_secs(30);

/// Nobody reads any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the client does not read any more")]
pub(in crate::mcp) struct Gone;

/// The lines of an output. What waits in it is bounded by what waits for it to be written.
pub(super) struct Writer {
    lines: mpsc::Sender<Waiting>,
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
        let gone = CancellationToken::new();
        let fails = gone.clone();
        std::thread::Builder::new().name("palisade-output".to_owned()).spawn(move || {
            for Waiting { line, written } in lines {
                if output.write_all(&line).and_then(|()| output.flush()).is_err() {
                    fails.cancel();
                    return;
                }
                let _ = written.send(());
            }
        })?;
        Ok(Self { lines: send, gone })
    }

    /// Gives a line its place, at once; the future ends when it is written.
    pub(super) fn write(
        &self,
        message: &ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Gone>> + Send + 'static + use<> {
        let (written, is_written) = oneshot::channel();
        // A message of the library's own is JSON. Without a line, nothing is said.
        let line = serde_json::to_vec(message).unwrap_or_default();
        let waits =
            !line.is_empty() && self.lines.send(Waiting { line: [line, b"\n".to_vec()].concat(), written }).is_ok();
        let gone = self.gone.clone();
        async move {
            if waits && matches!(tokio::time::timeout(PATIENCE, is_written).await, Ok(Ok(()))) {
                return Ok(());
            }
            gone.cancel();
            Err(Gone)
        }
    }

    /// Completes once nobody reads any more.
    pub(super) async fn gone(&self) {
        self.gone.cancelled().await;
    }
}
