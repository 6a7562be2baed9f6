//! The helper of a command: a separate process that is the parent of all processes that the command
//! starts and leaves behind.
//!
//! This file is the host's side; `reaper.rs` is the helper's side. They communicate over a socket
//! pair, whose end tells the helper that the host is gone.

mod cgroup;
mod handle;
mod killer;
mod memory;
mod process_tree;
mod protocol;
mod reaper;
mod request_reader;

pub(crate) use handle::HelperHandle;
pub use reaper::{HelperError, hold_command};

use crate::confine::Confined;
use crate::launch::LaunchRequest;
use crate::process::{
    CommandSpec, ExitNotifier, ExitStatus, HostStreams, KillHandle, RunningCommand, StartSender,
};
use crate::start_error::StartError;
use crate::{ShellHelper, environment};
use palisade::ErrorKind;
use palisade::internal::without_inherited;
use protocol::{Reply, Request};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, kill_process, kill_process_group, pidfd_open, pidfd_send_signal,
};
use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

/// The read timeout of a helper that was told to end its command. A working helper sends
/// heartbeats. Long, because a command can delay its helper: Linux gives each session the same part
/// of the processor (`sched_autogroup_enabled`), and a thousand busy sessions have their turns of
/// some 3 ms before one of the helper.
const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(8);
/// The longest time in which the processes of a silent helper are killed in its place.
const KILL_TIME: Duration = Duration::from_secs(5);

/// The interval at which a starting helper's call is checked for its end.
const POLL_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// A command started by a helper.
pub(crate) struct SupervisedCommand {
    helper: Child,
    control: UnixStream,
    confined: Confined,
    streams: HostStreams,
    /// The shell, to be killed directly if its helper is killed.
    shell: Option<(Pid, OwnedFd)>,
}

/// Starts a helper, which starts the command. A helper that has not answered when the call is over
/// is ended with its command.
pub(crate) fn launch(
    spec: &CommandSpec,
    request: &LaunchRequest,
    program: &ShellHelper,
    is_over: impl Fn() -> bool,
) -> Result<SupervisedCommand, ErrorKind> {
    let (mut control, helper_end) = UnixStream::pair()?;
    let mut helper = spawn(spec, program, helper_end)?;
    let request = Request { launch: request.clone(), limits: spec.limits };
    let (reply, streams) = match handshake(&mut control, &request, is_over) {
        Ok(Some(answered)) => answered,
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
            let open = |shell| Some((shell, pidfd_open(shell, PidfdFlags::empty()).ok()?));
            let shell = Pid::from_raw(shell).and_then(open);
            Ok(SupervisedCommand { helper, control, confined, streams, shell })
        }
        Reply::Refused(error) => {
            let _ = helper.wait();
            Err(error.into())
        }
        Reply::Exited(_) | Reply::Heartbeat => {
            Err(ErrorKind::internal("a helper tells of an end before a start"))
        }
    }
}

/// Starts the helper process with its end of the socket as standard input.
fn spawn(
    spec: &CommandSpec,
    program: &ShellHelper,
    helper_end: UnixStream,
) -> Result<Child, ErrorKind> {
    let arguments = program.arguments.iter().cloned();
    // The command holds the helper's end of the socket and is dropped here: while the host had it
    // open, the end-of-file would never arrive.
    let mut command = without_inherited(&program.program, arguments);
    command.env_clear().current_dir(environment::working_directory(&spec.workspace));
    command.stdin(OwnedFd::from(helper_end)).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().map_err(|error| match StartError::no_thread(&error) {
        Some(no_thread) => no_thread.into(),
        None => ErrorKind::internal(format!(
            "the helper `{}` cannot be started: {error}",
            program.program.display()
        )),
    })
}

/// Sends the request and the command's ends of its pipes. Returns the first reply and the other
/// ends, or `None` if the call is over before the reply arrives.
fn handshake(
    control: &mut UnixStream,
    request: &Request,
    is_over: impl Fn() -> bool,
) -> io::Result<Option<(Reply, HostStreams)>> {
    let (streams, its_streams) = request.launch.streams.open()?;
    protocol::send(control, request)?;
    for descriptor in its_streams.descriptors() {
        protocol::send_descriptor(control, descriptor.as_fd())?;
    }
    drop(its_streams);
    while !is_readable(control)? {
        if is_over() {
            return Ok(None);
        }
    }
    Ok(Some((protocol::receive(control)?, streams)))
}

/// Waits for a message or the end of the socket, at most [`POLL_INTERVAL`].
fn is_readable(control: &UnixStream) -> io::Result<bool> {
    let mut events = [PollFd::new(control, PollFlags::IN)];
    match poll(&mut events, Some(&POLL_INTERVAL)) {
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
    let has_timeout = control.set_read_timeout(Some(HEARTBEAT_TIMEOUT)).is_ok();
    let mut end_of_replies =
        || std::iter::repeat_with(|| forward_reply(control, &mut |_| ())).find_map(|end| end);
    if !has_timeout || end_of_replies() == Some(EndOfReplies::Silent) {
        tracing::error!("the helper of a command does not answer, and is killed with its command");
        kill_with_command(helper);
    }
    let _ = helper.wait();
}

/// Hands the command over, waits until its helper reports its end, and then for the helper itself.
pub(crate) fn attend(supervised: SupervisedCommand, home: &Path, sender: StartSender) {
    let SupervisedCommand { mut helper, mut control, confined, streams, shell } = supervised;
    let (handle, ending) = match HelperHandle::new(&control) {
        Ok(pair) => pair,
        // Dropping the socket makes the helper end its command and exit.
        Err(error) => {
            drop(control);
            let _ = helper.wait();
            environment::remove_home(home);
            return drop(sender.send(Err(error.into())));
        }
    };
    let (running, notifier) = RunningCommand::new(KillHandle::Helper(handle), confined, streams);
    // If the call was dropped meanwhile, its handle was dropped with it.
    drop(sender.send(Ok(running)));
    let ExitNotifier { exit, cleaned_up } = notifier;
    let mut exit = Some(exit);
    let mut report_exit = |status| {
        let _ = exit.take().map(|exit| exit.send(status));
    };
    if forward_replies(&mut control, &ending, &mut report_exit) == EndOfReplies::Silent {
        tracing::error!("the helper of a command does not answer, and is killed with its command");
        // The shell first: a stopped helper has not reaped it, so that its process ID cannot have
        // been reused.
        kill_shell(shell.as_ref());
        kill_with_command(&mut helper);
    }
    report_exit(ExitStatus::Unknown);
    if !helper.wait().is_ok_and(|status| status.success()) {
        tracing::error!(
            "the helper of a command was killed; what the command has left behind may live on"
        );
        kill_shell(shell.as_ref());
    }
    environment::remove_home(home);
    let _ = cleaned_up.send(());
}

/// The reason why a helper sends no more messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EndOfReplies {
    /// The helper has exited.
    Exited,
    /// The helper is silent although it was told to end its command.
    Silent,
}

/// Forwards the end of the shell until the helper has exited or is silent for too long.
fn forward_replies(
    control: &mut UnixStream,
    ending: &UnixStream,
    report_exit: &mut impl FnMut(ExitStatus),
) -> EndOfReplies {
    loop {
        let is_ending = {
            let mut events =
                [PollFd::new(&*control, PollFlags::IN), PollFd::new(ending, PollFlags::IN)];
            while poll(&mut events, None) == Err(Errno::INTR) {}
            !events[1].revents().is_empty()
        };
        if is_ending && control.set_read_timeout(Some(HEARTBEAT_TIMEOUT)).is_err() {
            return EndOfReplies::Silent;
        }
        if let Some(end) = forward_reply(control, report_exit) {
            return end;
        }
    }
}

/// Forwards one message of the helper. Returns the reason if there is none.
fn forward_reply(
    control: &mut UnixStream,
    report_exit: &mut impl FnMut(ExitStatus),
) -> Option<EndOfReplies> {
    match protocol::receive(control) {
        Ok(Reply::Exited(status)) => report_exit(status),
        Ok(_) => {}
        Err(error)
            if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) =>
        {
            return Some(EndOfReplies::Silent);
        }
        Err(_) => return Some(EndOfReplies::Exited),
    }
    None
}

/// Kills a helper, and before it the processes of its command: they would become children of
/// another process without it.
fn kill_with_command(helper: &mut Child) {
    process_tree::kill_descendants_of(Pid::from_child(helper), KILL_TIME);
    let _ = helper.kill();
}

/// Kills the shell and its process group.
fn kill_shell(shell: Option<&(Pid, OwnedFd)>) {
    if let Some((leader, shell)) = shell
        && pidfd_send_signal(shell, Signal::KILL).is_ok()
    {
        // The shell existed a moment ago, so that its group ID cannot have been reused.
        let _ = kill_process_group(*leader, Signal::KILL);
    }
}
