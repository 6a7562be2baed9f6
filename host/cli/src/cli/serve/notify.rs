//! The service manager: systemd is told that the server is ready, and that it stops (the protocol
//! of `sd_notify(3)`), and its journal is told no secrets.

use rustix::fs::fstat;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The state that the service manager is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// The server answers requests.
    Ready,
    /// The server drains.
    Stopping,
}

/// Tells the service manager, if there is one.
pub(super) fn notify(state: State) {
    let Some(name) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let line: &[u8] = match state {
        State::Ready => b"READY=1",
        State::Stopping => b"STOPPING=1",
    };
    let address = match name.as_bytes() {
        [b'@', rest @ ..] => SocketAddr::from_abstract_name(rest),
        path => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(path)),
    };
    let told = address.and_then(|address| UnixDatagram::unbound()?.send_to_addr(line, &address));
    if let Err(error) = told {
        tracing::warn!("the service manager cannot be notified: {error}");
    }
}

/// The readers of standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Readers {
    /// Those who started the program.
    Starter,
    /// Also others, and for a long time: it is systemd's journal.
    Others,
}

impl Readers {
    /// Returns who can read standard error. systemd names the stream to its journal, which a
    /// program that was started from here inherits with the variable, but perhaps not as its own
    /// standard error.
    pub(super) fn of_output() -> Self {
        let Ok(stream) = std::env::var("JOURNAL_STREAM") else { return Self::Starter };
        match fstat(std::io::stderr()) {
            Ok(of) if stream == format!("{}:{}", of.st_dev, of.st_ino) => Self::Others,
            _ => Self::Starter,
        }
    }
}
