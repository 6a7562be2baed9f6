//! Input and output streams of files. Both operate inline, because a regular file never makes its
//! caller wait for readiness.

use std::sync::Arc;

use bytes::Bytes;
use wasmtime_wasi::async_trait;
use wasmtime_wasi::p2::{InputStream, OutputStream, Pollable, StreamError, StreamResult};

use super::errors::Fault;
use super::file::{MAX_CHUNK, OpenFile, wide};
use super::usage::Usage;

/// An input stream that reads a file from an offset on.
pub(super) struct Reader {
    file: Arc<OpenFile>,
    usage: Arc<Usage>,
    offset: u64,
}

impl Reader {
    pub(super) fn new(file: Arc<OpenFile>, usage: Arc<Usage>, offset: u64) -> Self {
        Self { file, usage, offset }
    }
}

#[async_trait]
impl InputStream for Reader {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        if size == 0 {
            return Ok(Bytes::new());
        }
        let outcome = self.file.read(&self.usage, wide(size), self.offset);
        let bytes = self.usage.answer_stream(outcome)?;
        if bytes.is_empty() {
            return Err(StreamError::Closed);
        }
        self.offset = self.offset.saturating_add(wide(bytes.len()));
        Ok(Bytes::from(bytes))
    }

    async fn blocking_read(&mut self, size: usize) -> StreamResult<Bytes> {
        self.read(size)
    }
}

#[async_trait]
impl Pollable for Reader {
    async fn ready(&mut self) {}
}

/// The write position of a [`Writer`].
#[derive(Clone, Copy, Debug)]
pub(super) enum Position {
    /// An offset.
    At(u64),
    /// The current end of the file at each write.
    End,
}

/// An output stream that writes a file.
pub(super) struct Writer {
    file: Arc<OpenFile>,
    usage: Arc<Usage>,
    position: Position,
    failed: bool,
}

impl Writer {
    pub(super) fn new(file: Arc<OpenFile>, usage: Arc<Usage>, position: Position) -> Self {
        Self { file, usage, position, failed: false }
    }

    /// Writes all bytes. An empty write runs the checks as well, since it may be refused.
    fn write_all(&mut self, mut bytes: &[u8]) -> Result<(), Fault> {
        loop {
            let written = self.write_some(bytes)?;
            bytes = bytes.get(written..).unwrap_or_default();
            if bytes.is_empty() {
                return Ok(());
            }
        }
    }

    fn write_some(&mut self, bytes: &[u8]) -> Result<usize, Fault> {
        match &mut self.position {
            Position::End => self.file.append(&self.usage, bytes),
            Position::At(offset) => {
                let written = self.file.write(&self.usage, bytes, *offset)?;
                *offset = offset.saturating_add(wide(written));
                Ok(written)
            }
        }
    }

    fn check_open(&self) -> StreamResult<()> {
        if self.failed { Err(StreamError::Closed) } else { Ok(()) }
    }
}

#[async_trait]
impl OutputStream for Writer {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.check_open()?;
        // `wasi:io/streams`: a write beyond the permit of `check-write` traps.
        if bytes.len() > MAX_CHUNK {
            return Err(StreamError::trap("more bytes were written than check-write permitted"));
        }
        let outcome = self.write_all(&bytes);
        // `wasi:io/streams`: a stream is closed after its first failed operation.
        self.failed = outcome.is_err();
        self.usage.answer_stream(outcome)
    }

    fn flush(&mut self) -> StreamResult<()> {
        self.check_open()
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        self.check_open().map(|()| MAX_CHUNK)
    }

    async fn blocking_write_and_flush(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.write(bytes)
    }
}

#[async_trait]
impl Pollable for Writer {
    async fn ready(&mut self) {}
}
