//! A look at plugins that import `wasi:http` before they have a grant.

use super::args::Common;
use super::exit::Failure;
use super::grants;
use crate::config::Settings;
use palisade::HostBuilder;
use palisade::internal::{PluginPowers, Powers};
use palisade::tool::Digest;
use palisade_net::{Grants, Unconnected};
use std::sync::Arc;

/// The grants, and for the file of a plugin without any the interfaces with every request refused.
/// It is for subcommands that look at plugins and call none.
struct Looked(Grants);

impl Powers for Looked {
    fn of(&self, plugin: Digest) -> Option<Arc<dyn PluginPowers>> {
        let is_shipped =
            || palisade_plugins::all().iter().any(|it| Digest::from_bytes(it.digest) == plugin);
        self.0.of(plugin).or_else(|| if is_shipped() { None } else { Unconnected.of(plugin) })
    }
}

/// Adds the grants to a host, so that files without a grant describe themselves as well.
pub(super) fn add_to(
    base: HostBuilder,
    common: &Common,
    settings: &Settings,
) -> Result<HostBuilder, Failure> {
    Ok(base.powers(Arc::new(Looked(grants::all(common, &settings.network)?))))
}
