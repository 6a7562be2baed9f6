//! Tests network grants from a guest to a server: what is not granted does not arrive, a call ends
//! in time whatever a server does, and no secret is seen.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[path = "net/changed.rs"]
mod changed;
#[path = "net/crash.rs"]
mod crash;
#[path = "net/ends.rs"]
mod ends;
#[path = "net/names.rs"]
mod names;
#[path = "net/fetch.rs"]
mod net_fetch;
#[path = "net/program.rs"]
mod program;
#[path = "net/secrets.rs"]
mod secrets;
#[path = "net/server.rs"]
mod server;
#[path = "net/web.rs"]
mod web;
#[path = "net/wishes.rs"]
mod wishes;

use palisade::tool::Digest;
use palisade::{HostBuilder, SideEffects, policy::Policy};
use palisade_net::{Grants, Network, PluginGrants, Secret};
use palisade_tests::guest::NET_FETCH;
use palisade_tests::{Stage, is_tested};
use std::sync::Arc;

palisade_tests::foreach_net!(is_tested);

/// The grants of the guest.
#[derive(Default)]
struct Granted<'a> {
    rules: &'a [&'a str],
    environment: &'a [&'a str],
    secrets: Vec<Secret>,
}

/// The variables of the host.
fn variable(name: &str) -> Option<String> {
    match name {
        "PLANTED" => Some(secrets::PLANTED.to_owned()),
        "GREETING" => Some("hello".to_owned()),
        _ => None,
    }
}

impl Granted<'_> {
    fn stage(self) -> Stage {
        self.stage_with(|builder| builder)
    }

    fn stage_with(self, change: impl FnOnce(HostBuilder) -> HostBuilder) -> Stage {
        let bytes = std::fs::read(NET_FETCH.file()).unwrap();
        let rules = self.rules.iter().map(|rule| rule.parse().unwrap()).collect();
        let environment: Vec<String> =
            self.environment.iter().map(|name| (*name).to_owned()).collect();
        let granted = PluginGrants::new(rules, &environment, self.secrets, &variable);
        let grants = Grants::new(Network::default()).plugin(Digest::of(&bytes), granted);
        Stage::new(&[NET_FETCH], |builder| {
            let policy = Policy::default().allowing(SideEffects::Network);
            change(builder.policy(policy).powers(Arc::new(grants)))
        })
    }
}
