//! Tests `palisade serve` with the official Rust client; `cargo xtask clients` builds and runs it.
//!
//! ```text
//! palisade-client-in-rust --workspace DIR [--process PID --url URL | COMMAND…]
//! ```
//!
//! The checks, the output and the requirements of the server are those of the Python client
//! (`../python/client.py`).
#![allow(
    deprecated,
    reason = "a log message, which the protocol deprecates, signals the start of the endless loop"
)]

mod connection;
mod promises;
mod server;
mod user;
mod wire;

use connection::Connection;
use promises::PROMISES;
use rmcp::model::ProtocolVersion;
use rmcp::service::ClientLifecycleMode;
use server::Server;
use std::fmt::Display;
use std::process::ExitCode;
use std::time::Duration;

/// An upper bound for the time until an answer arrives, also on a slow machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// The server's timeout for the answer to a question: `confirm.timeout` of its settings.
const QUESTION: Duration = Duration::from_secs(2);
/// The time to wait for messages that must not arrive.
const QUIET: Duration = Duration::from_secs(1);

/// A broken promise, with its description.
#[derive(Debug)]
struct Broken(String);

/// Any other error breaks the promise as well.
impl<E: std::error::Error> From<E> for Broken {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

type Outcome<T = ()> = Result<T, Broken>;

fn ensure(holds: bool, what: impl Display) -> Outcome {
    if holds { Ok(()) } else { Err(Broken(what.to_string())) }
}

/// Polls until a condition holds that no message announces.
async fn wait_until(holds: impl Fn() -> Outcome<bool>, what: &str) -> Outcome {
    let wait = async {
        while !holds()? {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    };
    match tokio::time::timeout(PATIENCE, wait).await {
        Ok(happened) => happened,
        Err(_) => Err(Broken(format!("{what} does not happen within {} s", PATIENCE.as_secs()))),
    }
}

/// A revision of the protocol, with the way to negotiate it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Era {
    /// With a handshake.
    Legacy,
    /// With self-contained requests.
    Modern,
}

impl Era {
    const ALL: [Self; 2] = [Self::Legacy, Self::Modern];

    fn name(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }

    fn version(self) -> ProtocolVersion {
        match self {
            Self::Legacy => ProtocolVersion::V_2025_11_25,
            Self::Modern => ProtocolVersion::V_2026_07_28,
        }
    }

    fn lifecycle(self) -> ClientLifecycleMode {
        match self {
            Self::Legacy => ClientLifecycleMode::Initialize,
            Self::Modern => ClientLifecycleMode::Auto {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
                legacy_version: Some(ProtocolVersion::V_2025_11_25),
            },
        }
    }
}

/// Checks a promise with its own connection.
async fn check(promise: &promises::Promise, server: &Server, era: Era) -> Outcome {
    let kept = async {
        let connection = Connection::connect(server, era).await?;
        let kept = (promise.check)(&connection).await;
        connection.close().await?;
        kept
    };
    match tokio::time::timeout(2 * PATIENCE, kept).await {
        Ok(kept) => kept,
        Err(_) => Err(Broken(format!("it takes longer than {} s", 2 * PATIENCE.as_secs()))),
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let server = match Server::from_arguments() {
        Ok(server) => server,
        Err(Broken(why)) => {
            eprintln!("{why}");
            return ExitCode::from(2);
        }
    };
    let mut code = ExitCode::SUCCESS;
    for era in Era::ALL {
        for promise in PROMISES {
            match check(promise, &server, era).await {
                Ok(()) => println!("ok {} {}", era.name(), promise.name),
                Err(Broken(why)) => {
                    code = ExitCode::FAILURE;
                    println!("failed {} {}: {why}", era.name(), promise.name);
                }
            }
        }
    }
    code
}
