//! Tells systemd that the server is ready, and that it stops (the protocol of `sd_notify(3)`).

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// What is told.
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
