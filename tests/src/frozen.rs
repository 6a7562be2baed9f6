//! A file system whose server can be stopped: file system calls on it then hang in the kernel, as
//! on a network mount with an unreachable server.

use std::fs::OpenOptions;
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use terminal::mount::{MountPropagationFlags, UnmountFlags, mount_change, unmount};
use terminal::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use terminal::thread::{UnshareFlags, unshare};

use crate::program::beside_tests;

/// The contents of `notes.txt`.
pub const NOTES: &str = "from the file server";

/// A mount point with the files `notes.txt` and `trap.txt`, and the directory `folder`. The server
/// stops at the first request after `trap.txt` was opened.
pub struct Frozen {
    server: Child,
    at: PathBuf,
}

impl Frozen {
    /// Mounts the file system at a directory.
    ///
    /// # Panics
    ///
    /// If the server does not start.
    #[must_use]
    pub fn mount(at: &Path) -> Self {
        let mut server = Command::new(beside_tests("frozen"))
            .arg(at)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the file server can be started");
        let mut ready = String::new();
        let said = server.stdout.take().map(|out| BufReader::new(out).read_line(&mut ready));
        let made = Self { server, at: at.to_owned() };
        assert!(
            matches!(said, Some(Ok(_))) && ready == "ready\n",
            "the file server mounts: {said:?} {ready:?}"
        );
        // The first close teaches the kernel that the server does not implement FLUSH. Otherwise
        // the kernel would wait for the server's reply even when a process exits.
        let read = std::fs::read_to_string(at.join("notes.txt"));
        assert!(matches!(read.as_deref(), Ok(NOTES)), "{read:?}");
        made
    }

    /// Stops the server: from now on no request is answered.
    ///
    /// # Panics
    ///
    /// If the server has ended.
    pub fn stop(&self) {
        kill_process(self.pid(), Signal::Stop).expect("the server is there");
        self.wait_for_stop();
    }

    /// Waits until the server has stopped, by itself or by [`stop`](Self::stop).
    ///
    /// # Panics
    ///
    /// If the server ends instead of stopping.
    pub fn wait_for_stop(&self) {
        let status =
            waitpid(Some(self.pid()), WaitOptions::UNTRACED).expect("the server can be waited for");
        assert!(status.is_some_and(terminal::process::WaitStatus::stopped), "the server stops");
    }

    /// Continues the server, which then also answers the queued requests.
    ///
    /// # Panics
    ///
    /// If the server has ended.
    pub fn resume(&self) {
        kill_process(self.pid(), Signal::Cont).expect("the server is there");
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.server)
    }
}

impl Drop for Frozen {
    /// Kills the server, so that hanging processes get an error, and unmounts the directory.
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
        let _ = unmount(&self.at, UnmountFlags::DETACH);
    }
}

/// Runs a test on a thread with its own mount namespace, so that no mount outlives the test. Skips
/// the test if mounting is not possible.
///
/// # Panics
///
/// If the test panics.
pub fn with_own_mounts(test: impl FnOnce() + Send) {
    let run = || match own_mounts() {
        Ok(()) => test(),
        Err(error) => crate::skip(&format!("a file system cannot be mounted here: {error}")),
    };
    let ended = std::thread::scope(|scope| scope.spawn(run).join());
    if let Err(panic) = ended {
        std::panic::resume_unwind(panic);
    }
}

fn own_mounts() -> io::Result<()> {
    OpenOptions::new().read(true).write(true).open("/dev/fuse")?;
    unshare(UnshareFlags::NEWNS)?;
    Ok(mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?)
}
