//! The resources with which a response is serialized: the memory account of its request, and the
//! turns of the plugin that it comes from.

use palisade::internal::{Account, Share, answer_turns};
use rmcp::model::Extensions;
use std::sync::{Arc, OnceLock};

/// The account and the turns of one response. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct ResponseResources {
    /// The memory account of the request.
    pub(crate) account: Account,
    turns: PluginTurns,
}

/// The turns of the plugin that a response comes from, once it is known. It travels in the
/// extensions of the request.
#[derive(Debug, Clone, Default)]
struct PluginTurns(Arc<OnceLock<Arc<Share>>>);

impl ResponseResources {
    /// Creates the resources of the response to a request with this account.
    pub(crate) fn new(account: Account) -> Self {
        Self { account, turns: PluginTurns::default() }
    }

    /// Attaches the resources to a request.
    pub(crate) fn attach(&self, extensions: &mut Extensions) {
        extensions.insert(self.account.clone());
        extensions.insert(self.turns.clone());
    }

    /// Returns the turns of the response's plugin, or the host's own.
    pub(crate) fn turns(&self) -> &Arc<Share> {
        self.turns.0.get().unwrap_or_else(|| answer_turns())
    }
}

/// Records that the response to a request comes from the plugin with these turns.
pub(crate) fn set_plugin_turns(request: &Extensions, turns: &Arc<Share>) {
    if let Some(PluginTurns(own)) = request.get() {
        let _ = own.set(turns.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use palisade::internal::{MemoryLimits, Pool};
    use palisade::tool::Digest;

    #[test]
    fn answer_uses_the_turns_of_its_plugin() {
        let resources = ResponseResources::new(Account::new(MemoryLimits { call: 1, total: 1 }));
        let mut extensions = Extensions::new();
        let plugin = Pool::new(1).share(Digest::of(b"a plugin"));
        resources.attach(&mut extensions);
        assert!(Arc::ptr_eq(resources.turns(), answer_turns()));
        set_plugin_turns(&extensions, &plugin);
        assert!(Arc::ptr_eq(resources.turns(), &plugin));
        assert!(extensions.get::<Account>().is_some());
    }
}
