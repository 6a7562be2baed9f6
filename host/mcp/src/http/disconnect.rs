//! Detects that a client has disconnected while unread bytes are buffered.
//!
//! Hyper does not poll the socket while bytes of a pipelined request wait in its buffer. It would
//! notice the disconnect only after the response, so that the request would run for no client.

use std::io;
use std::os::fd::AsFd as _;
use tokio::io::Interest;
use tokio::net::TcpStream;

/// A duplicate of a connection's file descriptor that only observes readiness and never reads.
pub(super) struct DisconnectWatch(TcpStream);

impl DisconnectWatch {
    /// Duplicates the descriptor of this connection.
    ///
    /// # Errors
    ///
    /// Fails if the process has no file descriptor left.
    pub(super) fn new(socket: &TcpStream) -> io::Result<Self> {
        let socket = std::net::TcpStream::from(socket.as_fd().try_clone_to_owned()?);
        TcpStream::from_std(socket).map(Self)
    }

    /// Completes when the client closes its sending half, or when the connection breaks. A
    /// half-closed client could still read, but MCP clients do not do that, and a killed client
    /// looks the same.
    pub(super) async fn disconnected(&self) {
        while let Ok(ready) = self.0.ready(Interest::READABLE).await
            && !ready.is_read_closed()
        {
            // The readable data belongs to hyper. A `WouldBlock` result clears the readiness, so
            // that the loop waits for the next event.
            let _ = self
                .0
                .try_io(Interest::READABLE, || Err::<(), _>(io::ErrorKind::WouldBlock.into()));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use std::time::Duration;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use tokio::time::timeout;

    async fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (client, listener.accept().await.unwrap().0)
    }

    #[tokio::test]
    async fn data_is_no_disconnect_and_stays_readable() {
        let (mut client, mut socket) = pair().await;
        let watch = DisconnectWatch::new(&socket).unwrap();
        for byte in [1, 2] {
            client.write_all(&[byte]).await.unwrap();
            assert!(timeout(Duration::from_millis(50), watch.disconnected()).await.is_err());
            assert_eq!(socket.read_u8().await.unwrap(), byte);
        }
    }

    #[tokio::test]
    async fn disconnect_is_detected_behind_unread_bytes() {
        for is_whole in [true, false] {
            let (mut client, socket) = pair().await;
            let watch = DisconnectWatch::new(&socket).unwrap();
            client.write_all(b"unread").await.unwrap();
            socket.readable().await.unwrap();
            if is_whole {
                client.set_zero_linger().unwrap();
            } else {
                client.shutdown().await.unwrap();
            }
            let _kept = (!is_whole).then_some(client);
            timeout(Duration::from_secs(10), watch.disconnected()).await.unwrap();
        }
    }
}
