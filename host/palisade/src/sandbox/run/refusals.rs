//! The refusals of powers in one call.

use crate::tool::Advice;
use crate::tool::text::{elided, visible};
use std::sync::{Arc, Mutex, PoisonError};

/// The length of a refusal and of its advice, in bytes each.
const REFUSAL: usize = 1 << 10;

/// The refusals of powers in one call. The first one explains a failure of the tool, because the
/// guest itself sees only a code.
#[derive(Debug, Clone, Default)]
pub struct Refusals(Arc<Mutex<Option<PowerRefused>>>);

/// A refusal of a power.
#[derive(Debug, Clone)]
pub(crate) struct PowerRefused {
    /// The refused operation and the reason, for a model.
    pub(crate) reason: String,
    /// The remedy, for the operator.
    pub(crate) advice: Option<Advice>,
}

impl Refusals {
    /// Notes a refusal: its reason, for a model, and the advice for the operator, which no model
    /// reads. The texts must not contain a secret.
    pub fn note(&self, reason: &str, advice: Option<&str>) {
        let shown = |text: &str| elided(&visible(text), REFUSAL);
        let mut first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert_with(|| PowerRefused {
            reason: shown(reason),
            advice: advice.map(|advice| Advice::new(shown(advice))),
        });
    }

    /// Returns the first refusal.
    pub(crate) fn first(&self) -> Option<PowerRefused> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
