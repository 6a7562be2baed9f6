//! The thread that reads the host's requests. A command that keeps the processor busy makes a count
//! of its processes take seconds, which must not delay its end.

use super::killer::Killer;
use super::protocol::KILL;
use crate::process::STACK;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, OnceLock};
use std::thread;

/// The requests of the host, as the supervising thread reads them: a byte each, and the end of the
/// stream once the host has exited or abandoned the call.
pub(super) struct RequestReader {
    pub(super) requests: UnixStream,
    killer: Arc<OnceLock<Arc<Killer>>>,
}

impl RequestReader {
    /// Starts the thread. It has to be there before the command, which is kept from signalling the
    /// threads of that moment.
    pub(super) fn start(control: UnixStream) -> io::Result<Self> {
        let (forwarded, requests) = UnixStream::pair()?;
        let killer = Arc::<OnceLock<Arc<Killer>>>::default();
        let known = killer.clone();
        thread::Builder::new()
            .name("palisade-requests".to_owned())
            .stack_size(STACK)
            .spawn(move || forward(control, forwarded, &known))?;
        Ok(Self { requests, killer })
    }

    /// Names the killer of the command, which a request to kill it reaches at once.
    pub(super) fn set_killer(&self, killer: Arc<Killer>) {
        let _ = self.killer.set(killer);
    }
}

/// Forwards each request, after a kill if it asks for one.
fn forward(mut control: UnixStream, mut to: UnixStream, killer: &OnceLock<Arc<Killer>>) {
    let kill = || killer.get().map(|killer| killer.kill());
    loop {
        let mut byte = [0];
        match control.read(&mut byte) {
            Ok(1) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            _ => {
                kill();
                return;
            }
        }
        if byte == [KILL] {
            kill();
        }
        if to.write_all(&byte).is_err() {
            return;
        }
    }
}
