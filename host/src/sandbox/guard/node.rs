//! What stands behind a guest's `descriptor`: an open file or directory.

use std::fs::File;
use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::buffer::spare_capacity;
use rustix::fs::{OFlags, Stat, fcntl_getfl, fcntl_setfl, fstat, ftruncate};
use rustix::io::{Errno, pread, pwrite, retry_on_intr};
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use super::errors::Fault;
use super::ledger::Ledger;
use super::mount::OpenDir;

/// How many bytes one host call reads or writes at most. A host call cannot be interrupted, so this bounds how far a call can overrun its deadline;
/// 1 MiB takes some 0.2 ms from the page cache, and larger pieces are no faster.
pub(super) const MAX_CHUNK: usize = 1 << 20;

/// How much is asked for where the file was known to end: enough to see that it has grown.
const PROBE: u64 = 64;

/// What the resource table holds for a `descriptor`. It goes by that type's name only through its index: the table is asked for this type.
pub(super) enum Node {
    Dir(Arc<OpenDir>),
    File(Arc<OpenFile>),
}

impl Node {
    pub(super) fn handle(&self) -> BorrowedFd<'_> {
        match self {
            Self::Dir(dir) => dir.handle(),
            Self::File(file) => file.handle(),
        }
    }

    pub(super) fn dir(&self) -> Result<&Arc<OpenDir>, Fault> {
        match self {
            Self::Dir(dir) => Ok(dir),
            Self::File(_) => Err(ErrorCode::NotDirectory.into()),
        }
    }

    /// The file, or `otherwise` if this is a directory: operations differ in what they say then.
    pub(super) fn file(&self, otherwise: ErrorCode) -> Result<&Arc<OpenFile>, Fault> {
        match self {
            Self::File(file) => Ok(file),
            Self::Dir(_) => Err(otherwise.into()),
        }
    }
}

/// For what a file was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Read,
    Write,
    ReadWrite,
}

impl Mode {
    pub(super) fn reads(self) -> bool {
        self != Self::Write
    }

    pub(super) fn writes(self) -> bool {
        self != Self::Read
    }
}

/// An open regular file of the mount.
pub(super) struct OpenFile {
    file: File,
    mode: Mode,
    /// The size as last seen. Others may change the file, so this is good for sizing buffers and finding holes, and for nothing else.
    size: AtomicU64,
    /// The real name, kept where the file may be changed through this handle.
    name: Option<String>,
    changed: AtomicBool,
}

impl OpenFile {
    pub(super) fn new(file: File, mode: Mode, size: u64, name: Option<String>) -> Self {
        Self { file, mode, size: AtomicU64::new(size), name, changed: AtomicBool::new(false) }
    }

    pub(super) fn handle(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    pub(super) fn mode(&self) -> Mode {
        self.mode
    }

    /// Whether anything was changed through this handle.
    pub(super) fn is_changed(&self) -> bool {
        self.changed.load(Ordering::Relaxed)
    }

    /// Reads up to `len` bytes at an offset, at most [`MAX_CHUNK`]. No bytes means the end of the file, or that none were asked for.
    pub(super) fn read(&self, ledger: &Ledger, len: u64, offset: u64) -> Result<Vec<u8>, Fault> {
        if !self.mode.reads() {
            return Err(ErrorCode::BadDescriptor.into());
        }
        let capacity = self.read_size(ledger, len, offset);
        if capacity == 0 {
            return Ok(Vec::new());
        }
        let mut bytes = Vec::with_capacity(capacity);
        retry_on_intr(|| pread(&self.file, spare_capacity(&mut bytes), offset))?;
        ledger.charge_read(wide(bytes.len()))?;
        self.notice_growth(offset, &bytes);
        Ok(bytes)
    }

    /// How large a buffer to read into: no larger than asked for, allowed, or of use. It holds a byte even where the quota is used up, which tells the
    /// end of the file from a quota that is passed.
    fn read_size(&self, ledger: &Ledger, len: u64, offset: u64) -> usize {
        let known = self.size.load(Ordering::Relaxed).saturating_sub(offset).max(PROBE);
        let allowed = ledger.readable().max(1);
        usize::try_from(len.min(known).min(allowed)).unwrap_or(MAX_CHUNK).min(MAX_CHUNK)
    }

    /// A file that goes on where it was known to end has grown; look how far, so that the next read is not a probe again.
    fn notice_growth(&self, offset: u64, bytes: &[u8]) {
        if offset.saturating_add(wide(bytes.len())) > self.size.load(Ordering::Relaxed) {
            let _ = self.refresh_size();
        }
    }

    /// Writes bytes at an offset, at most [`MAX_CHUNK`] of them, and says how many were written.
    pub(super) fn write(&self, ledger: &Ledger, bytes: &[u8], offset: u64) -> Result<usize, Fault> {
        let bytes = bytes.get(..MAX_CHUNK).unwrap_or(bytes);
        let hole = self.check_write(bytes, offset)?;
        if bytes.is_empty() {
            return Ok(0);
        }
        ledger.charge_write(wide(bytes.len()), hole)?;
        let (written, outcome) =
            write_all(bytes, |rest, done| pwrite(&self.file, rest, offset.saturating_add(wide(done))));
        self.book_write(ledger, bytes.len(), written, hole, offset.saturating_add(wide(written)));
        if written == 0 { outcome.map(|()| 0).map_err(Fault::Os) } else { Ok(written) }
    }

    /// Writes bytes at the end of the file, wherever that is by then, at most [`MAX_CHUNK`] of them, and says how many were written.
    pub(super) fn append(&self, ledger: &Ledger, bytes: &[u8]) -> Result<usize, Fault> {
        let bytes = bytes.get(..MAX_CHUNK).unwrap_or(bytes);
        self.check_write(bytes, 0)?;
        if bytes.is_empty() {
            return Ok(0);
        }
        ledger.charge_write(wide(bytes.len()), 0)?;
        let (written, outcome) = write_all(bytes, |rest, _| append_some(&self.file, rest));
        let end = self.size.load(Ordering::Relaxed).saturating_add(wide(written));
        self.book_write(ledger, bytes.len(), written, 0, end);
        if written == 0 { outcome.map(|()| 0).map_err(Fault::Os) } else { Ok(written) }
    }

    /// Makes the file longer or shorter. What it grows by counts as written.
    pub(super) fn set_size(&self, ledger: &Ledger, size: u64) -> Result<(), Fault> {
        if !self.mode.writes() {
            return Err(ErrorCode::BadDescriptor.into());
        }
        let growth = size.saturating_sub(self.refresh_size()?);
        ledger.charge_write(0, growth)?;
        retry_on_intr(|| ftruncate(&self.file, size)).inspect_err(|_| ledger.refund_write(0, growth))?;
        self.size.store(size, Ordering::Relaxed);
        self.note_change(ledger);
        Ok(())
    }

    /// What the file is like right now.
    pub(super) fn stat(&self) -> Result<Stat, Fault> {
        Ok(fstat(&self.file)?)
    }

    /// Notes, the first time, that the file has been changed.
    pub(super) fn note_change(&self, ledger: &Ledger) {
        if !self.changed.swap(true, Ordering::Relaxed)
            && let Some(name) = &self.name
        {
            ledger.note(name.clone());
        }
    }

    /// The length of the hole that a write at this offset would leave.
    fn check_write(&self, bytes: &[u8], offset: u64) -> Result<u64, Fault> {
        if !self.mode.writes() {
            return Err(ErrorCode::BadDescriptor.into());
        }
        let end = offset.checked_add(wide(bytes.len())).filter(|end| i64::try_from(*end).is_ok());
        end.ok_or(ErrorCode::FileTooLarge)?;
        if offset <= self.size.load(Ordering::Relaxed) {
            return Ok(0);
        }
        Ok(offset.saturating_sub(self.refresh_size()?))
    }

    fn book_write(&self, ledger: &Ledger, asked: usize, written: usize, hole: u64, end: u64) {
        if written == 0 {
            ledger.refund_write(wide(asked), hole);
            return;
        }
        ledger.refund_write(wide(asked.saturating_sub(written)), 0);
        self.size.fetch_max(end, Ordering::Relaxed);
        self.note_change(ledger);
    }

    fn refresh_size(&self) -> Result<u64, Fault> {
        let size = u64::try_from(self.stat()?.st_size).unwrap_or(0);
        self.size.store(size, Ordering::Relaxed);
        Ok(size)
    }
}

/// Writes piece by piece; says how many bytes were written, and what stopped it.
fn write_all(bytes: &[u8], mut some: impl FnMut(&[u8], usize) -> Result<usize, Errno>) -> (usize, Result<(), Errno>) {
    let mut done = 0_usize;
    while let Some(rest) = bytes.get(done..).filter(|rest| !rest.is_empty()) {
        match some(rest, done) {
            Ok(0) => return (done, Err(Errno::NOSPC)),
            Ok(n) => done = done.saturating_add(n),
            Err(Errno::INTR) => {}
            Err(errno) => return (done, Err(errno)),
        }
    }
    (done, Ok(()))
}

/// Appends in one step where the system can.
fn append_some(file: &File, bytes: &[u8]) -> Result<usize, Errno> {
    #[cfg(target_os = "linux")]
    match rustix::io::pwritev2(file, &[IoSlice::new(bytes)], 0, rustix::io::ReadWriteFlags::APPEND) {
        Err(Errno::NOSYS | Errno::NOTSUP) => {}
        outcome => return outcome,
    }
    append_by_flag(file, bytes)
}

/// Switches the open file to appending for one write. Nobody else uses this open file meanwhile: a guest has one thread.
fn append_by_flag(file: &File, bytes: &[u8]) -> Result<usize, Errno> {
    let flags = fcntl_getfl(file)?;
    fcntl_setfl(file, flags | OFlags::APPEND)?;
    let outcome = rustix::io::write(file, bytes);
    fcntl_setfl(file, flags)?;
    outcome
}

/// A length as a file size. Lengths of memory always fit.
pub(super) fn wide(len: usize) -> u64 {
    u64::try_from(len).unwrap_or(u64::MAX)
}
