//! Resource subscriptions, with the code that served each resource when it was last checked.

use palisade::tool::Digest;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The maximum number of subscriptions of a client. A plugin with templates has any number of
/// resources.
const MOST: usize = 256;
/// The maximum length of a subscribed URI, in bytes.
const NAME: usize = 2 << 10;

/// The subscriptions of a client.
#[derive(Debug, Default)]
pub(super) struct Documents(Mutex<HashMap<String, Option<Digest>>>);

/// The error of a subscription beyond the limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "{MOST} documents with names of at most {NAME} bytes can be subscribed to; unsubscribe from some"
)]
pub(super) struct Full;

impl Documents {
    /// Adds a subscription to a resource that this code serves now.
    pub(super) fn add(&self, uri: &str, code: Option<Digest>) -> Result<(), Full> {
        let mut all = self.all();
        let is_full = all.len() >= MOST;
        match all.entry(uri.to_owned()) {
            Entry::Occupied(_) => Ok(()),
            Entry::Vacant(place) if !is_full && uri.len() <= NAME => {
                place.insert(code);
                Ok(())
            }
            Entry::Vacant(_) => Err(Full),
        }
    }

    /// Removes a subscription. Returns true if there was one.
    pub(super) fn remove(&self, uri: &str) -> bool {
        self.all().remove(uri).is_some()
    }

    /// Returns the resources whose code has changed since the last check.
    pub(super) fn changed(&self, code: impl Fn(&str) -> Option<Digest>) -> Vec<String> {
        let mut changed = Vec::new();
        for (uri, known) in self.all().iter_mut() {
            let now = code(uri);
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
        let documents = Documents::default();
        assert_eq!(documents.add("a:1", code("one")), Ok(()));
        assert_eq!(
            documents.add("a:1", code("other")),
            Ok(()),
            "who subscribes twice has heard of nothing since"
        );
        assert_eq!(documents.changed(|_| code("one")), [""; 0]);
        assert_eq!(documents.changed(|_| code("two")), ["a:1"]);
        assert_eq!(documents.changed(|_| code("two")), [""; 0]);
        assert_eq!(documents.changed(|_| None), ["a:1"]);
        assert!(documents.remove("a:1") && !documents.remove("a:1"));
        assert_eq!(documents.changed(|_| code("three")), [""; 0]);
    }

    #[test]
    fn subscriptions_are_bounded_in_number_and_length() {
        let documents = Documents::default();
        assert_eq!(documents.add(&"a".repeat(NAME + 1), None), Err(Full));
        assert_eq!(documents.add(&"a".repeat(NAME), None), Ok(()));
        assert!((1..MOST).all(|number| documents.add(&number.to_string(), None).is_ok()));
        assert_eq!(documents.add("one more", None), Err(Full));
        assert_eq!(documents.add("1", None), Ok(()));
        documents.remove("1");
        assert_eq!(documents.add("one more", None), Ok(()));
    }
}
