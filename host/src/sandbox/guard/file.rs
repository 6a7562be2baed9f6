//! An open file, with what has to be known about it in order to count and bound what is done with it.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use super::errors::Fault;
use super::held::Held;
use super::keeper::Keeper;
use super::ledger::Ledger;
use super::positioned;

/// How many bytes one host call reads or writes at most. A host call cannot be interrupted, so this bounds how far a call can overrun its deadline. It
/// stays below the size from which the allocator maps fresh pages for each buffer (128 KiB in glibc), which cost more than the further host calls.
pub(super) const MAX_CHUNK: usize = 64 << 10;

/// How much is asked for where the file was known to end: enough to see that it has grown.
const PROBE: u64 = 64;

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
    /// The real name, kept where something about the file can be changed through this handle: its times, even if it was opened for reading only.
    name: Option<String>,
    changed: AtomicBool,
    keeper: Keeper,
    _held: Option<Held>,
}

impl OpenFile {
    pub(super) fn new(file: File, mode: Mode, size: u64, name: Option<String>) -> Self {
        // What is opened to be changed has been judged; the rest is judged where it is changed nevertheless.
        let keeper = if mode.writes() { Keeper::judged(&file) } else { Keeper::default() };
        Self { file, mode, size: AtomicU64::new(size), name, changed: AtomicBool::new(false), keeper, _held: None }
    }

    /// The same, as one of those that guests hold together.
    #[cfg(unix)]
    pub(super) fn counted(self, held: Held) -> Self {
        Self { _held: Some(held), ..self }
    }

    /// A file that the guest has just made.
    pub(super) fn created(file: File, mode: Mode, name: &str, ledger: &Ledger) -> Self {
        ledger.note_created(name);
        // It is noted already, so that nothing needs its name any more.
        Self { changed: AtomicBool::new(true), ..Self::new(file, mode, 0, None) }
    }

    pub(super) fn as_file(&self) -> &File {
        &self.file
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
        let bytes = positioned::read(&self.file, capacity, offset)?;
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
        self.check_place(ledger)?;
        ledger.charge_write(wide(bytes.len()), hole)?;
        let at = |done| offset.saturating_add(wide(done));
        let progress = write_all(bytes, |rest, done| positioned::write(&self.file, rest, at(done)));
        self.book_write(ledger, &progress, bytes.len(), hole, at(progress.written));
        progress.outcome()
    }

    /// Writes bytes at the end of the file, wherever that is by then, at most [`MAX_CHUNK`] of them, and says how many were written.
    pub(super) fn append(&self, ledger: &Ledger, bytes: &[u8]) -> Result<usize, Fault> {
        let bytes = bytes.get(..MAX_CHUNK).unwrap_or(bytes);
        self.check_write(bytes, 0)?;
        if bytes.is_empty() {
            return Ok(0);
        }
        self.check_place(ledger)?;
        ledger.charge_write(wide(bytes.len()), 0)?;
        let progress = write_all(bytes, |rest, _| positioned::append(&self.file, rest));
        let end = self.size.load(Ordering::Relaxed).saturating_add(wide(progress.written));
        self.book_write(ledger, &progress, bytes.len(), 0, end);
        progress.outcome()
    }

    /// Makes the file longer or shorter. What it grows by counts as written. Of a file that is only read POSIX says another thing here than at a write.
    pub(super) fn set_size(&self, ledger: &Ledger, size: u64) -> Result<(), Fault> {
        if !self.mode.writes() {
            return Err(ErrorCode::Invalid.into());
        }
        self.check_place(ledger)?;
        let growth = size.saturating_sub(self.refresh_size()?);
        ledger.charge_write(0, growth)?;
        self.file.set_len(size).inspect_err(|_| ledger.refund_write(0, growth))?;
        self.size.store(size, Ordering::Relaxed);
        self.note_change(ledger);
        Ok(())
    }

    /// Refuses to change the file where it stands by now.
    pub(super) fn check_place(&self, ledger: &Ledger) -> Result<(), Fault> {
        self.keeper.check(&self.file, ledger)
    }

    /// Notes, the first time, that the file has been changed.
    pub(super) fn note_change(&self, ledger: &Ledger) {
        if !self.changed.swap(true, Ordering::Relaxed)
            && let Some(name) = &self.name
        {
            ledger.note_changed(name);
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

    fn book_write(&self, ledger: &Ledger, progress: &Progress, asked: usize, hole: u64, end: u64) {
        if progress.written == 0 {
            ledger.refund_write(wide(asked), hole);
            return;
        }
        ledger.refund_write(wide(asked.saturating_sub(progress.written)), 0);
        self.size.fetch_max(end, Ordering::Relaxed);
        self.note_change(ledger);
    }

    fn refresh_size(&self) -> Result<u64, Fault> {
        let size = self.file.metadata()?.len();
        self.size.store(size, Ordering::Relaxed);
        Ok(size)
    }
}

/// How far a write came, and what stopped it.
struct Progress {
    written: usize,
    stopped: Option<io::Error>,
}

impl Progress {
    /// An error only where nothing was written: the next write will meet it again.
    fn outcome(self) -> Result<usize, Fault> {
        match self.stopped {
            Some(error) if self.written == 0 => Err(error.into()),
            _ => Ok(self.written),
        }
    }
}

/// Writes piece by piece. The closure is told how many bytes are written already.
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

/// A length as a file size. Lengths of memory always fit.
pub(super) fn wide(len: usize) -> u64 {
    u64::try_from(len).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::super::ledger::Quotas;
    use super::*;
    use io::ErrorKind::{Interrupted, StorageFull, WriteZero};

    /// Writes ten bytes to what answers in this way, the last answer for ever.
    fn written(answers: &[Result<usize, io::ErrorKind>]) -> (usize, Option<io::ErrorKind>) {
        let mut answers = answers.iter();
        let progress = write_all(&[0; 10], |_, _| answers.next().unwrap().map_err(io::Error::from));
        (progress.written, progress.stopped.map(|error| error.kind()))
    }

    #[test]
    fn a_write_goes_on_until_it_is_whole_or_stopped() {
        assert_eq!(written(&[Ok(4), Err(Interrupted), Ok(6)]), (10, None));
        assert_eq!(written(&[Ok(4), Err(StorageFull)]), (4, Some(StorageFull)));
        assert_eq!(written(&[Ok(4), Ok(0)]), (4, Some(WriteZero)));
    }

    #[test]
    fn what_stopped_a_write_is_told_where_nothing_was_written() {
        let stopped = |written| Progress { written, stopped: Some(StorageFull.into()) }.outcome();
        assert!(matches!(stopped(0), Err(Fault::Os(error)) if error.kind() == StorageFull));
        assert_eq!(stopped(3).unwrap(), 3);
        assert_eq!(Progress { written: 0, stopped: None }.outcome().unwrap(), 0);
    }

    #[test]
    fn what_could_not_be_written_is_given_back_and_is_no_change() {
        let ledger = Ledger::new(Quotas { write_bytes: 10, ..Quotas::default() }, None, Default::default());
        // Open for reading only, whatever is said of it: the system refuses the write.
        let place = tempfile::NamedTempFile::new().unwrap();
        let file = OpenFile::new(File::open(place.path()).unwrap(), Mode::Write, 0, Some("file".to_owned()));
        for _ in 0..2 {
            assert!(matches!(file.write(&ledger, &[0; 6], 4), Err(Fault::Os(_))));
            assert!(matches!(file.append(&ledger, &[0; 10]), Err(Fault::Os(_))));
        }
        assert_eq!((ledger.bytes_written(), ledger.modified(), file.is_changed()), (0, Vec::new(), false));
        let file = OpenFile::new(place.reopen().unwrap(), Mode::Write, 0, Some("file".to_owned()));
        assert_eq!(file.write(&ledger, &[0; 6], 4).unwrap(), 6);
        assert_eq!((ledger.bytes_written(), file.is_changed()), (6, true));
    }
}
