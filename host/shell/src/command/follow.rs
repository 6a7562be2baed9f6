//! Follows one command from its start to its end: reads its output and stops it on request.

use super::output::OutputBuffer;
use crate::confine::Confined;
use crate::process::{ExitStatus, RunningCommand};
use palisade::execution::Sink;
use std::future::{Future, pending};
use std::pin::pin;
use std::time::Duration;
use tokio::io::AsyncReadExt as _;
use tokio::process::ChildStdout;
use tokio::sync::oneshot;

/// Size of a read, in bytes: the capacity of a pipe.
const READ_SIZE: usize = 64 << 10;

/// The timeouts for ending a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Timeouts {
    /// From SIGTERM to SIGKILL.
    pub(crate) grace: Duration,
    /// For the remaining output after the end of the shell, because background processes may hold
    /// the pipe open: long enough for the last program of a pipeline, and not noticeable.
    pub(crate) drain: Duration,
    /// For the kernel after SIGKILL: a process that is blocked in the kernel is then abandoned.
    pub(crate) kernel: Duration,
}

impl Timeouts {
    /// The timeouts of every command.
    pub(crate) const DEFAULT: Self = Self {
        grace: Duration::from_secs(5),
        drain: Duration::from_millis(250),
        kernel: Duration::from_secs(5),
    };
}

/// The reason why a command was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopReason {
    /// The caller or the dispatcher cancelled the call.
    Cancelled,
    /// The timeout in the input has expired.
    Timeout(Duration),
}

/// Completes when the timeout in the input expires; never completes without one.
pub(crate) async fn input_timeout(timeout: Option<Duration>) -> StopReason {
    match timeout {
        Some(timeout) => {
            tokio::time::sleep(timeout).await;
            StopReason::Timeout(timeout)
        }
        None => pending().await,
    }
}

/// A command that has ended.
#[derive(Debug)]
pub(crate) struct Completed {
    pub(crate) status: ExitStatus,
    pub(crate) stopped: Option<StopReason>,
    pub(crate) output: OutputBuffer,
    pub(crate) confined: Confined,
}

/// Follows a command to its end. No process of its group is alive afterwards, even if this future
/// is dropped.
pub(super) async fn follow(
    running: RunningCommand,
    stdout: ChildStdout,
    stop: impl Future<Output = StopReason>,
    sink: &dyn Sink,
    timeouts: Timeouts,
) -> Completed {
    let RunningCommand { processes, confined, exit, cleaned_up, .. } = running;
    let mut follower = Follower {
        stdout: Some(stdout),
        exit,
        status: None,
        output: OutputBuffer::default(),
        buffer: vec![0; READ_SIZE],
    };
    let stopped = follower.until_exit(stop, sink).await;
    if stopped.is_some() {
        processes.terminate();
        follower.until_closed(timeouts.grace, sink).await;
    } else {
        follower.until_closed(timeouts.drain, sink).await;
    }
    // Kill the remaining processes, and read the output that they have left in the pipe.
    processes.kill();
    follower.until_closed(timeouts.drain, sink).await;
    let status = follower.status(timeouts.kernel).await;
    follower.output.finish(sink);
    drop(processes);
    // The attending thread removes the home directory, and finishes alone if that takes long.
    let _ = tokio::time::timeout(timeouts.kernel, cleaned_up).await;
    Completed { status, stopped, output: follower.output, confined }
}

struct Follower {
    /// `None` once it is closed.
    stdout: Option<ChildStdout>,
    exit: oneshot::Receiver<ExitStatus>,
    status: Option<ExitStatus>,
    output: OutputBuffer,
    buffer: Vec<u8>,
}

impl Follower {
    /// Reads until the shell has ended or is to be stopped. Both are polled before each read, so
    /// that a flood of output cannot starve them.
    async fn until_exit(
        &mut self,
        stop: impl Future<Output = StopReason>,
        sink: &dyn Sink,
    ) -> Option<StopReason> {
        let mut stop = pin!(stop);
        loop {
            tokio::select! {
                biased;
                status = &mut self.exit => {
                    self.status = Some(status.unwrap_or(ExitStatus::Unknown));
                    return None;
                }
                reason = &mut stop => return Some(reason),
                read = read(&mut self.stdout, &mut self.buffer) => self.push(read, sink),
            }
        }
    }

    /// Reads until the shell has ended and its output is closed, or until the timeout.
    async fn until_closed(&mut self, timeout: Duration, sink: &dyn Sink) {
        let mut expired = pin!(tokio::time::sleep(timeout));
        while self.status.is_none() || self.stdout.is_some() {
            tokio::select! {
                biased;
                () = &mut expired => return,
                status = &mut self.exit, if self.status.is_none() => {
                    self.status = Some(status.unwrap_or(ExitStatus::Unknown));
                }
                read = read(&mut self.stdout, &mut self.buffer) => self.push(read, sink),
            }
        }
    }

    async fn status(&mut self, timeout: Duration) -> ExitStatus {
        match self.status {
            Some(status) => status,
            None => tokio::time::timeout(timeout, &mut self.exit)
                .await
                .ok()
                .and_then(Result::ok)
                .unwrap_or(ExitStatus::Unknown),
        }
    }

    fn push(&mut self, read: usize, sink: &dyn Sink) {
        match read {
            0 => self.stdout = None,
            read => self.output.push(&self.buffer[..read], sink),
        }
    }
}

/// Reads the next chunk; returns 0 at the end, and never completes after it. A read error counts as
/// the end.
async fn read(stdout: &mut Option<ChildStdout>, buffer: &mut [u8]) -> usize {
    match stdout {
        Some(stdout) => stdout.read(buffer).await.unwrap_or(0),
        None => pending().await,
    }
}
