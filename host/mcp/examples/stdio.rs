//! Serves the shipped tools over standard input and output, in this directory:
//! `cargo run -p palisade-mcp --example stdio`.

use palisade::{CancellationToken, Host};
use palisade_mcp::{ServeError, Server, Settings};
use std::error::Error;
use std::io::{Read, Write, stdin, stdout};
use std::sync::Arc;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // `.plugins("directory")` adds plugins; `.policy(…)` and `.limits(…)` restrict them.
    let host = Host::builder().workspace(".").build()?;
    serve(host, stdin(), stdout()).await?;
    Ok(())
}

/// Serves one client until its input ends.
pub(crate) async fn serve(
    host: Host,
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
) -> Result<(), ServeError> {
    let server = Server::new(Arc::new(host), Settings::default())?;
    server.serve_lines(input, output, CancellationToken::new()).await
}
