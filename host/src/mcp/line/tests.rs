//! Tests of how a connection to a client that does not read ends.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::host::Host;
use crate::mcp::{ServeError, Server, Settings};
use crate::plugins::Shipped;
use std::io::{self, Write};
use std::sync::{Arc, mpsc};
use tokio_util::sync::CancellationToken;

/// Serves a client that sends one request, with this output.
async fn served(output: impl Write + Send + 'static) -> Result<(), ServeError> {
    let (input, mut asks) = io::pipe().unwrap();
    asks.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n").unwrap();
    let host = Host::builder().shipped(Shipped::LeftOut).build().unwrap();
    let server = Server::new(Arc::new(host), Settings::default()).unwrap();
    let ended = server.serve_lines(input, output, CancellationToken::new()).await;
    // The input stays open until here, so that its end did not end the connection.
    drop(asks);
    ended
}

/// A pipe that is never read.
struct Stuck(mpsc::Receiver<()>);

impl Write for Stuck {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = self.0.recv();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A pipe whose reader has closed it.
struct Closed;

impl Write for Closed {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_nothing_is_given_up_with_an_error() {
    let (_holds, stuck) = mpsc::channel();
    let ended = served(Stuck(stuck)).await;
    assert!(matches!(ended, Err(ServeError::Stalled)), "{ended:?}");
}

/// Runs in real time: a paused clock would advance while the writer thread meets the closed end.
#[tokio::test]
async fn a_client_that_closes_its_end_has_left() {
    assert!(served(Closed).await.is_ok());
}
