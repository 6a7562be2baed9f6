//! Network grants for the plugins of a [`palisade`] host: standard `wasi:http` to the hosts that an
//! operator names, and to no other address.
//!
//! Each request passes these steps: the URL is read strictly, a [`NetRule`] of the plugin must
//! allow its method, scheme, host and port, the name is resolved once, every address that is not
//! public is dropped (a rule may reach private ones), exactly the remaining addresses are connected
//! to, and headers, bodies, time and connections are bounded. A redirect is a response like any
//! other: the guest's next request is checked anew. [`Secret`]s are added after the check, and
//! removed from the responses.
//!
//! ```
//! use palisade::Host;
//! use palisade::tool::Digest;
//! use palisade_net::{Grants, Network, PluginGrants};
//! use std::sync::Arc;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let rules = vec!["GET,POST https://api.example.org".parse()?];
//! let granted = PluginGrants::new(rules, &[], Vec::new(), &|name| std::env::var(name).ok());
//! let grants = Grants::new(Network::default()).plugin(Digest::of(b"the plugin"), granted);
//! let builder = Host::builder().powers(Arc::new(grants));
//! # drop(builder);
//! # Ok(())
//! # }
//! ```

mod address;
mod body;
mod call;
mod connect;
mod current;
mod exchange;
mod grant_file;
mod guest_error;
mod head_bound;
mod host_name;
pub mod limits;
mod network;
mod plugin_grants;
mod powers;
mod redact;
mod refusal;
mod resolve;
mod rule;
mod secret;
mod send;
mod streamed;
mod target;
#[cfg(test)]
mod tests;
mod tls;
mod wishes;

pub use address::AddressKind;
pub use exchange::{Answer, Exchange, ExchangeError};
pub use grant_file::{Grant, GrantFile, GrantFileError, Holder, PluginEntry};
pub use host_name::{HostName, HostNameError};
pub use network::{Network, NetworkError};
pub use plugin_grants::PluginGrants;
pub use powers::{Grants, Unconnected};
pub use redact::REDACTED;
pub use refusal::NetRefused;
#[cfg(feature = "hickory")]
pub use resolve::NameServer;
pub use resolve::{Resolver, SystemResolver};
pub use rule::{HostPattern, NetRule, NetRuleError, Reach, RuleObstacle};
pub use secret::{Secret, SecretError, SecretValue, is_variable};
pub use streamed::Streamed;
pub use target::{Scheme, Target};
pub use wishes::{WISHES, WishFault, Wishes};
