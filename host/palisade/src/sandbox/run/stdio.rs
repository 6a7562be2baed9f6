//! Captured standard output and error of a guest: kept up to a bound and where the address space
//! has room, counted beyond, never failing and never blocking.
//!
//! The streams of wasmtime-wasi grow host memory on empty writes (GHSA-5m8g-xhq4-4h93), so the
//! streams here use none of their code.

use crate::execution::account::{Owed, fits_address_space};
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
        let length = room(&buffer.kept, length);
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

/// Returns how many of these bytes a buffer can take. While it grows, both copies of it exist, and
/// the new one may have room for twice as many bytes.
fn room(kept: &Vec<u8>, more: usize) -> usize {
    let free = kept.capacity() - kept.len();
    if more <= free || fits_address_space(2 * (kept.len() + more)) { more } else { free }
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
    use palisade_tests::program::address_space_in_use;

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

    #[test]
    fn output_is_dropped_where_the_address_space_is_in_use() {
        let own = "sandbox::run::stdio::tests::output_is_dropped_where_the_address_space_is_in_use";
        let Some(_held) = address_space_in_use(own) else { return };
        let output = vec![b'x'; limits::STDIO];
        let captured: Vec<Captured> = (0..1_000).map(|_| Captured::default()).collect();
        captured.iter().for_each(|captured| captured.append(&output));
        let kept: usize = captured.iter().map(|captured| captured.take().0.len()).sum();
        assert!(kept < 8 << 20, "{} MiB of 250", kept >> 20);
    }
}
