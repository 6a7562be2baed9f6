//! The protocol between a host and a helper, over the socket on the helper's standard input.

use crate::ShellLimits;
use crate::confine::Confined;
use crate::launch::LaunchRequest;
use crate::process::ExitStatus;
use crate::start_error::StartError;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// Tells the helper to send SIGTERM to the command's process group.
pub(super) const TERMINATE: u8 = b'T';
/// Tells the helper to end all processes of the command, and then to exit.
pub(super) const KILL: u8 = b'K';
/// The byte that accompanies a descriptor.
const DESCRIPTOR_BYTE: u8 = b'D';

/// Maximum size of a message, in bytes: several times the longest command.
const MAX_MESSAGE: u32 = 1 << 20;

/// The first message of a host.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Request {
    pub(super) launch: LaunchRequest,
    pub(super) limits: ShellLimits,
}

/// A message of a helper.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Reply {
    /// The shell runs, with this process ID.
    Started { confined: Confined, shell: i32 },
    /// The shell was not started.
    Refused(StartError),
    /// The shell has ended.
    Exited(ExitStatus),
    /// The helper is still ending the processes that the shell left behind.
    Heartbeat,
}

/// Sends one message.
pub(super) fn send<T: Serialize>(to: &mut impl Write, message: &T) -> io::Result<()> {
    let text = serde_json::to_vec(message)?;
    let length = u32::try_from(text.len()).ok().filter(|length| *length <= MAX_MESSAGE);
    let length = length.ok_or_else(|| io::Error::other("a message is too long"))?;
    to.write_all(&[&length.to_le_bytes()[..], &text].concat())
}

/// Receives one message.
pub(super) fn receive<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<T> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length);
    if length > MAX_MESSAGE {
        return Err(io::Error::other("a message is too long"));
    }
    let mut text = vec![0; length as usize];
    from.read_exact(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

/// Sends a copy of a descriptor.
pub(super) fn send_descriptor(to: &UnixStream, descriptor: BorrowedFd<'_>) -> io::Result<()> {
    let descriptors = [descriptor];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !ancillary.push(SendAncillaryMessage::ScmRights(&descriptors)) {
        return Err(io::Error::other("a descriptor does not fit"));
    }
    sendmsg(to, &[IoSlice::new(&[DESCRIPTOR_BYTE])], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives a descriptor.
pub(super) fn receive_descriptor(from: &UnixStream) -> io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    recvmsg(from, &mut [IoSliceMut::new(&mut byte)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let received = ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    received.ok_or_else(|| io::Error::other("no descriptor came"))
}
