//! The settings of single plugins of a run.

use super::exit::Failure;
use crate::config::Settings;
use palisade::HostBuilder;

/// Adds the settings of single plugins to a host.
///
/// # Errors
///
/// A usage error that names the plugin, if a setting is refused.
pub(super) fn add_to(base: HostBuilder, settings: &Settings) -> Result<HostBuilder, Failure> {
    settings.plugins.iter().try_fold(base, |host, (name, plugin)| {
        let own = plugin.settings(settings.memory.value);
        let own = own.map_err(|error| Failure::usage(format!("`plugins.{name}`: {error}")))?;
        Ok(host.plugin_settings(name, own))
    })
}
