//! One command from its start to its end: its output read as it comes, and stopped where it has to be.

use super::output::Output;
use super::process::{End, Started};
use crate::execution::Sink;
use std::future::{Future, pending};
use std::pin::pin;
use std::time::Duration;
use tokio::io::AsyncReadExt as _;
use tokio::process::ChildStdout;
use tokio::sync::oneshot;

/// How much is read at once: what a pipe holds.
const PIECE: usize = 64 << 10;

/// How long the host waits for a command that should end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Patience {
    /// From SIGTERM to SIGKILL.
    pub(super) grace: Duration,
    /// For the rest of the output once the shell has ended: processes in the background may hold the pipe for ever. Long enough for what a pipeline's last
    /// program still writes, short enough not to be felt.
    pub(super) rest: Duration,
    /// For what the kernel has to do after a SIGKILL; a process that hangs in the kernel is not waited for any longer.
    pub(super) kernel: Duration,
}

impl Patience {
    /// What holds for every command.
    pub(super) const SHIPPED: Self =
        Self { grace: Duration::from_secs(5), rest: Duration::from_millis(250), kernel: Duration::from_secs(5) };
}

/// Why a command was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// The caller or the dispatcher said so.
    Told,
    /// The time that the input gave is over.
    OwnLimit(Duration),
}

/// Completes when the time is over that the input gave; never where it gave none.
pub(super) async fn own_limit(limit: Option<Duration>) -> Why {
    match limit {
        Some(limit) => {
            tokio::time::sleep(limit).await;
            Why::OwnLimit(limit)
        }
        None => pending().await,
    }
}

/// How a command ended.
#[derive(Debug)]
pub(super) struct Ending {
    pub(super) end: End,
    pub(super) stopped: Option<Why>,
    pub(super) output: Output,
}

/// Follows a command to its end. Nothing of its group is alive afterwards, nor where this future is dropped.
pub(super) async fn follow(
    started: Started,
    stdout: ChildStdout,
    stop: impl Future<Output = Why>,
    sink: &dyn Sink,
    patience: Patience,
) -> Ending {
    let Started { group, ended, tidied, .. } = started;
    let mut watch = Watch { stdout: Some(stdout), ended, end: None, output: Output::default(), piece: vec![0; PIECE] };
    let stopped = watch.until_ended(stop, sink).await;
    if stopped.is_some() {
        group.terminate();
        watch.until_closed(patience.grace, sink).await;
    } else {
        watch.until_closed(patience.rest, sink).await;
    }
    group.kill();
    watch.until_closed(patience.rest, sink).await;
    let end = watch.end(patience.kernel).await;
    watch.output.finish(sink);
    drop(group);
    // The thread that attends to the processes removes their directory; where that takes long it does so alone.
    let _ = tokio::time::timeout(patience.kernel, tidied).await;
    Ending { end, stopped, output: watch.output }
}

struct Watch {
    /// None once it is closed.
    stdout: Option<ChildStdout>,
    ended: oneshot::Receiver<End>,
    end: Option<End>,
    output: Output,
    piece: Vec<u8>,
}

impl Watch {
    /// Reads until the shell has ended, or it is to be stopped. What could end it is looked at before each piece, so that no flood of output drowns it.
    async fn until_ended(&mut self, stop: impl Future<Output = Why>, sink: &dyn Sink) -> Option<Why> {
        let mut stop = pin!(stop);
        loop {
            tokio::select! {
                biased;
                end = &mut self.ended => {
                    self.end = Some(end.unwrap_or(End::Unknown));
                    return None;
                }
                why = &mut stop => return Some(why),
                read = read(&mut self.stdout, &mut self.piece) => self.take(read, sink),
            }
        }
    }

    /// Reads until the shell has ended and its output is closed, for so long at most.
    async fn until_closed(&mut self, limit: Duration, sink: &dyn Sink) {
        let mut over = pin!(tokio::time::sleep(limit));
        while self.end.is_none() || self.stdout.is_some() {
            tokio::select! {
                biased;
                () = &mut over => return,
                end = &mut self.ended, if self.end.is_none() => self.end = Some(end.unwrap_or(End::Unknown)),
                read = read(&mut self.stdout, &mut self.piece) => self.take(read, sink),
            }
        }
    }

    async fn end(&mut self, limit: Duration) -> End {
        match self.end {
            Some(end) => end,
            None => {
                tokio::time::timeout(limit, &mut self.ended).await.ok().and_then(Result::ok).unwrap_or(End::Unknown)
            }
        }
    }

    fn take(&mut self, read: usize, sink: &dyn Sink) {
        match read {
            0 => self.stdout = None,
            read => self.output.push(&self.piece[..read], sink),
        }
    }
}

/// The next piece; nothing at the end, and never anything after it. A pipe that cannot be read is at its end.
async fn read(stdout: &mut Option<ChildStdout>, piece: &mut [u8]) -> usize {
    match stdout {
        Some(stdout) => stdout.read(piece).await.unwrap_or(0),
        None => pending().await,
    }
}
