//! The refusals of powers in one call.

use crate::tool::text::{elided, visible};
use std::sync::{Arc, Mutex, PoisonError};

/// The length of a refusal, in bytes.
const REFUSAL: usize = 1 << 10;

/// The refusals of powers in one call. The first one explains a failure of the tool, because the
/// guest itself sees only a code.
#[derive(Debug, Clone, Default)]
pub struct Refusals(Arc<Mutex<Option<String>>>);

impl Refusals {
    /// Notes a refusal. The text must not contain a secret.
    pub fn note(&self, refusal: &str) {
        let mut first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert_with(|| elided(&visible(refusal), REFUSAL));
    }

    /// Returns the first refusal.
    pub(crate) fn first(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
