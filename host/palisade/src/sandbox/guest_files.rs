//! The resources that the file systems of all calls of one plugin share.

use crate::execution::OwnerShares;
use crate::execution::account::{hold_always, release_always};
use crate::execution::share::Share;
use palisade_wasi_fs::{NoDescriptor, ResourceBudget};
use std::sync::Arc;

/// A plugin's share of the file descriptors for guests. The memory of change logs counts towards
/// the process's total.
#[derive(Debug)]
pub(crate) struct GuestFiles {
    descriptors: Arc<Share>,
}

impl GuestFiles {
    /// Returns the resources of an owner.
    pub(crate) fn new(owner: &OwnerShares) -> Arc<Self> {
        Arc::new(Self { descriptors: owner.descriptors.clone() })
    }
}

impl ResourceBudget for GuestFiles {
    fn take_descriptor(&self) -> Result<(), NoDescriptor> {
        self.descriptors.take_unit().map_err(|full| NoDescriptor { limit: full.bound })
    }

    fn return_descriptor(&self) {
        self.descriptors.return_unit();
    }

    fn hold_memory(&self, bytes: u64) {
        hold_always(bytes);
    }

    fn release_memory(&self, bytes: u64) {
        release_always(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execution::share::Pool;
    use crate::tool::Digest;

    #[test]
    fn one_plugin_leaves_descriptors_to_another() {
        let pool = Pool::new(4);
        let plugin = |name: &[u8]| GuestFiles { descriptors: pool.share(Digest::of(name)) };
        let (one, other) = (plugin(b"one"), plugin(b"other"));
        assert_eq!([one.take_descriptor(), one.take_descriptor()], [Ok(()); 2]);
        assert_eq!(one.take_descriptor(), Err(NoDescriptor { limit: 2 }));
        assert_eq!((other.take_descriptor(), pool.held()), (Ok(()), 3));
        other.return_descriptor();
        one.return_descriptor();
        assert_eq!((one.take_descriptor(), pool.held()), (Ok(()), 2));
    }
}
