//! A small HTTP/1.1 server with host and origin checks, token authentication, rate limits, and
//! bounds on connections and requests. It is independent of the services it routes to.
//!
//! TLS is not included. A listener that other machines can reach requires a token, and should sit
//! behind a TLS-terminating proxy. On loopback, the token can be left out only with an explicit
//! [`Access::Unauthenticated`].

mod allowed_hosts;
mod auth;
mod body_memory;
mod both_loopbacks;
mod client_address;
mod connection;
mod connection_limit;
mod cors;
mod credentials;
mod disconnect;
mod listener;
mod login;
mod login_halves;
mod logins;
mod random;
mod read_rate;
mod rejection;
mod rejection_log;
mod request_body;
mod request_rates;
mod response_body;
mod same_origin;
mod service;
mod settings;
mod socket;
mod stored_logins;
mod turn_away;

pub use auth::{Admitted, Caller, RequestHead, Role};
pub use hyper::body::Body as HttpBody;
pub use hyper::{Request, Response};
pub use logins::Logins;
pub use response_body::Body;
pub use service::Service;
pub use settings::{Access, Settings, SettingsError, Token, TokenRefused};

pub(crate) use client_address::ClientAddress;
#[cfg(test)]
pub(crate) use connection::ConnectionHandler;
pub(crate) use connection::LOG_TARGET;
pub(crate) use listener::Listener;
pub(crate) use rejection_log::Overload;
pub(crate) use response_body::{SharedBody, guarded_body, guarded_bytes};
pub(crate) use service::Beside;
