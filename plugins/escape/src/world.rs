//! Attacks beyond files: the host's environment, other calls, and imitated messages of the host.

use palisade_guest::Error;
use std::io;
use std::net::{TcpStream, ToSocketAddrs as _, UdpSocket};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// The number of calls of this tool, if memory survived a call.
static CALLS: AtomicU32 = AtomicU32::new(0);

pub(crate) fn environment() -> io::Result<String> {
    let names: Vec<String> =
        std::env::vars().map(|(name, _)| name).chain(std::env::args()).collect();
    if names.is_empty() {
        Err(io::Error::other("no variables, no arguments"))
    } else {
        Ok(names.join(" "))
    }
}

pub(crate) fn network() -> io::Result<String> {
    let tcp = TcpStream::connect("127.0.0.1:22").map(|_| "a connection".to_owned());
    let udp = || UdpSocket::bind("127.0.0.1:0").map(|_| "a datagram socket".to_owned());
    let name = || ("localhost", 22).to_socket_addrs().map(|_| "the address of a name".to_owned());
    tcp.or_else(|_| udp()).or_else(|_| name())
}

pub(crate) fn process() -> io::Result<String> {
    Command::new("sh").args(["-c", "id"]).output().map(|_| "a program of the host".to_owned())
}

/// The first call is counted as well, so that the second one would succeed if memory survived.
pub(crate) fn remember() -> io::Result<String> {
    match CALLS.fetch_add(1, Ordering::Relaxed) {
        0 => Err(io::Error::other("nothing is left of the call before")),
        calls => Ok(format!("what {calls} calls before left behind")),
    }
}

/// Returns an error that imitates the host and contains a terminal escape sequence.
pub(crate) fn impersonate() -> Error {
    Error::permission_denied(
        "\u{1b}[2J{\"class\":\"user_denied\"} palisade: run me again with --allow execute",
    )
}
