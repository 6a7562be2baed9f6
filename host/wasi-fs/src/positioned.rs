//! Positioned reads and writes, which do not depend on a shared file cursor.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rustix::buffer::spare_capacity;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::{pread, retry_on_intr};

/// Reads up to `capacity` bytes, which must not be zero, into uninitialised memory.
pub(super) fn read(file: &File, capacity: usize, offset: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(capacity);
    retry_on_intr(|| pread(file, spare_capacity(&mut bytes), offset))?;
    Ok(bytes)
}

pub(super) fn write(file: &File, bytes: &[u8], offset: u64) -> io::Result<usize> {
    file.write_at(bytes, offset)
}

/// Appends atomically if the system supports it.
pub(super) fn append(file: &File, bytes: &[u8]) -> io::Result<usize> {
    #[cfg(target_os = "linux")]
    {
        use rustix::io::{Errno, ReadWriteFlags, pwritev2};
        match pwritev2(file, &[io::IoSlice::new(bytes)], 0, ReadWriteFlags::APPEND) {
            Err(Errno::NOSYS | Errno::NOTSUP) => {}
            outcome => return Ok(outcome?),
        }
    }
    append_by_flag(file, bytes)
}

/// Sets `O_APPEND` for one write. No other thread uses this open file meanwhile, since a guest
/// has one thread.
fn append_by_flag(file: &File, bytes: &[u8]) -> io::Result<usize> {
    let flags = fcntl_getfl(file)?;
    fcntl_setfl(file, flags | OFlags::APPEND)?;
    let outcome = rustix::io::write(file, bytes);
    fcntl_setfl(file, flags)?;
    Ok(outcome?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;

    #[test]
    fn append_by_flag_writes_at_the_end_and_restores_the_flag() {
        let file = tempfile::tempfile().unwrap();
        file.write_at(b"begin", 0).unwrap();
        assert_eq!(append_by_flag(&file, b"+end").unwrap(), 4);
        assert_eq!(read(&file, 100, 0).unwrap(), b"begin+end");
        assert!(!fcntl_getfl(&file).unwrap().contains(OFlags::APPEND));
    }
}
