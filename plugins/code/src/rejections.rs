//! Promises that a program rejects and that nothing handles: such a program has failed, though it
//! went on.

use boa_engine::builtins::promise::{OperationType, PromiseState};
use boa_engine::context::HostHooks;
use boa_engine::object::builtins::JsPromise;
use boa_engine::{Context, JsError, JsObject};
use std::cell::RefCell;

/// The most promises that are kept. One is enough for a program to have failed.
const MOST: usize = 64;

/// The rejected promises that nothing handles so far.
#[derive(Default)]
pub(crate) struct Rejections(RefCell<Vec<JsObject>>);

impl Rejections {
    /// Returns the reason of the first one.
    pub(crate) fn unhandled(&self) -> Option<JsError> {
        let promise = self.0.borrow().first().cloned()?;
        match JsPromise::from_object(promise).ok()?.state() {
            PromiseState::Rejected(reason) => Some(JsError::from_opaque(reason)),
            PromiseState::Pending | PromiseState::Fulfilled(_) => None,
        }
    }
}

impl HostHooks for Rejections {
    fn promise_rejection_tracker(
        &self,
        promise: &JsObject,
        operation: OperationType,
        _context: &mut Context,
    ) {
        let mut rejected = self.0.borrow_mut();
        match operation {
            OperationType::Reject if rejected.len() < MOST => rejected.push(promise.clone()),
            OperationType::Reject => {}
            OperationType::Handle => rejected.retain(|other| !JsObject::equals(other, promise)),
        }
    }
}
