//! The helper's side: starts one command, becomes the parent of all processes that it leaves
//! behind, and ends with it.

use super::census;
use super::cgroup::Cgroup;
use super::killer::{self, Killer};
use super::talk::{self, KILL, Reply, Request, TERMINATE};
use crate::options::{Confinement, ShellLimits};
use crate::process::{End, Excess};
use crate::surroundings;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitOptions, getpid, kill_process,
    kill_process_group, pidfd_open, set_child_subreaper, setpriority_process, setsid, wait, waitid,
};
use std::collections::HashSet;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

/// The interval of the process count. A fork bomb creates some hundred processes meanwhile.
const EVERY: Duration = Duration::from_millis(20);
/// The factor by which a pause exceeds the last count: counting takes at most a tenth of a core.
const PAUSE: u32 = 10;
/// The number of SIGKILL.
const KILLED: i32 = Signal::KILL.as_raw();
/// The shortest pause between two checks for killed processes.
const SHORTEST: Duration = Duration::from_micros(100);
/// The longest pause between two checks for killed processes.
const LONGEST: Duration = Duration::from_millis(20);

/// The interval of the heartbeats while a command is being ended, well within the silence that the
/// host tolerates.
const BEAT: Duration = Duration::from_millis(500);

/// The highest priority.
pub(super) const FIRST: i32 = -20;

/// The error of a helper.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HelperError {
    /// The process was not started by a host.
    #[error("this verb is for palisade itself: it holds the processes of a command")]
    NotForYou,
    /// A required system call failed.
    #[error("cannot hold a command: {0}")]
    Hold(#[from] io::Error),
}

/// Supervises one command for the parent process, which started this one as a
/// [`ShellHelper`](super::super::ShellHelper).
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
    let request: Request = talk::receive(&mut control).map_err(|_| HelperError::NotForYou)?;
    let output = talk::receive_descriptor(&control)?;
    set_child_subreaper(Some(getpid())).map_err(io::Error::from)?;
    let home = request.order.home.clone();
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let workspace = openat(CWD, ".", flags, Mode::empty()).map_err(io::Error::from)?;
    let confinement = request.order.confinement;
    let group = Cgroup::enter(request.limits);
    let started = killer::start(request.order, workspace, output);
    // The shell is in the group by now; this process must leave it before the group is killed.
    let group = group.filter(|group| group.leave().is_ok());
    let (child, confined, killer) = match started {
        Ok(started) => started,
        Err(unfit) => return Ok(talk::send(&mut control, &Reply::Refused(unfit))?),
    };
    let shell = Pid::from_child(&child);
    let watch = match pidfd_open(shell, PidfdFlags::empty()) {
        Ok(watch) => watch,
        Err(error) => {
            let _ = kill_process_group(shell, Signal::KILL);
            return Err(io::Error::from(error).into());
        }
    };
    // The count must keep up with forks. Best effort: only root may raise the priority.
    let _ = setpriority_process(None, FIRST);
    let reply = Reply::Started { confined, shell: shell.as_raw_pid() };
    let mut reaper = Reaper {
        control,
        shell,
        watch,
        killer,
        group,
        confinement,
        limits: request.limits,
        end: None,
        home,
    };
    // A host that has exited is noticed below.
    reaper.tell(&reply);
    reaper.hold();
    Ok(())
}

struct Reaper {
    control: UnixStream,
    /// Not reaped before the end, so that the IDs of the process and of its group stay valid.
    shell: Pid,
    watch: OwnedFd,
    killer: Killer,
    group: Option<Cgroup>,
    confinement: Confinement,
    limits: ShellLimits,
    /// The end of the shell, once it has been reported.
    end: Option<End>,
    home: PathBuf,
}

/// A request of the host.
enum Word {
    Nothing,
    Terminate,
    Kill,
    /// The host has exited or abandoned the call.
    Gone,
}

impl Reaper {
    /// Supervises the command until the host ends it or exits.
    fn hold(&mut self) {
        let mut pause = EVERY;
        let mut next = Instant::now() + pause;
        loop {
            match self.wait(next.saturating_duration_since(Instant::now())) {
                Word::Nothing => {}
                Word::Terminate => {
                    let _ = kill_process_group(self.shell, Signal::TERM);
                    // A stopped process handles SIGTERM only when continued.
                    let _ = kill_process_group(self.shell, Signal::CONT);
                }
                Word::Kill => return self.finish(None),
                Word::Gone => {
                    self.finish(None);
                    // The host may have exited without removing the directory.
                    return surroundings::tidy_up(&self.home);
                }
            }
            if self.end.is_none() {
                self.look();
            }
            let begun = Instant::now();
            if begun < next {
                continue;
            }
            // An unconfined command can leave its group, so that the group's list is not trusted.
            let group = match self.confinement {
                Confinement::Landlock => self.group.as_ref(),
                Confinement::Unconfined => None,
            };
            let census = census::take(self.limits, group);
            if let Some(excess) = census.excess {
                return self.finish(Some(excess));
            }
            for orphan in census.children.into_iter().filter(|child| *child != self.shell) {
                let _ = waitid(WaitId::Pid(orphan), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
            }
            pause = EVERY.max(begun.elapsed() * PAUSE);
            next = Instant::now() + pause;
        }
    }

    /// Waits for a request of the host, the end of the shell, or the next count.
    fn wait(&mut self, limit: Duration) -> Word {
        let limit = Timespec::try_from(limit).ok();
        let is_running = self.end.is_none();
        let mut events =
            [PollFd::new(&self.control, PollFlags::IN), PollFd::new(&self.watch, PollFlags::IN)];
        let count = if is_running { 2 } else { 1 };
        if let Err(error) = poll(&mut events[..count], limit.as_ref()) {
            return if error == Errno::INTR { Word::Nothing } else { Word::Gone };
        }
        if events[0].revents().is_empty() {
            return Word::Nothing;
        }
        let mut word = [0];
        match self.control.read(&mut word) {
            Ok(1) if word == [TERMINATE] => Word::Terminate,
            Ok(1) if word == [KILL] => Word::Kill,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Word::Nothing,
            _ => Word::Gone,
        }
    }

    /// Reports the end of the shell to the host, if it has ended.
    fn look(&mut self) {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        if let Ok(Some(status)) = waitid(WaitId::Pid(self.shell), options) {
            self.has_ended(End::of(status.exit_status(), status.terminating_signal()));
        }
    }

    fn has_ended(&mut self, end: End) {
        let is_out_of_memory = || {
            self.group
                .as_ref()
                .is_some_and(|group| group.bounds_memory() && group.ran_out_of_memory())
        };
        let end = match end {
            End::Killed(KILLED) if is_out_of_memory() => {
                End::Exceeded(Excess::Memory(self.limits.memory))
            }
            end => end,
        };
        self.end = Some(end);
        self.tell(&Reply::Ended(end));
    }

    fn tell(&mut self, reply: &Reply) {
        // A host that has exited is noticed when its end of the socket closes.
        let _ = talk::send(&mut self.control, reply);
    }

    /// Kills every process and waits until all are gone: the children of a killed process become
    /// children of this one. A pass that finds new processes is followed by the next without a
    /// pause, in which they could fork again.
    fn finish(&mut self, excess: Option<Excess>) {
        let mut pause = SHORTEST;
        let mut killed = HashSet::new();
        let mut told = Instant::now();
        loop {
            if told.elapsed() >= BEAT {
                self.tell(&Reply::Ending);
                told = Instant::now();
            }
            if let Some(group) = &self.group {
                group.kill();
            }
            self.killer.kill();
            let before = killed.len();
            census::each_descendant(|process| {
                // Process IDs are reused only after all others, so that this is still the listed
                // process.
                if killed.insert(process) {
                    let _ = kill_process(process, Signal::KILL);
                }
            });
            let found = killed.len() > before;
            if self.reap(excess, &mut killed) == Left::Nobody {
                return;
            }
            if found {
                pause = SHORTEST;
                continue;
            }
            thread::sleep(pause);
            pause = (pause * 2).min(LONGEST);
            // Processes that are still alive are signalled again.
            killed.clear();
        }
    }

    /// Reaps ended processes, and reports the end of the shell if it is among them.
    fn reap(&mut self, excess: Option<Excess>, killed: &mut HashSet<Pid>) -> Left {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    killed.remove(&pid);
                    if pid == self.shell && self.end.is_none() {
                        let end = End::of(status.exit_status(), status.terminating_signal());
                        self.has_ended(excess.map_or(end, End::Exceeded));
                    }
                }
                Err(Errno::INTR) => {}
                Ok(None) => return Left::Somebody,
                Err(_) => return Left::Nobody,
            }
        }
    }
}

/// Whether unreaped processes remain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    Nobody,
    Somebody,
}
