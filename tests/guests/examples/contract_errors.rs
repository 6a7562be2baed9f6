//! A guest that fails with each error of the interface.

use palisade_guest::{Error, Result, tool};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Args {
    /// The kind of error.
    with: String,
}

/// Fails with the requested error.
#[tool(side_effects = "none")]
fn fail(args: Args) -> Result<String> {
    Err(match args.with.as_str() {
        "invalid-input" => Error::invalid_input("with", "nothing but trouble"),
        "not-found" => Error::not_found("no such thing"),
        "permission-denied" => Error::permission_denied("not for you"),
        "failed" => Error::failed("it broke"),
        "cancelled" => Error::cancelled(),
        "blank" => Error::failed("  \n "),
        "deceptive" => Error::failed("a\u{1b}[2Jb\u{202e}c"),
        "long" => Error::failed("x".repeat(1 << 20)),
        "connect" => {
            std::net::TcpStream::connect("127.0.0.1:1")?;
            return Ok("connected".to_owned());
        }
        "lookup" => {
            std::net::ToSocketAddrs::to_socket_addrs("localhost:1")?;
            return Ok("found".to_owned());
        }
        // As some standard libraries do at their start.
        "preopens" => {
            let directories = wasip2::filesystem::preopens::get_directories();
            Error::failed(format!("it broke, with {} directories", directories.len()))
        }
        "absent" => {
            let _ = std::fs::metadata("missing.txt");
            Error::not_found("missing.txt")
        }
        "io" => return Ok(std::fs::read_to_string("missing.txt")?),
        other => return Ok(format!("no error is called {other}")),
    })
}

palisade_guest::export!(fail);
