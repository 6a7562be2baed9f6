//! A resolver that asks one name server, such as that of an organisation.

use super::Resolver;
use crate::limits;
use hickory_resolver::TokioResolver;
use hickory_resolver::config::{
    ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts,
};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::rr::RecordType;
use palisade::BoxFuture;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};

/// A resolver that asks one name server, without a cache, a hosts file or search domains.
pub struct NameServer {
    address: SocketAddr,
    resolver: TokioResolver,
}

impl NameServer {
    /// Creates a resolver for this name server. Nothing is sent before the first request.
    ///
    /// # Errors
    ///
    /// The resolver's error, if it cannot be created.
    pub fn new(address: SocketAddr) -> io::Result<Self> {
        let mut connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()];
        connections.iter_mut().for_each(|connection| connection.port = address.port());
        let server = NameServerConfig::new(address.ip(), true, connections.into());
        let config = ResolverConfig::from_parts(None, Vec::new(), vec![server]);
        let mut options = ResolverOpts::default();
        options.cache_size = 0;
        options.use_hosts_file = ResolveHosts::Never;
        options.timeout = limits::RESOLVE / 2;
        let provider = TokioRuntimeProvider::default();
        let builder = TokioResolver::builder_with_config(config, provider).with_options(options);
        Ok(Self { address, resolver: builder.build().map_err(io::Error::other)? })
    }

    /// Asks the server for the name servers of the root, to see whether it answers. Every answer
    /// but a refusal counts, also that there are none.
    ///
    /// # Errors
    ///
    /// The resolver's error, if there is no answer, or if the server refuses to answer.
    pub async fn check(&self) -> io::Result<()> {
        match self.resolver.lookup(".", RecordType::NS).await {
            Err(error) if !error.is_no_records_found() => Err(io::Error::other(error)),
            Ok(_) | Err(_) => Ok(()),
        }
    }
}

impl fmt::Debug for NameServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NameServer").field(&self.address).finish()
    }
}

impl Resolver for NameServer {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let found = self.resolver.lookup_ip(format!("{name}.")).await;
            Ok(found.map_err(io::Error::other)?.iter().collect())
        })
    }
}
