//! Follows one command from its start to its end: reads its output and stops it on request.

use super::output::Output;
use super::process::{End, Started};
use palisade::execution::Sink;
use std::future::{Future, pending};
use std::pin::pin;
use std::time::Duration;
use tokio::io::AsyncReadExt as _;
use tokio::process::ChildStdout;
use tokio::sync::oneshot;

/// Size of a read, in bytes: the capacity of a pipe.
const PIECE: usize = 64 << 10;

/// The timeouts for ending a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Patience {
    /// From SIGTERM to SIGKILL.
    pub(super) grace: Duration,
    /// For the remaining output after the end of the shell, because background processes may hold
    /// the pipe open: long enough for the last program of a pipeline, and not noticeable.
    pub(super) rest: Duration,
    /// For the kernel after SIGKILL: a process that is blocked in the kernel is then abandoned.
    pub(super) kernel: Duration,
}

impl Patience {
    /// The timeouts of every command.
    pub(super) const SHIPPED: Self = Self {
        grace: Duration::from_secs(5),
        rest: Duration::from_millis(250),
        kernel: Duration::from_secs(5),
    };
}

/// The reason why a command was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// Cancelled by the caller or the dispatcher.
    Told,
    /// The timeout in the input has expired.
    OwnLimit(Duration),
}

/// Completes when the timeout in the input expires; never completes without one.
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

/// Follows a command to its end. No process of its group is alive afterwards, even if this future
/// is dropped.
pub(super) async fn follow(
    started: Started,
    stdout: ChildStdout,
    stop: impl Future<Output = Why>,
    sink: &dyn Sink,
    patience: Patience,
) -> Ending {
    let Started { group, ended, tidied, .. } = started;
    let mut watch = Watch {
        stdout: Some(stdout),
        ended,
        end: None,
        output: Output::default(),
        piece: vec![0; PIECE],
    };
    let stopped = watch.until_ended(stop, sink).await;
    if stopped.is_some() {
        group.terminate();
        watch.until_closed(patience.grace, sink).await;
    } else {
        watch.until_closed(patience.rest, sink).await;
    }
    // Kill the rest of the group, and read what it has left in the pipe.
    group.kill();
    watch.until_closed(patience.rest, sink).await;
    let end = watch.end(patience.kernel).await;
    watch.output.finish(sink);
    drop(group);
    // The attending thread removes the home directory, and finishes alone if that takes long.
    let _ = tokio::time::timeout(patience.kernel, tidied).await;
    Ending { end, stopped, output: watch.output }
}

struct Watch {
    /// `None` once it is closed.
    stdout: Option<ChildStdout>,
    ended: oneshot::Receiver<End>,
    end: Option<End>,
    output: Output,
    piece: Vec<u8>,
}

impl Watch {
    /// Reads until the shell has ended or is to be stopped. Both are polled before each read, so
    /// that a flood of output cannot starve them.
    async fn until_ended(
        &mut self,
        stop: impl Future<Output = Why>,
        sink: &dyn Sink,
    ) -> Option<Why> {
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

    /// Reads until the shell has ended and its output is closed, or until the timeout.
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
            None => tokio::time::timeout(limit, &mut self.ended)
                .await
                .ok()
                .and_then(Result::ok)
                .unwrap_or(End::Unknown),
        }
    }

    fn take(&mut self, read: usize, sink: &dyn Sink) {
        match read {
            0 => self.stdout = None,
            read => self.output.push(&self.piece[..read], sink),
        }
    }
}

/// Reads the next chunk; returns 0 at the end, and never completes after it. A read error counts as
/// the end.
async fn read(stdout: &mut Option<ChildStdout>, piece: &mut [u8]) -> usize {
    match stdout {
        Some(stdout) => stdout.read(piece).await.unwrap_or(0),
        None => pending().await,
    }
}
