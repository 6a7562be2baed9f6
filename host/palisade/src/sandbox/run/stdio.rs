//! Captured standard output and error of a guest: kept up to a bound, counted beyond it, never
//! failing and never blocking.
//!
//! The streams of wasmtime-wasi grow host memory on empty writes (GHSA-5m8g-xhq4-4h93), so the
//! streams here use none of their code.

use crate::execution::account::Owed;
use crate::sandbox::limits;
use bytes::Bytes;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use tokio::io::AsyncWrite;
use wasmtime_wasi::async_trait;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};

/// The number of bytes that a guest may write before its next `check-write`.
const PERMIT: usize = 64 << 10;

/// One bounded stream. Clones share the buffer.
#[derive(Clone, Default)]
pub(crate) struct Captured(Arc<Mutex<Buffer>>);

#[derive(Default)]
struct Buffer {
    kept: Vec<u8>,
    /// The memory of the buffer, as it counts in the memory of all calls.
    owed: Owed,
    dropped: u64,
}

impl Captured {
    fn append(&self, bytes: &[u8]) {
        let mut buffer = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let length = limits::STDIO.saturating_sub(buffer.kept.len()).min(bytes.len());
        buffer.kept.extend_from_slice(&bytes[..length]);
        let held = buffer.kept.capacity();
        buffer.owed.set(held);
        buffer.dropped += (bytes.len() - length) as u64;
    }

    /// Takes the captured bytes, and returns them with the number of dropped bytes.
    pub(crate) fn take(&self) -> (Vec<u8>, u64) {
        let mut buffer = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        buffer.owed.set(0);
        (std::mem::take(&mut buffer.kept), buffer.dropped)
    }
}

impl IsTerminal for Captured {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Captured {
    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }

    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }
}

#[async_trait]
impl Pollable for Captured {
    async fn ready(&mut self) {}
}

impl OutputStream for Captured {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.append(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(PERMIT)
    }
}

impl AsyncWrite for Captured {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        self.append(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excess_output_is_dropped_and_counted() {
        let captured = Captured::default();
        captured.append(&vec![b'x'; limits::STDIO - 1]);
        captured.append(b"abc");
        let owed = || captured.0.lock().unwrap_or_else(PoisonError::into_inner).owed.get();
        assert!(owed() >= limits::STDIO as u64, "it counts among the memory of all calls");
        let (kept, dropped) = captured.take();
        assert_eq!((kept.len(), dropped, owed()), (limits::STDIO, 2, 0));
    }
}
