//! Whether somebody is still at the other end of a connection, whatever lies unread in it.
//!
//! What reads the connection does not ask while bytes of a further request wait: then it learns of the end only after the answer that nobody waits for.

use std::io;
use std::os::fd::AsFd as _;
use tokio::io::Interest;
use tokio::net::TcpStream;

/// A second handle to a connection. What is learned by it is taken from nobody.
pub(super) struct Peer(TcpStream);

impl Peer {
    /// Of this connection.
    ///
    /// # Errors
    ///
    /// Where the system has no handle left.
    pub(super) fn of(socket: &TcpStream) -> io::Result<Self> {
        let socket = std::net::TcpStream::from(socket.as_fd().try_clone_to_owned()?);
        TcpStream::from_std(socket).map(Self)
    }

    /// Returns once the client has said that it sends no more, or the connection is broken. That a client which sends no more still listens is possible, but none of
    /// this protocol does so, and one that was ended by force looks just the same.
    pub(super) async fn gone(&self) {
        while let Ok(ready) = self.0.ready(Interest::READABLE).await
            && !ready.is_read_closed()
        {
            // Something has come, which is not for this handle: it waits for the next thing.
            let _ = self.0.try_io(Interest::READABLE, || Err::<(), _>(io::ErrorKind::WouldBlock.into()));
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
    async fn who_stays_is_there_and_what_it_sends_is_left_for_others() {
        let (mut client, mut socket) = pair().await;
        let peer = Peer::of(&socket).unwrap();
        for byte in [1, 2] {
            client.write_all(&[byte]).await.unwrap();
            assert!(timeout(Duration::from_millis(50), peer.gone()).await.is_err());
            assert_eq!(socket.read_u8().await.unwrap(), byte);
        }
    }

    #[tokio::test]
    async fn who_goes_or_will_send_no_more_is_noticed_while_bytes_lie_unread() {
        for is_whole in [true, false] {
            let (mut client, socket) = pair().await;
            let peer = Peer::of(&socket).unwrap();
            client.write_all(b"unread").await.unwrap();
            socket.readable().await.unwrap();
            if is_whole {
                client.set_zero_linger().unwrap();
            } else {
                client.shutdown().await.unwrap();
            }
            let _kept = (!is_whole).then_some(client);
            timeout(Duration::from_secs(10), peer.gone()).await.unwrap();
        }
    }
}
