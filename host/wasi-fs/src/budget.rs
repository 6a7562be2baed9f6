//! The host's resources that file systems draw on: file descriptors, and memory of change logs.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// The host's resources that any number of file systems share, such as all calls of one plugin.
///
/// Each successful [`take_descriptor`](Self::take_descriptor) is followed by one
/// [`return_descriptor`](Self::return_descriptor), on any thread, and each
/// [`hold_memory`](Self::hold_memory) by calls of [`release_memory`](Self::release_memory) with the
/// same sum.
pub trait ResourceBudget: fmt::Debug + Send + Sync {
    /// Takes one file descriptor, which the guest then opens.
    ///
    /// # Errors
    ///
    /// [`NoDescriptor`] if the budget is used up. The guest gets a quota error, and
    /// [`Exhausted::OpenFiles`](crate::Exhausted::OpenFiles) is recorded.
    fn take_descriptor(&self) -> Result<(), NoDescriptor>;

    /// Returns one file descriptor, after the guest has closed it.
    fn return_descriptor(&self);

    /// Counts memory that a change log has begun to use, in bytes. It cannot be refused; each log
    /// is bounded by itself.
    fn hold_memory(&self, bytes: u64) {
        let _ = bytes;
    }

    /// Counts memory that a change log has released, in bytes.
    fn release_memory(&self, bytes: u64) {
        let _ = bytes;
    }
}

/// The error of a budget without a free file descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("all {limit} file descriptors in use")]
pub struct NoDescriptor {
    /// The number of descriptors that are held already.
    pub limit: u64,
}

/// A fixed number of file descriptors. Memory is not counted.
#[derive(Debug)]
pub struct DescriptorLimit {
    limit: u64,
    held: AtomicU64,
}

impl DescriptorLimit {
    /// 256: a quarter of what a process may usually open (1,024).
    pub const DEFAULT: u64 = 256;

    /// Creates a budget of this many file descriptors.
    pub const fn new(limit: u64) -> Self {
        Self { limit, held: AtomicU64::new(0) }
    }
}

impl Default for DescriptorLimit {
    fn default() -> Self {
        Self::new(Self::DEFAULT)
    }
}

impl ResourceBudget for DescriptorLimit {
    fn take_descriptor(&self) -> Result<(), NoDescriptor> {
        let more = |held: u64| (held < self.limit).then(|| held.saturating_add(1));
        let taken = self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        taken.map(|_| ()).map_err(|limit| NoDescriptor { limit })
    }

    fn return_descriptor(&self) {
        self.held.fetch_sub(1, Ordering::Relaxed);
    }
}
