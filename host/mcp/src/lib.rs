//! The Model Context Protocol server: exposes the tools of a host to MCP clients.
//!
//! The `rmcp` library parses and routes the messages of each protocol revision, the transports here
//! bound the load per client, and the dispatcher runs the calls. Both lifecycles are served side by
//! side: *stateful*, with a handshake and requests in both directions (up to 2025-11-25), and
//! *stateless*, where each request is self-contained (2026-07-28).
//!
//! The modules in their order: each uses only those before it, and `http` only `rate_limit`.
//!
//! | module | responsibility |
//! |---|---|
//! | `settings` | the settings of a server |
//! | `rate_limit` | token buckets |
//! | [`http`] | the HTTP/1.1 server, independent of the service behind it |
//! | `protocol` | lifecycles, methods, and the conversion of the host's data |
//! | `messages` | messages within bounds, their memory, and the requests in flight |
//! | `sessions` | the sessions of stateful clients over HTTP |
//! | `questions` | questions to the client's user and model during a call |
//! | `clients` | the state of each client |
//! | `telemetry` | the request log, spans and metrics |
//! | `state` | the state that all connections share |
//! | `lists` | the lists of tools, resources and prompts, and notifications of their changes |
//! | `calls` | the requests that run plugins |
//! | `handler` | the handlers of the protocol's methods |
//! | `transport` | standard input and output, and the endpoint over HTTP |
//! | `server` | the server: a host behind its transports |

mod calls;
mod clients;
mod handler;
pub mod http;
mod lists;
mod messages;
mod protocol;
mod questions;
mod rate_limit;
mod server;
mod sessions;
mod settings;
mod state;
mod telemetry;
mod transport;

pub use clients::client_session::{ClientSession, Introduction, SessionObserver, TransportKind};
pub use server::{Http, ServeError, Server};
pub use settings::{Changes, ConfirmedBy, Settings};

/// The log filter that silences `rmcp`: its messages repeat client data, and it reports a
/// disconnected client as an error.
pub const QUIET: &str = "rmcp=off";
/// The log filter that enables the per-request lines.
pub const REQUESTS: &str = "palisade::requests=debug";
