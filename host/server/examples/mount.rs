//! Mounts the API in a program's own axum application, which has its own authentication.
//!
//! ```sh
//! cargo run -p palisade-server --example mount
//! curl -H 'authorization: Bearer operator-token' http://127.0.0.1:8080/agents/plugins
//! ```
#![allow(clippy::print_stdout, reason = "an example tells where it listens")]

use axum::Router;
use axum::extract::Request;
use axum::http::header;
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::get;
use palisade::Host;
use palisade_server::journal::{Journal, JournalSettings};
use palisade_server::{Attached, RecorderSettings, Role, Server, Settings, Wiring};
use std::error::Error;
use std::sync::Arc;
use tokio::net::TcpListener;

/// Tells the API who sends a request. A program looks a token or a cookie up in its own way, and
/// compares secrets in constant time.
async fn authenticate(mut request: Request, next: Next) -> Response {
    let token = request.headers().get(header::AUTHORIZATION).and_then(|it| it.to_str().ok());
    let role = match token {
        Some("Bearer operator-token") => Some(Role::Operator { name: "ana".into() }),
        Some("Bearer agent-token") => Some(Role::Client { id: "agent".into() }),
        _ => None,
    };
    if let Some(role) = role {
        request.extensions_mut().insert(role);
    }
    next.run(request).await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // The host needs the journal, the recorder and the confirmer before the server is there.
    let journal = Journal::temporary(JournalSettings::default())?;
    let wiring = Wiring::new(journal, RecorderSettings::default(), Attached::WhileWatched);
    let host = wiring.wire(Host::builder()).workspace(".").build()?;
    let server = Server::new(Arc::new(host), wiring, Settings::default());

    let agents = server.router().layer(middleware::from_fn(authenticate));
    let app = Router::new().route("/", get(|| async { "my own page" })).nest("/agents", agents);

    let listener = TcpListener::bind("127.0.0.1:8080").await?;
    println!("http://{}/agents/plugins", listener.local_addr()?);
    axum::serve(listener, app).await?;
    Ok(())
}
