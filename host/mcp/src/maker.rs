//! The resources with which a response is serialized: the memory account of its request, and the
//! turns of the plugin that it comes from.

use palisade::internal::{Account, Share, answer_turns};
use rmcp::model::Extensions;
use std::sync::{Arc, OnceLock};

/// The account and the turns of one response. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct Maker {
    pub(super) account: Account,
    owner: Owner,
}

/// The turns of the plugin that a response comes from, once it is known. It travels in the
/// extensions of the request.
#[derive(Debug, Clone, Default)]
struct Owner(Arc<OnceLock<Arc<Share>>>);

impl Maker {
    /// Creates the maker of the response to a request with this account.
    pub(super) fn new(account: Account) -> Self {
        Self { account, owner: Owner::default() }
    }

    /// Attaches the account and the place of the turns to a request.
    pub(super) fn attach(&self, extensions: &mut Extensions) {
        extensions.insert(self.account.clone());
        extensions.insert(self.owner.clone());
    }

    /// Returns the turns of the response's plugin, or the host's own.
    pub(super) fn turns(&self) -> &Arc<Share> {
        self.owner.0.get().unwrap_or_else(|| answer_turns())
    }
}

/// Records that the response to a request comes from the plugin with these turns.
pub(super) fn comes_from(request: &Extensions, turns: &Arc<Share>) {
    if let Some(Owner(owner)) = request.get() {
        let _ = owner.set(turns.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use palisade::internal::{MemoryLimits, Pool};
    use palisade::tool::Digest;

    #[test]
    fn answer_uses_the_turns_of_its_plugin() {
        let maker = Maker::new(Account::new(MemoryLimits { call: 1, total: 1 }));
        let mut extensions = Extensions::new();
        let plugin = Pool::new(1).share(Digest::of(b"a plugin"));
        maker.attach(&mut extensions);
        assert!(Arc::ptr_eq(maker.turns(), answer_turns()));
        comes_from(&extensions, &plugin);
        assert!(Arc::ptr_eq(maker.turns(), &plugin));
        assert!(extensions.get::<Account>().is_some());
    }
}
