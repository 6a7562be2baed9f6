//! Requests through the hooks of `wasi:http`, to servers of the tests' own. Each server counts what
//! arrives, because a refusal that a guest sees proves nothing about the wire.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod changes;
mod dns;
mod exchanges;
mod limits;
mod secrets;
mod server;
mod spellings;
mod targets;
mod tls;

use crate::call::CallData;
use crate::current::CurrentGrants;
use crate::{Network, PluginGrants, Resolver, Secret};
use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt as _, Full};
use palisade::internal::{Account, MemoryLimits, PoweredCall, Refusals};
use palisade::tool::Digest;
use palisade::{BoxFuture, SideEffects};
use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody, WasiHttpHooks as _};

/// A resolver that knows some names.
#[derive(Debug, Default)]
pub(super) struct Known(HashMap<&'static str, Vec<IpAddr>>);

impl Resolver for Known {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            self.0.get(name).cloned().ok_or_else(|| io::Error::other("there is no such name"))
        })
    }
}

/// Returns a network in which a name has addresses.
fn network(names: &[(&'static str, &[&str])]) -> Network {
    let parse = |address: &&str| address.parse().unwrap();
    let names = names.iter().map(|(name, all)| (*name, all.iter().map(parse).collect()));
    Network::new(Arc::new(Known(names.collect())), Vec::new())
}

/// Returns a network in which `server.test` is this machine.
fn local() -> Network {
    network(&[("server.test", &["127.0.0.1"])])
}

fn grants(rules: &[&str]) -> PluginGrants {
    with_secrets(rules, Vec::new(), &|_| None)
}

fn with_secrets(
    rules: &[&str],
    secrets: Vec<Secret>,
    variable: &dyn Fn(&str) -> Option<String>,
) -> PluginGrants {
    let rules = rules.iter().map(|rule| rule.parse().unwrap()).collect();
    PluginGrants::new(rules, &[], secrets, variable)
}

/// One call of a plugin.
struct Call {
    data: CallData,
    refusals: Refusals,
    grants: Arc<CurrentGrants>,
}

/// A response that was read to its end.
#[derive(Debug)]
struct Fetched {
    status: u16,
    headers: HeaderMap,
    body: Vec<u8>,
}

type Sent = (Response<WasiBody>, Box<dyn Future<Output = Result<(), Error>> + Send>);

impl Call {
    fn new(network: &Network, grants: PluginGrants, class: SideEffects) -> Self {
        Self::of(network, grants, class, b"a plugin")
    }

    fn of(network: &Network, grants: PluginGrants, class: SideEffects, plugin: &[u8]) -> Self {
        let account = Account::new(MemoryLimits { call: 128 << 20, total: u64::MAX });
        let refusals = Refusals::default();
        let call = PoweredCall::new(class, account, refusals.clone(), Digest::of(plugin));
        let grants = Arc::new(CurrentGrants::new(grants));
        Self { data: CallData::new(network, &grants, call), refusals, grants }
    }

    /// A call of class `network` with these rules.
    fn with_rules(network: &Network, rules: &[&str]) -> Self {
        Self::new(network, grants(rules), SideEffects::Network)
    }

    /// Sends a request and returns the head of its response, with the connection.
    async fn send(
        &mut self,
        request: Request<WasiBody>,
        options: RequestOptions,
    ) -> Result<Sent, Error> {
        let sent = Box::new(async { Ok(()) });
        Box::into_pin(self.data.hooks.send_request(request, Some(options), sent)).await
    }

    async fn fetch(&mut self, request: Request<WasiBody>) -> Result<Fetched, Error> {
        self.fetch_with(request, RequestOptions::default()).await
    }

    async fn fetch_with(
        &mut self,
        request: Request<WasiBody>,
        options: RequestOptions,
    ) -> Result<Fetched, Error> {
        let (response, connection) = self.send(request, options).await?;
        let (parts, mut body) = response.into_parts();
        let mut bytes = Vec::new();
        while let Some(frame) = body.frame().await {
            if let Ok(data) = frame?.into_data() {
                bytes.extend_from_slice(&data);
            }
        }
        drop(connection);
        Ok(Fetched { status: parts.status.as_u16(), headers: parts.headers, body: bytes })
    }

    async fn get(&mut self, url: &str) -> Result<Fetched, Error> {
        self.fetch(request("GET", url)).await
    }

    /// Returns the code of the first refusal.
    fn refusal(&self) -> String {
        let shown = format!("{:?}", self.refusals);
        let reason = shown.split_once(", advice: ").map_or(shown.as_str(), |(reason, _)| reason);
        let code = reason.rsplit_once('(').map(|(_, code)| code);
        code.and_then(|code| code.split_once(')'))
            .map_or(shown.clone(), |(code, _)| code.to_owned())
    }
}

fn request(method: &str, url: &str) -> Request<WasiBody> {
    request_with(method, url, Bytes::new())
}

fn request_with(method: &str, url: &str, body: Bytes) -> Request<WasiBody> {
    let body = Full::new(body).map_err(|never| match never {}).boxed_unsync();
    Request::builder().method(method).uri(url).body(body).unwrap()
}
