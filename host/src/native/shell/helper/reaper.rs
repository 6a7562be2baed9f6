//! The helper's side: it starts one command, is the parent of all that is left behind by it, and ends with it.

use super::census;
use super::cgroup::Cgroup;
use super::killer::{self, Killer};
use super::talk::{self, KILL, Reply, Request, TERMINATE};
use crate::native::shell::options::{Confinement, ShellLimits};
use crate::native::shell::process::{End, Excess};
use crate::native::shell::surroundings;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitOptions, getpid, kill_process, kill_process_group, pidfd_open,
    set_child_subreaper, setpriority_process, setsid, wait, waitid,
};
use std::collections::HashSet;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

/// How often the processes are counted. A loop that forks has made some hundred meanwhile.
const EVERY: Duration = Duration::from_millis(20);
/// How much longer the pause is than the count before it: counting takes a tenth of a processor at most.
const PAUSE: u32 = 10;
/// The number of SIGKILL.
const KILLED: i32 = Signal::KILL.as_raw();
/// The shortest pause between two looks at whether killed processes are gone.
const SHORTEST: Duration = Duration::from_micros(100);
/// The longest pause between two looks at whether killed processes are gone.
const LONGEST: Duration = Duration::from_millis(20);

/// How often the host is told that the end of a command takes time: well within what the host bears without a word.
const BEAT: Duration = Duration::from_millis(500);

/// The highest priority.
pub(super) const FIRST: i32 = -20;

/// Why a command could not be held.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HelperError {
    /// It was not started by a host.
    #[error("this verb is for palisade itself: it holds the processes of a command")]
    NotForYou,
    /// The system refused something that the helper cannot do without.
    #[error("cannot hold a command: {0}")]
    Hold(#[from] io::Error),
}

/// Holds one command for the process that started this one as a [`ShellHelper`](super::super::ShellHelper).
///
/// To be called first of all in `main`, while there is one thread; the process should end when it returns.
///
/// # Errors
///
/// [`HelperError`] where no host talks on standard input, or the system refuses something. A command that is not started is no error: the host is told.
pub fn hold_command() -> Result<(), HelperError> {
    // Early: a signal of the host's terminal is for the host. Where this process leads a session already, it has no
    // terminal to lose either.
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
    // Counting is to keep up with what is counted. Only root is allowed this.
    let _ = setpriority_process(None, FIRST);
    let reply = Reply::Started { confined, shell: shell.as_raw_pid() };
    let mut reaper =
        Reaper { control, shell, watch, killer, group, confinement, limits: request.limits, end: None, home };
    // A host that is gone by now is noticed below.
    reaper.tell(&reply);
    reaper.hold();
    Ok(())
}

struct Reaper {
    control: UnixStream,
    /// Not reaped before the end: its number, and its group's, are its own until then.
    shell: Pid,
    watch: OwnedFd,
    killer: Killer,
    group: Option<Cgroup>,
    confinement: Confinement,
    limits: ShellLimits,
    /// How the shell ended, once that has been told.
    end: Option<End>,
    home: PathBuf,
}

/// What a host wants.
enum Word {
    Nothing,
    Terminate,
    Kill,
    /// Nothing any more: it is gone, or has given the call up.
    Gone,
}

impl Reaper {
    /// Holds the command until the host says that it is to end, or is gone.
    fn hold(&mut self) {
        let mut pause = EVERY;
        let mut next = Instant::now() + pause;
        loop {
            match self.wait(next.saturating_duration_since(Instant::now())) {
                Word::Nothing => {}
                Word::Terminate => {
                    let _ = kill_process_group(self.shell, Signal::TERM);
                    // A stopped process takes its SIGTERM only when it goes on.
                    let _ = kill_process_group(self.shell, Signal::CONT);
                }
                Word::Kill => return self.finish(None),
                Word::Gone => {
                    self.finish(None);
                    // The host may be gone, and with it the one who would do this.
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
            // What is not confined can leave its group.
            let group = self.group.as_ref().filter(|_| self.confinement == Confinement::Landlock);
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

    /// Waits for a word of the host, the end of the shell, or the next count.
    fn wait(&mut self, limit: Duration) -> Word {
        let limit = Timespec::try_from(limit).ok();
        let is_running = self.end.is_none();
        let mut events = [PollFd::new(&self.control, PollFlags::IN), PollFd::new(&self.watch, PollFlags::IN)];
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

    /// Tells the host of the shell's end, if it has ended.
    fn look(&mut self) {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        if let Ok(Some(status)) = waitid(WaitId::Pid(self.shell), options) {
            self.has_ended(End::of(status.exit_status(), status.terminating_signal()));
        }
    }

    fn has_ended(&mut self, end: End) {
        let is_out_of_memory =
            || self.group.as_ref().is_some_and(|group| group.bounds_memory() && group.ran_out_of_memory());
        let end = match end {
            End::Killed(KILLED) if is_out_of_memory() => End::Exceeded(Excess::Memory(self.limits.memory)),
            end => end,
        };
        self.end = Some(end);
        self.tell(&Reply::Ended(end));
    }

    fn tell(&mut self, reply: &Reply) {
        // A host that is gone is noticed by its silence.
        let _ = talk::send(&mut self.control, reply);
    }

    /// Ends every process, and waits until all are gone: whatever a process that is killed leaves behind becomes a
    /// child of this one. As long as a look finds processes that were not killed before, the next follows at once:
    /// in a pause they would make more of themselves.
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
                // A number is given anew only after all others have been: this is still the one that was listed.
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
            // Whatever is still there by now is told once more.
            killed.clear();
        }
    }

    /// Reaps what has ended, and tells of the shell's end where that is among it.
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

/// Whether there are processes that have not been reaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    Nobody,
    Somebody,
}
