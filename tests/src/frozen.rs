//! A file system that can be stopped: whoever asks for a file of it then hangs in the kernel, as on a network mount whose server has gone.

use std::fs::OpenOptions;
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use terminal::mount::{MountPropagationFlags, UnmountFlags, mount_change, unmount};
use terminal::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use terminal::thread::{UnshareFlags, unshare};

use crate::program::beside_tests;

/// What its one file says.
pub const NOTES: &str = "from the file server";

/// A mounted directory with the files `notes.txt` and `trap.txt`, and the directory `folder`. The
/// first request after the second was opened stops the server.
pub struct Frozen {
    server: Child,
    at: PathBuf,
}

impl Frozen {
    /// Mounts one at a directory.
    ///
    /// # Panics
    ///
    /// Where the server does not start.
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
        assert!(matches!(said, Some(Ok(_))) && ready == "ready\n", "the file server mounts: {said:?} {ready:?}");
        // From now on the kernel knows that closing a file is none of the server's business: it would wait for its word even at the end of a process.
        let read = std::fs::read_to_string(at.join("notes.txt"));
        assert!(matches!(read.as_deref(), Ok(NOTES)), "{read:?}");
        made
    }

    /// From now on nobody gets an answer.
    ///
    /// # Panics
    ///
    /// Where there is no server any more.
    pub fn stop(&self) {
        kill_process(self.pid(), Signal::Stop).expect("the server is there");
        self.wait_for_stop();
    }

    /// Comes back once the server has stopped, by itself or by [`stop`](Self::stop).
    ///
    /// # Panics
    ///
    /// Where it ends in place of stopping.
    pub fn wait_for_stop(&self) {
        let status = waitpid(Some(self.pid()), WaitOptions::UNTRACED).expect("the server can be waited for");
        assert!(status.is_some_and(terminal::process::WaitStatus::stopped), "the server stops");
    }

    /// Answers again, also whatever was asked meanwhile.
    ///
    /// # Panics
    ///
    /// Where there is no server any more.
    pub fn go_on(&self) {
        kill_process(self.pid(), Signal::Cont).expect("the server is there");
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.server)
    }
}

impl Drop for Frozen {
    /// With its server gone, whoever hangs gets an error.
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
        let _ = unmount(&self.at, UnmountFlags::DETACH);
    }
}

/// Runs a test on a thread with mounts of its own, so that nothing stays mounted however it ends. Where that is not possible, says so and does nothing.
///
/// # Panics
///
/// Where the test does.
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
