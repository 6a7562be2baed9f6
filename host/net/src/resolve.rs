//! Resolvers of names. Each request resolves its host once.

#[cfg(feature = "hickory")]
mod hickory;
mod hosts;

#[cfg(feature = "hickory")]
pub use hickory::NameServer;

use palisade::BoxFuture;
use palisade::internal::run_blocking;
use std::fmt;
use std::io;
use std::net::{IpAddr, ToSocketAddrs as _};

/// A resolver of DNS names.
pub trait Resolver: fmt::Debug + Send + Sync {
    /// Returns the addresses of a name, in the order in which they are tried. Runs once for each
    /// request to a host with a name, on the threads of the network, and must not block them.
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// The resolver of the system: its hosts file, and then `getaddrinfo`. The name is looked up as a
/// whole one, with a final dot, so that no search domain is added.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            // `getaddrinfo` finds a name in the hosts file without a final dot only.
            let whole = if name.contains('.') { format!("{name}.") } else { name.to_owned() };
            let named = name.to_owned();
            let look_up = move || {
                let found = hosts::addresses(&named);
                if !found.is_empty() {
                    return Ok(found);
                }
                Ok((whole, 0).to_socket_addrs()?.map(|address| address.ip()).collect())
            };
            run_blocking(look_up).await?
        })
    }
}
