//! Resource subscriptions, with the code that served each resource when it was last checked.

use palisade::tool::Digest;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The maximum number of subscriptions of a client. A plugin with templates has any number of
/// resources.
const MAX_SUBSCRIPTIONS: usize = 256;
/// The maximum length of a subscribed URI, in bytes.
const MAX_URI: usize = 2 << 10;

/// The subscriptions of a client.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions(Mutex<HashMap<String, Option<Digest>>>);

/// The error of a subscription beyond the limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a client can subscribe to at most {MAX_SUBSCRIPTIONS} resources, with URIs of at most {MAX_URI} bytes; unsubscribe from some"
)]
pub(crate) struct SubscriptionsFull;

impl Subscriptions {
    /// Adds a subscription to a resource that this code serves now.
    pub(crate) fn add(&self, uri: &str, code: Option<Digest>) -> Result<(), SubscriptionsFull> {
        let mut all = self.all();
        let is_full = all.len() >= MAX_SUBSCRIPTIONS;
        match all.entry(uri.to_owned()) {
            Entry::Occupied(_) => Ok(()),
            Entry::Vacant(entry) if !is_full && uri.len() <= MAX_URI => {
                entry.insert(code);
                Ok(())
            }
            Entry::Vacant(_) => Err(SubscriptionsFull),
        }
    }

    /// Removes a subscription. Returns true if there was one.
    pub(crate) fn remove(&self, uri: &str) -> bool {
        self.all().remove(uri).is_some()
    }

    /// Returns the resources whose code has changed since the last check.
    pub(crate) fn changed(&self, current: impl Fn(&str) -> Option<Digest>) -> Vec<String> {
        let mut changed = Vec::new();
        for (uri, known) in self.all().iter_mut() {
            let now = current(uri);
            if now != *known {
                *known = now;
                changed.push(uri.clone());
            }
        }
        changed.sort_unstable();
        changed
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, Option<Digest>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> Option<Digest> {
        Some(Digest::of(text.as_bytes()))
    }

    #[test]
    fn subscriber_is_notified_once_per_code_change() {
        let subscriptions = Subscriptions::default();
        assert_eq!(subscriptions.add("a:1", code("one")), Ok(()));
        assert_eq!(
            subscriptions.add("a:1", code("other")),
            Ok(()),
            "who subscribes twice has heard of nothing since"
        );
        assert_eq!(subscriptions.changed(|_| code("one")), [""; 0]);
        assert_eq!(subscriptions.changed(|_| code("two")), ["a:1"]);
        assert_eq!(subscriptions.changed(|_| code("two")), [""; 0]);
        assert_eq!(subscriptions.changed(|_| None), ["a:1"]);
        assert!(subscriptions.remove("a:1") && !subscriptions.remove("a:1"));
        assert_eq!(subscriptions.changed(|_| code("three")), [""; 0]);
    }

    #[test]
    fn subscriptions_are_bounded_in_number_and_length() {
        let subscriptions = Subscriptions::default();
        assert_eq!(subscriptions.add(&"a".repeat(MAX_URI + 1), None), Err(SubscriptionsFull));
        assert_eq!(subscriptions.add(&"a".repeat(MAX_URI), None), Ok(()));
        assert!(
            (1..MAX_SUBSCRIPTIONS)
                .all(|number| subscriptions.add(&number.to_string(), None).is_ok())
        );
        assert_eq!(subscriptions.add("one more", None), Err(SubscriptionsFull));
        assert_eq!(subscriptions.add("1", None), Ok(()));
        subscriptions.remove("1");
        assert_eq!(subscriptions.add("one more", None), Ok(()));
    }
}
