//! Promises that a program rejects and that nothing handles: such a program has failed, though it
//! went on.

use boa_engine::builtins::promise::{OperationType, Promise, PromiseState};
use boa_engine::context::HostHooks;
use boa_engine::object::builtins::JsPromise;
use boa_engine::{Context, JsError, JsObject};
use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher};

/// The rejected promises that nothing handles so far.
#[derive(Default)]
pub(crate) struct Rejections(RefCell<Rejected>);

#[derive(Default)]
struct Rejected {
    /// The number of rejections so far.
    count: u64,
    /// Each promise with the number of its rejection. The keys of the hash are fixed: the engine is
    /// made when there is no host to ask for random ones.
    numbers: HashMap<JsObject, u64, BuildHasherDefault<DefaultHasher>>,
}

impl Rejections {
    /// Returns the reason of the first one.
    pub(crate) fn unhandled(&self) -> Option<JsError> {
        let rejected = self.0.borrow();
        let promise = rejected.numbers.iter().min_by_key(|(_, number)| **number)?.0.clone();
        match JsPromise::from_object(promise).ok()?.state() {
            PromiseState::Rejected(reason) => Some(JsError::from_opaque(reason)),
            PromiseState::Pending | PromiseState::Fulfilled(_) => None,
        }
    }
}

impl HostHooks for Rejections {
    fn promise_rejection_tracker(
        &self,
        promise: &JsObject<Promise>,
        operation: OperationType,
        _context: &mut Context,
    ) {
        let mut rejected = self.0.borrow_mut();
        match operation {
            OperationType::Reject => {
                rejected.count += 1;
                let number = rejected.count;
                rejected.numbers.insert(promise.clone().upcast(), number);
            }
            OperationType::Handle => {
                rejected.numbers.remove(&promise.clone().upcast());
            }
        }
    }
}
