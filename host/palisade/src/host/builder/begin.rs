//! Checks the values of a builder, and assembles the host from them.

use super::HostBuilder;
use crate::confirm::NoConfirmer;
use crate::dispatch::{CONFIRMATION_TIMEOUT, CallMode, CallThreads, Dispatcher, LateRules as _};
use crate::events::Events;
use crate::host::announce::announce;
use crate::host::recorded::RecordedPaths;
use crate::host::{BuildError, Host, cache, times};
use crate::plugins::{AllApproved, Loading, Shipped, Sources, Task, reserved};
use crate::registry::Registry;
use crate::sandbox::{Limits, PluginSettings, Sandbox, limits};
use crate::workspace::{ProtectedTree, Protection, Reading, Workspace};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

impl HostBuilder {
    /// Opens the workspace and loads the cached plugins, without compiling any.
    pub(super) fn begin(self) -> Result<Host, BuildError> {
        check(&self.limits, &self.plugin_settings)?;
        self.session.check()?;
        times::check(self.confirmation_timeout, &self.tool_timeouts, &self.compiler)?;
        let (registry, sources) = tools(self.registry, self.sources)?;
        let [threads, nested_threads] = [threads(self.call_mode)?, threads(self.call_mode)?];
        let workspace = self.workspace.unwrap_or_else(|| PathBuf::from("."));
        let workspace = Arc::new(match &threads {
            None => Workspace::open(&workspace)?,
            Some(_) => Workspace::open_within(workspace, limits::OPENING)?,
        });
        let cache = cache::open(&self.cache, &workspace)?;
        let hidden = cache::always_hidden(&self.cache, &cache);
        let late_rules = Arc::new(RecordedPaths::new(hidden, self.hard_links));
        let trees = protected_trees(self.protected, &sources, &registry)?;
        registry.protect(trees.clone());
        let rules = Arc::new(Protection::new(self.hard_links, trees).with_paths(self.path_rules));
        workspace.keep_rules_of(&rules);
        // Run early to speed up the first call, which repeats it and reports its error.
        let _ = late_rules.apply_to(&workspace);
        let sandbox = Sandbox::new(cache)?
            .with_compiler(self.compiler)
            .with_strategy(self.compile_strategy)
            .with_total_memory(self.limits.total_memory)
            .with_powers(self.powers);
        let observer = self.observer.unwrap_or_else(|| Arc::new(|_| {}));
        let events = Events::new(self.subscribers);
        let own_events = events.clone();
        let has_approvals = self.approvals.is_some();
        let task = Task {
            sources,
            sandbox: sandbox.clone(),
            limits: self.limits,
            settings: self.plugin_settings,
            registry: registry.clone(),
            observer,
            approvals: self.approvals.unwrap_or_else(|| Arc::new(AllApproved)),
            hard_links: self.hard_links,
            on_change: Box::new(move |change| announce(&own_events, change)),
        };
        let loading = Loading::begin(task, &self.native)?;
        let floor = self.session.floor();
        let dispatcher = Dispatcher {
            floor: floor.clone(),
            registry,
            compiling: Arc::new(loading.names_of_compiling()),
            unapproved: Arc::new(loading.unapproved_with()),
            revoked_since: has_approvals.then(|| loading.revoked_since()),
            confirmer: self.confirmer.unwrap_or_else(|| Arc::new(NoConfirmer)),
            events,
            recorder: self.recorder,
            limits: self.limits,
            tool_timeouts: Arc::new(self.tool_timeouts),
            confirmation_timeout: self.confirmation_timeout.unwrap_or(CONFIRMATION_TIMEOUT),
            threads,
            nested_threads,
            rules,
            commands: self.commands,
            late_rules,
            places: self.places.into(),
        };
        let session = self.session.begin(&workspace, &floor).independent_calls().build();
        Ok(Host {
            dispatcher,
            session,
            defaults: self.session,
            sandbox,
            loading,
            exports: Default::default(),
            callees: Default::default(),
            sessions: Default::default(),
        })
    }
}

/// Returns the registry of the host, and the plugins to load into it.
fn tools(given: Option<Registry>, sources: Sources) -> Result<(Registry, Sources), BuildError> {
    let Some(registry) = given else { return Ok((Registry::new(), sources)) };
    if !sources.is_without_files() {
        return Err(BuildError::RegistryWithPlugins);
    }
    Ok((registry, Sources { shipped: Shipped::LeftOut, ..sources }))
}

/// Returns what is protected in every workspace: the embedder's paths, the plugin locations, and
/// what the hosts protect whose tools the registry has.
fn protected_trees(
    named: Vec<(PathBuf, Reading)>,
    sources: &Sources,
    registry: &Registry,
) -> Result<Vec<Arc<ProtectedTree>>, BuildError> {
    let single = sources.single_files().map(Path::to_owned);
    let plugins = sources.directories.iter().cloned().chain(single).chain(sources.elsewhere());
    let plugins = plugins.map(|path| (path, Reading::Allowed));
    let mut trees = registry.protected();
    for (path, reading) in named.into_iter().chain(plugins) {
        match ProtectedTree::open(&path, reading) {
            Ok(tree) => trees.push(Arc::new(tree)),
            Err(source) => return Err(BuildError::Protected { path, source }),
        }
    }
    Ok(trees)
}

fn check(
    given: &Limits,
    plugins: &BTreeMap<String, Arc<PluginSettings>>,
) -> Result<(), BuildError> {
    if !(1 << 20..=limits::MAX_MEMORY).contains(&given.memory) {
        return Err(BuildError::Limit { name: "memory", accepted: "1MiB to 512MiB are accepted" });
    }
    let of_plugins = plugins.values().filter_map(|settings| settings.memory());
    let largest = of_plugins.fold(given.memory, u64::max);
    if !(largest..=limits::MAX_TOTAL_MEMORY).contains(&given.total_memory) {
        let accepted = "at least the memory of one call and at most 16TiB are accepted";
        return Err(BuildError::Limit { name: "total_memory", accepted });
    }
    for (plugin, settings) in plugins {
        if let Some(setting) =
            settings.not_for_shipped().filter(|_| reserved::tools_of(plugin).is_some())
        {
            return Err(BuildError::ShippedPlugin { plugin: plugin.clone(), setting });
        }
    }
    match given.timeout {
        Some(timeout) if timeout < Duration::from_millis(1) || timeout > limits::MAX_TIMEOUT => {
            Err(BuildError::Limit { name: "timeout", accepted: "1ms to 600s are accepted" })
        }
        _ => Ok(()),
    }
}

fn threads(mode: CallMode) -> Result<Option<Arc<CallThreads>>, BuildError> {
    let CallMode::OwnThreads { threads, lost } = mode else { return Ok(None) };
    if !(1..=limits::LIVE_SANDBOXES).contains(&threads) {
        return Err(BuildError::Limit { name: "threads", accepted: "1 to 256 are accepted" });
    }
    if !(1..=limits::MAX_LOST_THREADS).contains(&lost) {
        return Err(BuildError::Limit { name: "lost_threads", accepted: "1 to 128 are accepted" });
    }
    Ok(Some(Arc::new(CallThreads::new(threads, lost))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::CacheMode;

    #[test]
    fn numbers_of_concurrent_calls_are_checked() {
        let host = || Host::builder().cache(CacheMode::Off);
        for (builder, name) in [
            (host().concurrency(0), "concurrency"),
            (host().concurrency(257), "concurrency"),
            (host().tool_concurrency("calculate", 0), "tool_concurrency"),
        ] {
            let refused = builder.build().map(drop);
            assert!(
                matches!(&refused, Err(BuildError::Limit { name: limit, .. }) if *limit == name),
                "{refused:?}"
            );
        }
        assert!(host().concurrency(1).tool_concurrency("calculate", 256).build().is_ok());
    }
}
