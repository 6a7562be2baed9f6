//! The order in which kept answers are evicted. All owners share one bound, and the owner that
//! keeps most loses its oldest answer, so that no client evicts the answers of another.

use super::open_sessions::Owner;
use std::collections::{HashMap, VecDeque};

/// The kept answers of all owners, without the answers themselves.
#[derive(Debug)]
pub(super) struct Kept<K> {
    owners: HashMap<Owner, Answers<K>>,
    most: Bounds,
    held: Bounds,
}

/// A number of answers and their size in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) answers: usize,
    pub(super) bytes: usize,
}

/// The kept answers of one owner, the oldest first, each with its size.
#[derive(Debug)]
struct Answers<K> {
    oldest_first: VecDeque<(K, usize)>,
    bytes: usize,
}

impl<K: PartialEq> Kept<K> {
    /// Creates an empty order with these bounds.
    pub(super) fn new(most: Bounds) -> Self {
        Self { owners: HashMap::new(), most, held: Bounds::default() }
    }

    /// Adds an answer. Returns the keys of the answers that are given up for it.
    pub(super) fn add(&mut self, owner: &Owner, key: K, bytes: usize) -> Vec<K> {
        let new = || Answers { oldest_first: VecDeque::new(), bytes: 0 };
        let answers = self.owners.entry(owner.clone()).or_insert_with(new);
        answers.oldest_first.push_back((key, bytes));
        answers.bytes += bytes;
        self.held.answers += 1;
        self.held.bytes += bytes;
        std::iter::from_fn(|| self.give_up()).collect()
    }

    /// Removes an answer.
    pub(super) fn remove(&mut self, owner: &Owner, key: &K) {
        let Some(answers) = self.owners.get_mut(owner) else { return };
        if let Some(index) = answers.oldest_first.iter().position(|(kept, _)| kept == key) {
            self.remove_at(owner, index);
        }
    }

    /// Returns the oldest answer of each owner.
    pub(super) fn oldest(&self) -> impl Iterator<Item = &K> {
        self.owners.values().filter_map(|of| of.oldest_first.front()).map(|(key, _)| key)
    }

    /// Returns what is kept now.
    #[cfg(test)]
    pub(super) fn held(&self) -> Bounds {
        self.held
    }

    /// Removes one answer if a bound is exceeded.
    fn give_up(&mut self) -> Option<K> {
        let of = |answers: &Answers<K>| match self.held.bytes > self.most.bytes {
            true => answers.bytes,
            false => answers.oldest_first.len(),
        };
        if self.held.bytes <= self.most.bytes && self.held.answers <= self.most.answers {
            return None;
        }
        let (owner, _) = self.owners.iter().max_by_key(|(_, answers)| of(answers))?;
        let owner = owner.clone();
        self.remove_at(&owner, 0)
    }

    fn remove_at(&mut self, owner: &Owner, index: usize) -> Option<K> {
        let answers = self.owners.get_mut(owner)?;
        let (key, bytes) = answers.oldest_first.remove(index)?;
        answers.bytes -= bytes;
        if answers.oldest_first.is_empty() {
            self.owners.remove(owner);
        }
        self.held.answers -= 1;
        self.held.bytes -= bytes;
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owner_with_most_answers_gives_up_its_oldest() {
        let client = Owner::Client("c".into());
        let mut kept = Kept::new(Bounds { answers: 4, bytes: 100 });
        assert!(kept.add(&Owner::Operators, 0, 10).is_empty());
        for number in 1..4 {
            assert!(kept.add(&client, number, 1).is_empty());
        }
        assert_eq!(kept.add(&client, 4, 1), [1]);
        assert_eq!(kept.add(&client, 5, 90), [2, 3, 4], "not the answer of another");
        assert_eq!(kept.held(), Bounds { answers: 2, bytes: 100 });
        kept.remove(&Owner::Operators, &0);
        assert_eq!(kept.held(), Bounds { answers: 1, bytes: 90 });
    }
}
