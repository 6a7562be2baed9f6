//! Waits for changes in directories: by inotify on Linux, by polling elsewhere.

/// The result of waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    Nothing,
    Something,
    /// The watch is closed.
    Closed,
}

#[cfg(not(target_os = "linux"))]
pub(super) use elsewhere::{Eyes, Lid};
#[cfg(target_os = "linux")]
pub(super) use linux::{Eyes, Lid};

#[cfg(target_os = "linux")]
mod linux {
    use super::Seen;
    use crate::plugins::{Sources, scan};
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
    use std::io::{self, PipeReader, PipeWriter};
    use std::os::fd::OwnedFd;
    use std::time::Duration;

    /// The events that may concern a plugin. A rename moves a complete file, and a link has no
    /// write event.
    const CHANGES: WatchFlags = WatchFlags::CREATE
        .union(WatchFlags::MODIFY)
        .union(WatchFlags::ATTRIB)
        .union(WatchFlags::CLOSE_WRITE)
        .union(WatchFlags::MOVE)
        .union(WatchFlags::DELETE)
        .union(WatchFlags::DELETE_SELF)
        .union(WatchFlags::MOVE_SELF)
        .union(WatchFlags::ONLYDIR);

    /// A watcher of directories.
    #[derive(Debug)]
    pub(in super::super) struct Eyes {
        closed: PipeReader,
        /// `None` if the system provides no inotify instance; polling still works then.
        changes: Option<OwnedFd>,
    }

    /// A guard that closes the watcher on drop.
    #[derive(Debug)]
    pub(in super::super) struct Lid(
        #[allow(dead_code, reason = "held, and nothing else")] PipeWriter,
    );

    impl Eyes {
        pub(in super::super) fn open() -> io::Result<(Self, Lid)> {
            let (closed, lid) = io::pipe()?;
            let changes = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).inspect_err(|error| {
                tracing::warn!("the kernel does not tell of changed plugins, which are looked for every 2 s: {error}");
            });
            Ok((Self { closed, changes: changes.ok() }, Lid(lid)))
        }

        /// Watches these directories. Repeating it is cheap, and watches a directory that was
        /// created again.
        pub(in super::super) fn look_at(&self, sources: &Sources) {
            let Some(changes) = &self.changes else { return };
            for directory in scan::directories(sources) {
                if let Err(error) = add_watch(changes, directory, CHANGES) {
                    tracing::debug!("{} is looked at every 2 s: {error}", directory.display());
                }
            }
        }

        /// Waits for a change, for at most this long.
        pub(in super::super) fn wait(&self, time: Duration) -> Seen {
            let time = Timespec {
                tv_sec: time.as_secs().cast_signed(),
                tv_nsec: time.subsec_nanos().into(),
            };
            let mut fds = vec![PollFd::new(&self.closed, PollFlags::IN)];
            fds.extend(self.changes.iter().map(|changes| PollFd::new(changes, PollFlags::IN)));
            if poll(&mut fds, Some(&time)).is_err() {
                return Seen::Nothing;
            }
            match fds.as_slice() {
                [closed, ..] if !closed.revents().is_empty() => Seen::Closed,
                [_, changes] if !changes.revents().is_empty() => self.forget(),
                _ => Seen::Nothing,
            }
        }

        /// Drains the notifications; the scan determines their meaning.
        fn forget(&self) -> Seen {
            let mut told = [0_u8; 4096];
            while self.changes.as_ref().is_some_and(|changes| {
                rustix::io::read(changes, &mut told).is_ok_and(|read| read > 0)
            }) {}
            Seen::Something
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use super::Seen;
    use crate::plugins::Sources;
    use std::io;
    use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
    use std::time::Duration;

    /// A watcher without notifications: waiting ends with the timeout.
    #[derive(Debug)]
    pub(in super::super) struct Eyes(Receiver<()>);

    /// A guard that closes the watcher on drop.
    #[derive(Debug)]
    pub(in super::super) struct Lid(
        #[allow(dead_code, reason = "held, and nothing else")] Sender<()>,
    );

    impl Eyes {
        pub(in super::super) fn open() -> io::Result<(Self, Lid)> {
            let (lid, closed) = channel();
            Ok((Self(closed), Lid(lid)))
        }

        pub(in super::super) fn look_at(&self, _: &Sources) {}

        pub(in super::super) fn wait(&self, time: Duration) -> Seen {
            match self.0.recv_timeout(time) {
                Err(RecvTimeoutError::Timeout) => Seen::Nothing,
                _ => Seen::Closed,
            }
        }
    }
}
