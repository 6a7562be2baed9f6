//! Holds `palisade serve` against the official client for Rust; `cargo xtask clients` builds and runs it.
//!
//! ```text
//! palisade-client-in-rust --workspace DIR [--process PID --url URL | COMMAND…]
//! ```
//!
//! What is tried, what is printed and what the server needs is the same as for the Python client (`../python/client.py`).
#![allow(
    deprecated,
    reason = "lines of the log, which go by the name of logging, are what begins the endless loop for us"
)]

mod person;
mod promises;
mod server;
mod tried;
mod wire;

use promises::PROMISES;
use rmcp::model::ProtocolVersion;
use rmcp::service::ClientLifecycleMode;
use server::Server;
use std::fmt::Display;
use std::process::ExitCode;
use std::time::Duration;
use tried::Tried;

/// What no answer takes, however slow the machine is.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long the server waits for the answer to a question: `confirm.timeout` of its settings.
const QUESTION: Duration = Duration::from_secs(2);
/// How long is listened for what must not come.
const QUIET: Duration = Duration::from_secs(1);

/// What does not hold.
#[derive(Debug)]
struct Wrong(String);

/// Whatever else fails is no promise kept either.
impl<E: std::error::Error> From<E> for Wrong {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

type Kept<T = ()> = Result<T, Wrong>;

fn need(holds: bool, what: impl Display) -> Kept {
    if holds { Ok(()) } else { Err(Wrong(what.to_string())) }
}

/// Waits for something that has no message of its own.
async fn until(holds: impl Fn() -> Kept<bool>, what: &str) -> Kept {
    let wait = async {
        while !holds()? {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    };
    match tokio::time::timeout(PATIENCE, wait).await {
        Ok(happened) => happened,
        Err(_) => Err(Wrong(format!("{what} does not happen within {} s", PATIENCE.as_secs()))),
    }
}

/// A revision of the protocol, and how a client comes to speak it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Era {
    /// With a handshake.
    Legacy,
    /// With requests that stand for themselves.
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

/// Each promise has a connection of its own.
async fn keep(promise: &promises::Promise, server: &Server, era: Era) -> Kept {
    let kept = async {
        let tried = Tried::connect(server, era).await?;
        let kept = (promise.keep)(&tried).await;
        tried.close().await?;
        kept
    };
    match tokio::time::timeout(2 * PATIENCE, kept).await {
        Ok(kept) => kept,
        Err(_) => Err(Wrong(format!("it takes longer than {} s", 2 * PATIENCE.as_secs()))),
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let server = match Server::told() {
        Ok(server) => server,
        Err(Wrong(why)) => {
            eprintln!("{why}");
            return ExitCode::from(2);
        }
    };
    let mut code = ExitCode::SUCCESS;
    for era in Era::ALL {
        for promise in PROMISES {
            match keep(promise, &server, era).await {
                Ok(()) => println!("ok {} {}", era.name(), promise.name),
                Err(Wrong(why)) => {
                    code = ExitCode::FAILURE;
                    println!("failed {} {}: {why}", era.name(), promise.name);
                }
            }
        }
    }
    code
}
