//! An open file of a guest, with the state needed to count and bound its reads and writes.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use super::errors::Fault;
use super::fd_budget::HeldFd;
use super::fd_location::FdLocation;
use super::positioned;
use super::usage::Usage;

/// The maximum number of bytes that one host call reads or writes. A host call cannot be
/// interrupted, so this bounds the overrun of a call's deadline. It stays below the size from which
/// the allocator maps fresh pages for each buffer (128 KiB in glibc), which costs more than
/// additional host calls.
pub(super) const MAX_CHUNK: usize = 64 << 10;

/// The minimum read size, in bytes, used at the known end of a file: enough to detect growth.
const PROBE: u64 = 64;

/// The access mode with which a file was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Read,
    Write,
    ReadWrite,
}

impl Mode {
    pub(super) fn reads(self) -> bool {
        match self {
            Self::Read | Self::ReadWrite => true,
            Self::Write => false,
        }
    }

    pub(super) fn writes(self) -> bool {
        match self {
            Self::Write | Self::ReadWrite => true,
            Self::Read => false,
        }
    }
}

/// An open regular file of the mount.
pub(super) struct OpenFile {
    file: File,
    mode: Mode,
    /// The last known size. Other programs may change the file, so this value serves only to size
    /// buffers and to find holes.
    size: AtomicU64,
    /// The real name. Present if the handle can change the file in any way, including its
    /// timestamps, which a read-only handle can set.
    name: Option<String>,
    changed: AtomicBool,
    location: FdLocation,
    _fd: Option<HeldFd>,
}

impl OpenFile {
    pub(super) fn new(file: File, mode: Mode, size: u64, name: Option<String>) -> Self {
        // The path of a file opened for writing was checked at open. The path of a read-only one is
        // checked when its metadata is changed.
        let location =
            if mode.writes() { FdLocation::checked(&file) } else { FdLocation::default() };
        Self {
            file,
            mode,
            size: AtomicU64::new(size),
            name,
            changed: AtomicBool::new(false),
            location,
            _fd: None,
        }
    }

    /// Counts the file against the open files of its plugin.
    pub(super) fn counted(self, fd: HeldFd) -> Self {
        Self { _fd: Some(fd), ..self }
    }

    /// Wraps a file that the guest has just created.
    pub(super) fn created(file: File, mode: Mode, name: &str, usage: &Usage) -> Self {
        usage.note_created(name);
        // The creation is in the change log already, so later changes need no name.
        Self { changed: AtomicBool::new(true), ..Self::new(file, mode, 0, None) }
    }

    pub(super) fn as_file(&self) -> &File {
        &self.file
    }

    pub(super) fn mode(&self) -> Mode {
        self.mode
    }

    /// Returns whether the file was changed through this handle.
    pub(super) fn is_changed(&self) -> bool {
        self.changed.load(Ordering::Relaxed)
    }

    /// Reads up to `len` bytes at an offset, at most [`MAX_CHUNK`]. An empty result means the end
    /// of the file or a `len` of zero.
    pub(super) fn read(&self, usage: &Usage, len: u64, offset: u64) -> Result<Vec<u8>, Fault> {
        if !self.mode.reads() {
            return Err(ErrorCode::BadDescriptor.into());
        }
        let capacity = self.read_size(usage, len, offset);
        if capacity == 0 {
            return Ok(Vec::new());
        }
        let bytes = positioned::read(&self.file, capacity, offset)?;
        usage.charge_read(wide(bytes.len()))?;
        self.notice_growth(offset, &bytes);
        Ok(bytes)
    }

    /// Returns the buffer size: bounded by the request, the quota and the known rest of the file.
    /// It is at least one byte even if the quota is exhausted, to tell the end of the file from an
    /// exceeded quota.
    fn read_size(&self, usage: &Usage, len: u64, offset: u64) -> usize {
        let known = self.size.load(Ordering::Relaxed).saturating_sub(offset).max(PROBE);
        let allowed = usage.readable().max(1);
        usize::try_from(len.min(known).min(allowed)).unwrap_or(MAX_CHUNK).min(MAX_CHUNK)
    }

    /// Refreshes the size if the file continues beyond its known end, so that the next read is not
    /// a probe again.
    fn notice_growth(&self, offset: u64, bytes: &[u8]) {
        if offset.saturating_add(wide(bytes.len())) > self.size.load(Ordering::Relaxed) {
            let _ = self.refresh_size();
        }
    }

    /// Writes at most [`MAX_CHUNK`] bytes at an offset, and returns the number of bytes written.
    pub(super) fn write(&self, usage: &Usage, bytes: &[u8], offset: u64) -> Result<usize, Fault> {
        let bytes = bytes.get(..MAX_CHUNK).unwrap_or(bytes);
        let hole = self.check_write(bytes, offset)?;
        if bytes.is_empty() {
            return Ok(0);
        }
        self.check_place(usage)?;
        usage.charge_write(wide(bytes.len()), hole)?;
        let at = |done| offset.saturating_add(wide(done));
        let progress = write_all(bytes, |rest, done| positioned::write(&self.file, rest, at(done)));
        self.book_write(usage, &progress, bytes.len(), hole, at(progress.written));
        progress.outcome()
    }

    /// Appends at most [`MAX_CHUNK`] bytes at the current end of the file, and returns the number
    /// of bytes written.
    pub(super) fn append(&self, usage: &Usage, bytes: &[u8]) -> Result<usize, Fault> {
        let bytes = bytes.get(..MAX_CHUNK).unwrap_or(bytes);
        self.check_write(bytes, 0)?;
        if bytes.is_empty() {
            return Ok(0);
        }
        self.check_place(usage)?;
        usage.charge_write(wide(bytes.len()), 0)?;
        let progress = write_all(bytes, |rest, _| positioned::append(&self.file, rest));
        let end = self.size.load(Ordering::Relaxed).saturating_add(wide(progress.written));
        self.book_write(usage, &progress, bytes.len(), 0, end);
        progress.outcome()
    }

    /// Resizes the file. Growth counts as written bytes. POSIX demands another error code here than
    /// for a write if the file is open for reading only.
    pub(super) fn set_size(&self, usage: &Usage, size: u64) -> Result<(), Fault> {
        if !self.mode.writes() {
            return Err(ErrorCode::Invalid.into());
        }
        self.check_place(usage)?;
        let growth = size.saturating_sub(self.refresh_size()?);
        usage.charge_write(0, growth)?;
        self.file.set_len(size).inspect_err(|_| usage.refund_write(0, growth))?;
        self.size.store(size, Ordering::Relaxed);
        self.note_change(usage);
        Ok(())
    }

    /// Checks the file's current path, and refuses the change if it has moved into a protected
    /// tree.
    pub(super) fn check_place(&self, usage: &Usage) -> Result<(), Fault> {
        self.location.check(&self.file, usage)
    }

    /// Records the first change of the file in the change log.
    pub(super) fn note_change(&self, usage: &Usage) {
        if !self.changed.swap(true, Ordering::Relaxed)
            && let Some(name) = &self.name
        {
            usage.note_changed(name);
        }
    }

    /// Returns the length of the hole that a write at this offset would create.
    fn check_write(&self, bytes: &[u8], offset: u64) -> Result<u64, Fault> {
        if !self.mode.writes() {
            return Err(ErrorCode::BadDescriptor.into());
        }
        // `off_t` is signed.
        let end = offset.checked_add(wide(bytes.len())).filter(|end| i64::try_from(*end).is_ok());
        end.ok_or(ErrorCode::FileTooLarge)?;
        if offset <= self.size.load(Ordering::Relaxed) {
            return Ok(0);
        }
        Ok(offset.saturating_sub(self.refresh_size()?))
    }

    fn book_write(&self, usage: &Usage, progress: &Progress, asked: usize, hole: u64, end: u64) {
        if progress.written == 0 {
            usage.refund_write(wide(asked), hole);
            return;
        }
        usage.refund_write(wide(asked.saturating_sub(progress.written)), 0);
        self.size.fetch_max(end, Ordering::Relaxed);
        self.note_change(usage);
    }

    fn refresh_size(&self) -> Result<u64, Fault> {
        let size = self.file.metadata()?.len();
        self.size.store(size, Ordering::Relaxed);
        Ok(size)
    }
}

/// The bytes written so far, and the error that stopped the write.
struct Progress {
    written: usize,
    stopped: Option<io::Error>,
}

impl Progress {
    /// Returns an error only if nothing was written; otherwise the next write meets it again.
    fn outcome(self) -> Result<usize, Fault> {
        match self.stopped {
            Some(error) if self.written == 0 => Err(error.into()),
            _ => Ok(self.written),
        }
    }
}

/// Writes all bytes in pieces. The closure receives the rest and the number of bytes written
/// before.
fn write_all(bytes: &[u8], mut some: impl FnMut(&[u8], usize) -> io::Result<usize>) -> Progress {
    let mut written = 0_usize;
    while let Some(rest) = bytes.get(written..).filter(|rest| !rest.is_empty()) {
        match some(rest, written) {
            Ok(0) => return Progress { written, stopped: Some(io::ErrorKind::WriteZero.into()) },
            Ok(n) => written = written.saturating_add(n),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Progress { written, stopped: Some(error) },
        }
    }
    Progress { written, stopped: None }
}

/// Converts a length to a file size. Lengths in memory always fit.
pub(super) fn wide(len: usize) -> u64 {
    u64::try_from(len).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::super::quotas::Quotas;
    use super::*;
    use io::ErrorKind::{Interrupted, StorageFull, WriteZero};

    /// Writes ten bytes to a writer that returns these answers one after the other.
    fn written(answers: &[Result<usize, io::ErrorKind>]) -> (usize, Option<io::ErrorKind>) {
        let mut answers = answers.iter();
        let progress = write_all(&[0; 10], |_, _| answers.next().unwrap().map_err(io::Error::from));
        (progress.written, progress.stopped.map(|error| error.kind()))
    }

    #[test]
    fn write_continues_until_complete_or_stopped() {
        assert_eq!(written(&[Ok(4), Err(Interrupted), Ok(6)]), (10, None));
        assert_eq!(written(&[Ok(4), Err(StorageFull)]), (4, Some(StorageFull)));
        assert_eq!(written(&[Ok(4), Ok(0)]), (4, Some(WriteZero)));
    }

    #[test]
    fn write_error_is_reported_if_nothing_was_written() {
        let stopped = |written| Progress { written, stopped: Some(StorageFull.into()) }.outcome();
        assert!(matches!(stopped(0), Err(Fault::Os(error)) if error.kind() == StorageFull));
        assert_eq!(stopped(3).unwrap(), 3);
        assert_eq!(Progress { written: 0, stopped: None }.outcome().unwrap(), 0);
    }

    #[test]
    fn failed_write_is_refunded_and_not_a_change() {
        let usage = Usage::new(Quotas { write_bytes: 10, ..Quotas::default() }, None, None);
        // The file is opened for reading only, so the system refuses the write.
        let place = tempfile::NamedTempFile::new().unwrap();
        let file = OpenFile::new(
            File::open(place.path()).unwrap(),
            Mode::Write,
            0,
            Some("file".to_owned()),
        );
        for _ in 0..2 {
            assert!(matches!(file.write(&usage, &[0; 6], 4), Err(Fault::Os(_))));
            assert!(matches!(file.append(&usage, &[0; 10]), Err(Fault::Os(_))));
        }
        assert_eq!(
            (usage.bytes_written(), usage.modified(), file.is_changed()),
            (0, Vec::new(), false)
        );
        let file = OpenFile::new(place.reopen().unwrap(), Mode::Write, 0, Some("file".to_owned()));
        assert_eq!(file.write(&usage, &[0; 6], 4).unwrap(), 6);
        assert_eq!((usage.bytes_written(), file.is_changed()), (6, true));
    }
}
