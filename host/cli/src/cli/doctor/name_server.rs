//! Checks whether the configured name server answers.

use super::report::{Check, State};
use crate::cli::exit::Exit;
use palisade_net::NameServer;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::time::timeout;

/// The time for the answer. A server of the same network answers in milliseconds.
const PATIENCE: Duration = Duration::from_secs(3);

/// Asks the server one question.
pub(super) fn check(server: SocketAddr) -> Check {
    let (state, found) = match answer(server) {
        Ok(()) => (State::Good, format!("{server} answers")),
        Err(error) => (State::Bad(Exit::Limit), format!("{server}: {error}")),
    };
    Check {
        name: "name server",
        state,
        found,
        advice: "requests to granted hosts are refused until it answers: see `network.name_server`, and whether a firewall lets DNS pass",
    }
}

fn answer(server: SocketAddr) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let server = NameServer::new(server)?;
        match timeout(PATIENCE, server.check()).await {
            Ok(answered) => answered,
            Err(_) => Err(io::Error::new(
                io::ErrorKind::TimedOut,
                format!("no answer within {} s", PATIENCE.as_secs()),
            )),
        }
    })
}
