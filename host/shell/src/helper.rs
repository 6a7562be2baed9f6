//! The helper of a command: a separate process that is the parent of all processes that the command
//! starts and leaves behind.
//!
//! This file is the host's side; `reaper.rs` is the helper's side. They communicate over a socket
//! pair, whose end tells the helper that the host is gone.

mod census;
mod cgroup;
mod killer;
mod reaper;
mod talk;

pub use reaper::{HelperError, hold_command};

use super::confine::Confined;
use super::launch::Order;
use super::options::ShellHelper;
use super::process::{Commission, End, Group, Started};
use super::surroundings;
use palisade::internal::without_inherited;
use palisade::tool::ErrorKind;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, kill_process, kill_process_group, pidfd_open, pidfd_send_signal,
};
use std::io::{self, Write as _};
use std::net::Shutdown;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};
use std::time::Duration;
use talk::{KILL, Reply, Request, TERMINATE};
use tokio::sync::oneshot;

/// The host's handle of a helper. The helper ends its command when this handle is dropped or the
/// host exits.
pub(super) struct Leash {
    control: UnixStream,
    /// Shut down when the helper was told to end its command: from then on, its messages must
    /// arrive within [`SILENCE`].
    ending: UnixStream,
}

/// The read timeout of a helper that was told to end its command. A working helper sends
/// heartbeats.
const SILENCE: Duration = Duration::from_secs(3);

/// The interval at which a starting helper's call is checked for its end.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

impl Leash {
    /// Returns a leash, and the socket that tells the attending thread that the command is to end.
    fn of(control: &UnixStream) -> io::Result<(Self, UnixStream)> {
        let (ending, told) = UnixStream::pair()?;
        Ok((Self { control: control.try_clone()?, ending }, told))
    }

    /// Sends SIGTERM to the command's process group.
    pub(super) fn terminate(&self) {
        self.say(TERMINATE);
    }

    /// Kills all processes of the command.
    pub(super) fn kill(&self) {
        self.say(KILL);
        self.hurry();
    }

    fn hurry(&self) {
        // Fails if the attending thread has ended, which means that the helper has exited.
        let _ = self.ending.shutdown(Shutdown::Both);
    }

    fn say(&self, word: u8) {
        // A helper that has exited has no processes left to signal.
        let _ = (&self.control).write_all(&[word]);
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        // The attending thread still reads from another handle of this socket.
        let _ = self.control.shutdown(Shutdown::Write);
        self.hurry();
    }
}

/// A command started by a helper.
pub(super) struct Held {
    helper: Child,
    control: UnixStream,
    confined: Confined,
    output: ChildStdout,
    /// The shell, to be killed directly if its helper is killed.
    shell: Option<(Pid, OwnedFd)>,
}

/// Starts a helper, which starts the command. A helper that has not answered when the call is over
/// is ended with its command.
pub(super) fn launch(
    commission: &Commission,
    order: &Order,
    program: &ShellHelper,
    is_over: impl Fn() -> bool,
) -> Result<Held, ErrorKind> {
    let (mut control, theirs) = UnixStream::pair()?;
    let arguments = program.arguments.iter().cloned();
    let mut command = without_inherited(&program.program, arguments);
    command.env_clear().current_dir(surroundings::directory(&commission.workspace));
    let spawned =
        command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let mut helper = spawned.map_err(|error| {
        ErrorKind::internal(format!(
            "the helper `{}` cannot be started: {error}",
            program.program.display()
        ))
    })?;
    // Close the helper's end of the socket in the host; otherwise its end-of-file would never
    // arrive.
    drop(command);
    let request = Request { order: order.clone(), limits: commission.limits };
    let (reply, output) = match talk(&mut control, &request, is_over) {
        Ok(Some(told)) => told,
        Ok(None) => {
            abandon(&mut control, &mut helper);
            return Err(ErrorKind::internal("the call was over before its helper answered"));
        }
        Err(error) => {
            let _ = helper.kill();
            let status =
                helper.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
            return Err(ErrorKind::internal(format!(
                "the helper `{}` does not answer ({status}): {error}",
                program.program.display()
            )));
        }
    };
    match reply {
        Reply::Started { confined, shell } => {
            // The helper does not reap the shell before the end, so that the process ID is still
            // valid.
            let opened = |shell| Some((shell, pidfd_open(shell, PidfdFlags::empty()).ok()?));
            let shell = Pid::from_raw(shell).and_then(opened);
            Ok(Held { helper, control, confined, output, shell })
        }
        Reply::Refused(unfit) => {
            let _ = helper.wait();
            Err(unfit.into())
        }
        Reply::Ended(_) | Reply::Ending => {
            Err(ErrorKind::internal("a helper tells of an end before a start"))
        }
    }
}

/// Sends the request and the write end of the output pipe. Returns the first reply and the read end
/// of the pipe, or `None` if the call is over before the reply arrives.
fn talk(
    control: &mut UnixStream,
    request: &Request,
    is_over: impl Fn() -> bool,
) -> io::Result<Option<(Reply, ChildStdout)>> {
    // One pipe for both streams keeps the order of the writes.
    let (reader, writer) = io::pipe()?;
    talk::send(control, request)?;
    talk::send_descriptor(control, writer.as_fd())?;
    drop(writer);
    while !is_readable(control)? {
        if is_over() {
            return Ok(None);
        }
    }
    Ok(Some((talk::receive(control)?, OwnedFd::from(reader).into())))
}

/// Waits for a message or the end of the socket, at most [`TICK`].
fn is_readable(control: &UnixStream) -> io::Result<bool> {
    let mut events = [PollFd::new(control, PollFlags::IN)];
    match poll(&mut events, Some(&TICK)) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Lets a helper end its command, and kills it if it is silent for too long. A stopped helper is
/// continued, because only the helper knows the processes of its command.
fn abandon(control: &mut UnixStream, helper: &mut Child) {
    let _ = control.shutdown(Shutdown::Write);
    let _ = kill_process(Pid::from_child(helper), Signal::CONT);
    let has_timeout = control.set_read_timeout(Some(SILENCE)).is_ok();
    let mut last = || std::iter::repeat_with(|| hear(control, &mut |_| ())).find_map(|last| last);
    if !has_timeout || last() == Some(Last::Silent) {
        tracing::error!(
            "the helper of a command does not answer, and is killed; its command may live on"
        );
        let _ = helper.kill();
    }
    let _ = helper.wait();
}

/// Hands the command over, waits until its helper reports its end, and then for the helper itself.
pub(super) fn attend(held: Held, home: &Path, sender: oneshot::Sender<Result<Started, ErrorKind>>) {
    let Held { mut helper, mut control, confined, output, shell } = held;
    let (leash, ending) = match Leash::of(&control) {
        Ok(held) => held,
        // Dropping the socket makes the helper end its command and exit.
        Err(error) => {
            drop(control);
            let _ = helper.wait();
            surroundings::tidy_up(home);
            return drop(sender.send(Err(error.into())));
        }
    };
    let (started, ends) = Started::of(Group::Held(leash), confined, output);
    // If the call was dropped meanwhile, its leash was dropped with it.
    drop(sender.send(Ok(started)));
    let mut tell = Some(ends.tell);
    let mut told = |end| {
        let _ = tell.take().map(|tell| tell.send(end));
    };
    if listen(&mut control, &ending, &mut told) == Last::Silent {
        tracing::error!("the helper of a command does not answer, and is killed");
        // The shell first: a stopped helper has not reaped it, so that its process ID cannot have
        // been reused.
        end_group(shell.as_ref());
        let _ = helper.kill();
    }
    told(End::Unknown);
    if !helper.wait().is_ok_and(|status| status.success()) {
        tracing::error!(
            "the helper of a command was killed; what the command has left behind may live on"
        );
        end_group(shell.as_ref());
    }
    surroundings::tidy_up(home);
    let _ = ends.tidy.send(());
}

/// The reason why a helper sends no more messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Last {
    /// The helper has exited.
    Gone,
    /// The helper is silent although it was told to end its command.
    Silent,
}

/// Forwards the end of the shell until the helper has exited or is silent for too long.
fn listen(control: &mut UnixStream, ending: &UnixStream, told: &mut impl FnMut(End)) -> Last {
    loop {
        let is_ending = {
            let mut events =
                [PollFd::new(&*control, PollFlags::IN), PollFd::new(ending, PollFlags::IN)];
            while poll(&mut events, None) == Err(Errno::INTR) {}
            !events[1].revents().is_empty()
        };
        if is_ending && control.set_read_timeout(Some(SILENCE)).is_err() {
            return Last::Silent;
        }
        if let Some(last) = hear(control, told) {
            return last;
        }
    }
}

/// Forwards one message of the helper. Returns the reason if there is none.
fn hear(control: &mut UnixStream, told: &mut impl FnMut(End)) -> Option<Last> {
    match talk::receive(control) {
        Ok(Reply::Ended(end)) => told(end),
        Ok(_) => {}
        Err(error)
            if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) =>
        {
            return Some(Last::Silent);
        }
        Err(_) => return Some(Last::Gone),
    }
    None
}

/// Kills the shell and its process group.
fn end_group(shell: Option<&(Pid, OwnedFd)>) {
    if let Some((leader, shell)) = shell
        && pidfd_send_signal(shell, Signal::KILL).is_ok()
    {
        // The shell existed a moment ago, so that its group ID cannot have been reused.
        let _ = kill_process_group(*leader, Signal::KILL);
    }
}
