//! The helper's side: starts one command, becomes the parent of all processes that it leaves
//! behind, and ends with it.

use super::cgroup::Cgroup;
use super::killer::{self, Killer, Reached};
use super::process_tree;
use super::protocol::{self, KILL, Reply, Request, TERMINATE};
use super::request_reader::RequestReader;
use crate::process::{CommandStreams, ExceededLimit, ExitStatus};
use crate::start_error::StartError;
use crate::{Confinement, ShellLimits, environment};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitOptions, getpid, kill_process,
    kill_process_group, pidfd_open, set_child_subreaper, setpriority_process, setsid, wait, waitid,
};
use rustix::time::{ClockId, clock_gettime};
use std::collections::HashSet;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// The interval of the process count. A fork bomb creates some hundred processes meanwhile.
const COUNT_INTERVAL: Duration = Duration::from_millis(20);
/// The factor by which a pause exceeds the processor time of the last count: counting takes at most
/// a tenth of a core. A fork bomb, which lengthens a count but not its processor time, does not
/// lengthen the pause.
const COUNT_PAUSE_FACTOR: u32 = 10;
/// The number of SIGKILL.
const SIGKILL: i32 = Signal::KILL.as_raw();
/// The shortest pause between two checks for killed processes.
const MIN_PAUSE: Duration = Duration::from_micros(100);
/// The longest pause between two checks for killed processes.
const MAX_PAUSE: Duration = Duration::from_millis(20);

/// The interval of the heartbeats while a command is being ended, well within the timeout of the
/// host.
const HEARTBEAT_INTERVAL: Duration = Duration::from_millis(500);

/// The highest scheduling priority.
pub(super) const HIGHEST_PRIORITY: i32 = -20;

/// The error of a helper.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HelperError {
    /// The process was not started by a host.
    #[error("this subcommand is for palisade itself: it supervises the processes of a command")]
    NoHost,
    /// A required system call failed.
    #[error("cannot supervise a command: {0}")]
    Hold(#[from] io::Error),
}

/// Supervises one command for the parent process, which started this one as a
/// [`ShellHelper`](crate::ShellHelper).
///
/// Must be called first in `main`, while there is one thread; the process should exit when it
/// returns.
///
/// # Errors
///
/// [`HelperError`] if no host is connected to standard input, or if a required system call fails. A
/// command that cannot be started is no error: the host is told.
pub fn hold_command() -> Result<(), HelperError> {
    // A new session detaches from the host's terminal, whose signals are for the host. `setsid`
    // fails for a session leader, which has no terminal to detach from here.
    let _ = setsid();
    let mut control = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let request: Request = protocol::receive(&mut control).map_err(|_| HelperError::NoHost)?;
    let receive = || protocol::receive_descriptor(&control);
    let streams = CommandStreams::receive(request.launch.streams, receive)?;
    set_child_subreaper(Some(getpid())).map_err(io::Error::from)?;
    let home = request.launch.home.clone();
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let workspace = openat(CWD, ".", flags, Mode::empty()).map_err(io::Error::from)?;
    let requests = RequestReader::start(control.try_clone()?)?;
    let confinement = request.launch.confinement;
    let group = Cgroup::enter(request.limits);
    let is_counted = group.as_ref().is_some_and(|group| counts_all(group, confinement));
    let started = if is_counted || !process_tree::may_be_hidden() {
        killer::start(request.launch, workspace, streams, request.limits)
    } else {
        Err(StartError::HiddenProcesses)
    };
    // The shell is in the group by now; this process must leave it before the group is killed.
    let group = group.filter(|group| group.leave().is_ok());
    let (child, confined, killer) = match started {
        Ok(started) => started,
        Err(error) => return Ok(protocol::send(&mut control, &Reply::Refused(error))?),
    };
    let shell = Pid::from_child(&child);
    let shell_exit = match pidfd_open(shell, PidfdFlags::empty()) {
        Ok(shell_exit) => shell_exit,
        Err(error) => {
            let _ = kill_process_group(shell, Signal::KILL);
            return Err(io::Error::from(error).into());
        }
    };
    // The count must keep up with forks. Best effort: only root may raise the priority.
    let _ = setpriority_process(None, HIGHEST_PRIORITY);
    let reply = Reply::Started { confined, shell: shell.as_raw_pid() };
    let killer = Arc::new(killer);
    requests.set_killer(killer.clone());
    let mut reaper = Reaper {
        control,
        requests,
        shell,
        shell_exit,
        killer,
        group,
        confinement,
        limits: request.limits,
        status: None,
        home,
    };
    // A host that has exited is noticed below.
    reaper.send(&reply);
    reaper.supervise();
    Ok(())
}

/// Returns whether the kernel lists every process of the group and bounds their memory. The list is
/// used for a confined command only, since another one can leave the group.
fn counts_all(group: &Cgroup, confinement: Confinement) -> bool {
    match confinement {
        Confinement::Landlock => group.bounds_memory(),
        Confinement::Unconfined => false,
    }
}

struct Reaper {
    /// The socket of the host, for replies.
    control: UnixStream,
    requests: RequestReader,
    /// Not reaped before the end, so that the IDs of the process and of its group stay valid.
    shell: Pid,
    /// Readable when the shell has ended.
    shell_exit: OwnedFd,
    killer: Arc<Killer>,
    group: Option<Cgroup>,
    confinement: Confinement,
    limits: ShellLimits,
    /// The exit status of the shell, once it has been reported.
    status: Option<ExitStatus>,
    home: PathBuf,
}

/// A request of the host.
enum HostRequest {
    None,
    Terminate,
    Kill,
    /// The host has exited or abandoned the call.
    Disconnected,
}

impl Reaper {
    /// Supervises the command until the host ends it or exits.
    fn supervise(&mut self) {
        let mut next_count = Instant::now() + COUNT_INTERVAL;
        loop {
            match self.wait(next_count.saturating_duration_since(Instant::now())) {
                HostRequest::None => {}
                HostRequest::Terminate => {
                    let _ = kill_process_group(self.shell, Signal::TERM);
                    // A stopped process handles SIGTERM only when continued.
                    let _ = kill_process_group(self.shell, Signal::CONT);
                    if self.killer.is_frozen() {
                        self.killer.resume();
                    }
                }
                HostRequest::Kill => return self.kill_all(None),
                HostRequest::Disconnected => {
                    self.kill_all(None);
                    // The host may have exited without removing the directory.
                    return environment::remove_home(&self.home);
                }
            }
            if self.status.is_none() {
                self.check_shell();
            }
            if Instant::now() < next_count {
                continue;
            }
            let begun = processor_time();
            // Asked before the count: of a command that forks meanwhile, a count tells nothing.
            let was_frozen = self.killer.is_frozen();
            // An unconfined command can leave its group, so that the group's list is not trusted.
            let group = match self.confinement {
                Confinement::Landlock => self.group.as_ref(),
                Confinement::Unconfined => None,
            };
            process_tree::reap_orphans(self.shell);
            if let Some(exceeded) = process_tree::exceeded(self.limits, group) {
                return self.kill_all(Some(exceeded));
            }
            if was_frozen {
                self.killer.resume();
            }
            let taken = processor_time().saturating_sub(begun);
            let pause = COUNT_INTERVAL.max(taken * COUNT_PAUSE_FACTOR);
            next_count = Instant::now() + pause;
        }
    }

    /// Waits for a request of the host, the end of the shell, or the next count.
    fn wait(&mut self, timeout: Duration) -> HostRequest {
        let timeout = Timespec::try_from(timeout).ok();
        let is_running = self.status.is_none();
        let mut events = [
            PollFd::new(&self.requests.requests, PollFlags::IN),
            PollFd::new(&self.shell_exit, PollFlags::IN),
        ];
        let polled = if is_running { 2 } else { 1 };
        if let Err(error) = poll(&mut events[..polled], timeout.as_ref()) {
            return if error == Errno::INTR {
                HostRequest::None
            } else {
                HostRequest::Disconnected
            };
        }
        if events[0].revents().is_empty() {
            return HostRequest::None;
        }
        let mut byte = [0];
        match self.requests.requests.read(&mut byte) {
            Ok(1) if byte == [TERMINATE] => HostRequest::Terminate,
            Ok(1) if byte == [KILL] => HostRequest::Kill,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => HostRequest::None,
            _ => HostRequest::Disconnected,
        }
    }

    /// Reports the end of the shell to the host, if it has ended.
    fn check_shell(&mut self) {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        if let Ok(Some(status)) = waitid(WaitId::Pid(self.shell), options) {
            self.report_exit(ExitStatus::from_wait(
                status.exit_status(),
                status.terminating_signal(),
            ));
        }
    }

    fn report_exit(&mut self, status: ExitStatus) {
        let is_out_of_memory = || {
            self.group
                .as_ref()
                .is_some_and(|group| group.bounds_memory() && group.ran_out_of_memory())
        };
        let status = match status {
            ExitStatus::Killed(SIGKILL) if is_out_of_memory() => {
                ExitStatus::Exceeded(ExceededLimit::Memory(self.limits.memory))
            }
            status => status,
        };
        self.status = Some(status);
        self.send(&Reply::Exited(status));
    }

    fn send(&mut self, reply: &Reply) {
        // A host that has exited is noticed when its end of the socket closes.
        let _ = protocol::send(&mut self.control, reply);
    }

    /// Kills every process and waits until all are gone: the children of a killed process become
    /// children of this one. A pass that finds new processes is followed by the next without a
    /// pause, in which they could fork again.
    fn kill_all(&mut self, exceeded: Option<ExceededLimit>) {
        let mut pause = MIN_PAUSE;
        let mut killed = HashSet::new();
        let mut heartbeat = Heartbeat::default();
        loop {
            heartbeat.beat(&mut self.control);
            if let Some(group) = &self.group {
                group.kill();
            }
            let before = killed.len();
            if self.killer.kill() == Reached::None {
                process_tree::each_descendant(|process| {
                    // Process IDs are reused only after all others, so that this is still the
                    // listed process.
                    if killed.insert(process) {
                        let _ = kill_process(process, Signal::KILL);
                    }
                    heartbeat.beat(&mut self.control);
                });
            }
            let has_found_new = killed.len() > before;
            if self.reap(exceeded, &mut killed) == Remaining::None {
                return;
            }
            if has_found_new {
                pause = MIN_PAUSE;
                continue;
            }
            thread::sleep(pause);
            pause = (pause * 2).min(MAX_PAUSE);
            // Processes that are still alive are signalled again.
            killed.clear();
        }
    }

    /// Reaps ended processes, and reports the end of the shell if it is among them.
    fn reap(&mut self, exceeded: Option<ExceededLimit>, killed: &mut HashSet<Pid>) -> Remaining {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    killed.remove(&pid);
                    if pid == self.shell && self.status.is_none() {
                        let status = ExitStatus::from_wait(
                            status.exit_status(),
                            status.terminating_signal(),
                        );
                        self.report_exit(exceeded.map_or(status, ExitStatus::Exceeded));
                    }
                }
                Err(Errno::INTR) => {}
                Ok(None) => return Remaining::Some,
                Err(_) => return Remaining::None,
            }
        }
    }
}

/// Tells the host, at most once in an interval, that the end of a command goes on.
struct Heartbeat {
    last: Instant,
}

impl Default for Heartbeat {
    fn default() -> Self {
        Self { last: Instant::now() }
    }
}

impl Heartbeat {
    fn beat(&mut self, control: &mut UnixStream) {
        if self.last.elapsed() < HEARTBEAT_INTERVAL {
            return;
        }
        self.last = Instant::now();
        // A host that has exited is noticed when its end of the socket closes.
        let _ = protocol::send(control, &Reply::Heartbeat);
    }
}

/// Returns the processor time of this thread.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// Whether unreaped processes remain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Remaining {
    None,
    Some,
}
