//! Resource subscriptions, with the code that served each resource when it was last checked.

use crate::protocol::methods::MAX_SUBSCRIPTIONS;
use palisade::internal::Owed;
use palisade::tool::Digest;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The maximum length of a subscribed URI, in bytes.
const MAX_URI: usize = 2 << 10;

/// The memory of a subscription besides its URI, in bytes, with the free places of the table.
const ENTRY: usize = 2 * size_of::<(String, Subscription)>();

/// The subscriptions of a client.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions(Mutex<HashMap<String, Subscription>>);

/// A subscription.
#[derive(Debug)]
struct Subscription {
    /// The code that served the resource when it was last checked.
    code: Option<Digest>,
    /// The memory of the entry.
    #[expect(dead_code, reason = "counts for as long as it lives")]
    memory: Owed,
}

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
                entry.insert(Subscription { code, memory: Owed::new(ENTRY + uri.len()) });
                Ok(())
            }
            Entry::Vacant(_) => Err(SubscriptionsFull),
        }
    }

    /// Removes a subscription. Returns true if there was one.
    pub(crate) fn remove(&self, uri: &str) -> bool {
        self.all().remove(uri).is_some()
    }

    /// Returns the resources.
    pub(crate) fn uris(&self) -> Vec<String> {
        self.all().keys().cloned().collect()
    }

    /// Records the code that serves these resources now, and returns those whose code has changed
    /// since the last time.
    pub(crate) fn update(&self, current: Vec<(String, Option<Digest>)>) -> Vec<String> {
        let mut all = self.all();
        let mut is_changed = |(uri, now): &(String, Option<Digest>)| {
            all.get_mut(uri).is_some_and(|known| mem::replace(&mut known.code, *now) != *now)
        };
        let mut changed: Vec<_> = current.into_iter().filter(|it| is_changed(it)).collect();
        changed.sort_unstable();
        changed.into_iter().map(|(uri, _)| uri).collect()
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, Subscription>> {
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
        let changed = |now| subscriptions.update(vec![("a:1".to_owned(), now)]);
        assert_eq!(changed(code("one")), [""; 0]);
        assert_eq!(changed(code("two")), ["a:1"]);
        assert_eq!(changed(code("two")), [""; 0]);
        assert_eq!(changed(None), ["a:1"]);
        assert_eq!(subscriptions.uris(), ["a:1"]);
        assert!(subscriptions.remove("a:1") && !subscriptions.remove("a:1"));
        assert_eq!(changed(code("three")), [""; 0]);
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
