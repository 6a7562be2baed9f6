//! `frozen DIR`: a FUSE file server for tests that stop it, so that file system calls hang in the
//! kernel.
//!
//! The server provides the file `notes.txt`, the file `trap.txt` and the empty directory `folder`.
//! It stops at the first request after `trap.txt` was opened, and leaves that request in the queue.
//! Caching is off, so that each request of the kernel reaches the server. Implements the part of
//! the protocol in the kernel's `fuse.h` that the tests need.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd as _;

use terminal::event::{PollFd, PollFlags, poll};
use terminal::mount::{MountFlags, mount};
use terminal::process::{Signal, getpid, kill_process, set_parent_process_death_signal};

const ROOT: u64 = 1;
const TRAP: u64 = 3;
const FOLDER: u64 = 4;
const ENTRIES: [(u64, &str, &[u8]); 3] = [
    (2, "notes.txt", b"from the file server"),
    (TRAP, "trap.txt", b"never read"),
    (FOLDER, "folder", b""),
];

const NOT_FOUND: i32 = -2;
const READ_ONLY: i32 = -30;
const NOT_KNOWN: i32 = -38;

fn main() -> io::Result<()> {
    let Some(directory) = std::env::args_os().nth(1) else {
        return Err(io::Error::other("give a directory"));
    };
    // The test process may be killed: the server must not outlive it in the stopped state, where
    // its mount would hang every reader.
    set_parent_process_death_signal(Some(Signal::Kill))?;
    let device = OpenOptions::new().read(true).write(true).open("/dev/fuse")?;
    let options = format!("fd={},rootmode=40000,user_id=0,group_id=0", device.as_raw_fd());
    mount("frozen", &directory, "fuse", MountFlags::NOSUID | MountFlags::NODEV, options)?;
    writeln!(io::stdout(), "ready")?;
    serve(&device)
}

fn serve(mut device: &File) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 18];
    loop {
        let length = match device.read(&mut buffer) {
            Ok(length) => length,
            // ENODEV: the directory was unmounted.
            Err(error) if error.raw_os_error() == Some(19) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let request = Request(buffer.get(..length).unwrap_or_default());
        let Some(answer) = answer(&request) else { continue };
        let (error, body) = match answer {
            Ok(body) => (0, body.0),
            Err(error) => (error, Vec::new()),
        };
        let size = u32::try_from(16 + body.len()).map_err(io::Error::other)?;
        let head = Bytes::default().u32(size).u32(error.cast_unsigned()).u64(request.u64(8));
        // Best effort: the kernel forgets interrupted requests and refuses their replies.
        let _ = device.write(&[head.0, body].concat());
        if request.opcode() == 14 && request.node() == TRAP {
            // Leave the next request unread in the queue: its process then waits in the kernel, and
            // can still be killed. For a request that the server has read, the kernel waits
            // uninterruptibly.
            poll(&mut [PollFd::new(&device, PollFlags::IN)], -1)?;
            kill_process(getpid(), Signal::Stop)?;
        }
    }
}

/// A request of the kernel. Fields are at fixed offsets; the first 40 bytes are the common header.
struct Request<'a>(&'a [u8]);

impl Request<'_> {
    fn u32(&self, at: usize) -> u32 {
        self.0.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_ne_bytes)
    }

    fn u64(&self, at: usize) -> u64 {
        self.0.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_ne_bytes)
    }

    fn opcode(&self) -> u32 {
        self.u32(4)
    }

    fn node(&self) -> u64 {
        self.u64(16)
    }

    fn name(&self) -> &[u8] {
        self.0.get(40..).and_then(|rest| rest.split(|byte| *byte == 0).next()).unwrap_or_default()
    }

    /// Returns the offset and the size of a READ or READDIR request.
    fn window(&self) -> (usize, usize) {
        (usize::try_from(self.u64(48)).unwrap_or(usize::MAX), self.u32(56) as usize)
    }
}

/// Returns the reply, or `None` for the opcodes without one.
fn answer(request: &Request<'_>) -> Option<Result<Bytes, i32>> {
    Some(match request.opcode() {
        // FORGET, INTERRUPT, BATCH_FORGET.
        2 | 36 | 42 => return None,
        // LOOKUP.
        1 => look_up(request.name()),
        // GETATTR.
        3 => Ok(attributes(Bytes::default().zeros(16), request.node())),
        // OPEN, with FOPEN_DIRECT_IO; OPENDIR.
        14 => Ok(Bytes::default().u64(0).u32(1).u32(0)),
        27 => Ok(Bytes::default().zeros(16)),
        15 => Ok(read(request.node(), request.window())),
        // STATFS.
        17 => Ok(Bytes::default().zeros(80)),
        // RELEASE, RELEASEDIR.
        18 | 29 => Ok(Bytes::default()),
        // INIT.
        26 => {
            Ok(Bytes::default().u32(7).u32(31).u32(0).u32(0).u32(0).u32(1 << 17).u32(1).zeros(36))
        }
        28 if request.node() == FOLDER => Ok(Bytes::default()),
        28 => Ok(list(request.window())),
        // SETATTR, SYMLINK, MKNOD, MKDIR, UNLINK, RMDIR, RENAME, LINK, WRITE, CREATE, RENAME2.
        4 | 6 | 8..=13 | 16 | 35 | 45 => Err(READ_ONLY),
        _ => Err(NOT_KNOWN),
    })
}

fn look_up(name: &[u8]) -> Result<Bytes, i32> {
    let (node, ..) = ENTRIES.iter().find(|(_, own, _)| own.as_bytes() == name).ok_or(NOT_FOUND)?;
    Ok(attributes(Bytes::default().u64(*node).zeros(32), *node))
}

fn contents(node: u64) -> &'static [u8] {
    ENTRIES.iter().find(|(own, ..)| *own == node).map_or(b"", |(.., contents)| contents)
}

fn attributes(before: Bytes, node: u64) -> Bytes {
    let (mode, size) = if matches!(node, ROOT | FOLDER) {
        (0o040_755, 0)
    } else {
        (0o100_644, contents(node).len() as u64)
    };
    before.u64(node).u64(size).zeros(44).u32(mode).u32(1).zeros(12).u32(4096).u32(0)
}

fn read(node: u64, (offset, size): (usize, usize)) -> Bytes {
    Bytes(contents(node).iter().skip(offset).take(size).copied().collect())
}

/// Returns the directory entries from `offset` on. They fit into one reply, so the size is ignored.
fn list((offset, _): (usize, usize)) -> Bytes {
    let mut out = Bytes::default();
    for (place, (node, name, _)) in ENTRIES.iter().enumerate().skip(offset) {
        let (length, kind) =
            (u32::try_from(name.len()).unwrap_or(0), if *node == FOLDER { 4 } else { 8 });
        out = out.u64(*node).u64(place as u64 + 1).u32(length).u32(kind);
        out.0.extend_from_slice(name.as_bytes());
        out = out.zeros(name.len().next_multiple_of(8) - name.len());
    }
    out
}

/// A reply under construction.
#[derive(Default)]
struct Bytes(Vec<u8>);

impl Bytes {
    fn u32(mut self, value: u32) -> Self {
        self.0.extend_from_slice(&value.to_ne_bytes());
        self
    }

    fn u64(mut self, value: u64) -> Self {
        self.0.extend_from_slice(&value.to_ne_bytes());
        self
    }

    fn zeros(mut self, count: usize) -> Self {
        self.0.resize(self.0.len() + count, 0);
        self
    }
}
