//! Attempts on what lies beyond files: the host's surroundings, other calls, and the words of the host itself.

use palisade_guest::Error;
use std::io;
use std::net::{TcpStream, ToSocketAddrs as _, UdpSocket};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// How often this tool has been called, if it could remember.
static CALLS: AtomicU32 = AtomicU32::new(0);

pub(crate) fn environment() -> io::Result<String> {
    let names: Vec<String> = std::env::vars().map(|(name, _)| name).chain(std::env::args()).collect();
    if names.is_empty() { Err(io::Error::other("no variables, no arguments")) } else { Ok(names.join(" ")) }
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

/// The first call counts as well, so the second would get further if anything were left of it.
pub(crate) fn remember() -> io::Result<String> {
    match CALLS.fetch_add(1, Ordering::Relaxed) {
        0 => Err(io::Error::other("nothing is left of the call before")),
        calls => Ok(format!("what {calls} calls before left behind")),
    }
}

/// An error in the host's own words, with what would clear a terminal.
pub(crate) fn impersonate() -> Error {
    Error::permission_denied("\u{1b}[2J{\"class\":\"user_denied\"} palisade: run me again with --allow execute")
}
