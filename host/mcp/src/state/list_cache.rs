//! The items of lists in the form of the protocol. Each tool and each plugin is converted once, and
//! what is kept counts towards the memory of the process for as long as it is kept.

use palisade::internal::Owed;
use palisade::plugins::Plugin;
use palisade::registry::Registered;
use palisade::tool::Digest;
use rmcp::model::{Prompt, Resource, ResourceTemplate, Tool};
use serde::Serialize;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// An item of a list.
#[derive(Debug)]
pub(crate) struct ListItem<T> {
    /// The item.
    pub(crate) item: T,
    /// The length of its JSON, in bytes.
    pub(crate) length: usize,
    /// The hash of its JSON.
    pub(crate) hash: blake3::Hash,
}

impl<T: Serialize> ListItem<T> {
    /// Measures an item.
    pub(crate) fn new(item: T) -> Self {
        // Serialization fails only for maps with keys that are not strings, and no item has such.
        let json = serde_json::to_vec(&item).unwrap_or_default();
        Self { item, length: json.len(), hash: blake3::hash(&json) }
    }
}

/// A tool, as it is listed in each lifecycle.
#[derive(Debug)]
pub(crate) struct ListedTool {
    /// Its form in the stateful lifecycle.
    pub(crate) stateful: ListItem<Tool>,
    /// Its form in the stateless lifecycle.
    pub(crate) stateless: ListItem<Tool>,
    /// Whether clients repeat parameters of the tool in headers.
    pub(crate) header_parameters: HeaderParameters,
    /// The memory of both forms.
    #[expect(dead_code, reason = "counts for as long as it lives")]
    pub(crate) memory: Owed,
}

/// Whether clients repeat parameters of a tool in headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeaderParameters {
    /// The schema names headers.
    Some,
    /// The schema names no header.
    None,
}

/// The resources and prompts of a plugin, as they are listed.
#[derive(Debug)]
pub(crate) struct ListedOffer {
    /// The resources.
    pub(crate) resources: Vec<ListItem<Resource>>,
    /// The resource templates.
    pub(crate) templates: Vec<ListItem<ResourceTemplate>>,
    /// The prompts.
    pub(crate) prompts: Vec<ListItem<Prompt>>,
    /// The memory of all of them.
    #[expect(dead_code, reason = "counts for as long as it lives")]
    pub(crate) memory: Owed,
}

/// A tool that was converted. `None` if it cannot be listed.
type KnownTool = (Weak<Registered>, Option<Arc<ListedTool>>);

/// The converted items of a server.
#[derive(Default)]
pub(crate) struct ListCache {
    /// By address, which is not used again while a weak reference exists.
    tools: Mutex<HashMap<usize, KnownTool>>,
    /// By the digest of the plugin, from which its offer follows.
    offers: Mutex<HashMap<Digest, Arc<ListedOffer>>>,
}

impl ListCache {
    /// Returns the tool, if it was converted. The inner value is `None` if it cannot be listed.
    pub(crate) fn known_tool(&self, tool: &Arc<Registered>) -> Option<Option<Arc<ListedTool>>> {
        lock(&self.tools).get(&address(tool)).map(|(_, listed)| listed.clone())
    }

    /// Returns the tool, converting it if necessary.
    pub(crate) fn tool(
        &self,
        tool: &Arc<Registered>,
        convert: impl FnOnce(&Registered) -> Option<ListedTool>,
    ) -> Option<Arc<ListedTool>> {
        if let Some(known) = self.known_tool(tool) {
            return known;
        }
        // Outside of the lock, since it may take long.
        let listed = convert(tool).map(Arc::new);
        let mut tools = lock(&self.tools);
        tools.retain(|_, (known, _)| known.strong_count() > 0);
        tools.insert(address(tool), (Arc::downgrade(tool), listed.clone()));
        listed
    }

    /// Returns the offer of a plugin, if it was converted.
    pub(crate) fn known_offer(&self, plugin: &Plugin) -> Option<Arc<ListedOffer>> {
        lock(&self.offers).get(&plugin.digest()).cloned()
    }

    /// Returns the offers of all plugins, converting them if necessary. Those of plugins that are
    /// gone are dropped.
    pub(crate) fn offers(
        &self,
        plugins: &[Plugin],
        convert: impl Fn(&Plugin) -> ListedOffer,
    ) -> Vec<Arc<ListedOffer>> {
        let offer = |plugin: &Plugin| {
            self.known_offer(plugin).unwrap_or_else(|| {
                let listed = Arc::new(convert(plugin));
                lock(&self.offers).insert(plugin.digest(), listed.clone());
                listed
            })
        };
        let listed = plugins.iter().map(offer).collect();
        let digests: HashSet<Digest> = plugins.iter().map(Plugin::digest).collect();
        lock(&self.offers).retain(|digest, _| digests.contains(digest));
        listed
    }
}

fn address(tool: &Arc<Registered>) -> usize {
    Arc::as_ptr(tool).addr()
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use palisade::registry::Registry;
    use palisade::{
        BoxFuture, Definition, ErrorKind, Factory, SideEffects, ToolContext, ToolOutput, ValidInput,
    };
    use serde_json::json;
    use std::cell::Cell;

    struct Native(Definition);

    impl palisade::Tool for Native {
        fn definition(&self) -> &Definition {
            &self.0
        }

        fn execute<'a>(
            &'a self,
            _: ValidInput,
            _: &'a ToolContext,
        ) -> BoxFuture<'a, Result<ToolOutput, ErrorKind>> {
            Box::pin(async { Ok(ToolOutput::text("")) })
        }
    }

    fn registry(names: [&'static str; 2]) -> Registry {
        let registry = Registry::new();
        for name in names {
            let schema = json!({"type": "object"});
            let definition = Definition::new(name, "A tool.", SideEffects::None, schema).unwrap();
            let factory: Factory = Arc::new(move || Box::new(Native(definition.clone())));
            registry.register(factory).unwrap();
        }
        registry
    }

    #[test]
    fn tool_is_converted_once_and_kept_as_long_as_it_lives() {
        let registry = registry(["one", "two"]);
        let cache = ListCache::default();
        let conversions = Cell::new(0);
        let list = |registry: &Registry| {
            for tool in registry.tools() {
                let _ = cache.tool(&tool, |_| {
                    conversions.set(conversions.get() + 1);
                    None
                });
                assert!(cache.known_tool(&tool).is_some());
            }
        };
        list(&registry);
        list(&registry);
        assert_eq!(conversions.get(), 2);
        registry.unregister("two").unwrap();
        list(&registry);
        assert_eq!(conversions.get(), 2, "the other tool is the same");
        list(&self::registry(["three", "four"]));
        assert_eq!((conversions.get(), lock(&cache.tools).len()), (4, 3));
    }
}
