//! The host's handle of a helper.

use super::protocol::{KILL, TERMINATE};
use std::io::{self, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

/// The host's handle of a helper. The helper ends its command when this handle is dropped or the
/// host exits.
pub(crate) struct HelperHandle {
    control: UnixStream,
    /// Shut down when the helper was told to end its command: from then on, its messages must
    /// arrive within the heartbeat timeout.
    ending: UnixStream,
}

impl HelperHandle {
    /// Returns a handle, and the socket that tells the attending thread that the command is to end.
    pub(super) fn new(control: &UnixStream) -> io::Result<(Self, UnixStream)> {
        let (ending, attending_end) = UnixStream::pair()?;
        Ok((Self { control: control.try_clone()?, ending }, attending_end))
    }

    /// Sends SIGTERM to the command's process group.
    pub(crate) fn terminate(&self) {
        self.send(TERMINATE);
    }

    /// Kills all processes of the command.
    pub(crate) fn kill(&self) {
        self.send(KILL);
        self.require_heartbeats();
    }

    fn require_heartbeats(&self) {
        // Fails if the attending thread has ended, which means that the helper has exited.
        let _ = self.ending.shutdown(Shutdown::Both);
    }

    fn send(&self, request: u8) {
        // A helper that has exited has no processes left to signal.
        let _ = (&self.control).write_all(&[request]);
    }
}

impl Drop for HelperHandle {
    fn drop(&mut self) {
        // The attending thread still reads from another handle of this socket.
        let _ = self.control.shutdown(Shutdown::Write);
        self.require_heartbeats();
    }
}
