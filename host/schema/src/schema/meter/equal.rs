//! Equality as defined by JSON Schema, metered in steps so that a long comparison can be stopped.
//!
//! The validator's own comparison cannot be stopped, and its hash of an object is predictable: an
//! array of objects with equal hashes takes quadratic time. The same holds for large integers,
//! which it hashes as rounded floats.

use std::collections::HashSet;
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher, RandomState};

use jsonschema::json::cmp;
use serde_json::{Map, Number, Value};

use super::account::{Reserved, may_enter, spend, step};
use super::{in_bytes, in_lookup};

/// The maximum number of elements that are compared pairwise, which is faster than hashing for few.
const FEW: usize = 15;
/// The memory of an element in the hash set, in bytes, including the set's free slots.
const SEEN_BYTES: u64 = 64;
/// The steps of hashing an element and looking it up in a large set: 250 ns among a million
/// (measured, optimised).
const SEEN_STEPS: u64 = 7;

/// Returns whether two values are equal. Also false if the account is empty.
pub(super) fn same(left: &Value, right: &Value, depth: usize) -> bool {
    match (left, right) {
        (Value::String(left), Value::String(right)) => {
            left.len() == right.len() && spend(|_| in_bytes(left.len())) && left == right
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len()
                && step()
                && may_enter(depth)
                && left.iter().zip(right).all(|(left, right)| same(left, right, depth + 1))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && step()
                && may_enter(depth)
                && same_members(left, right, depth + 1)
        }
        _ => step() && cmp::equal(left, right),
    }
}

fn same_members(left: &Map<String, Value>, right: &Map<String, Value>, depth: usize) -> bool {
    // Both iterate in key order, unless another crate of the build enables unsorted maps.
    left.iter().zip(right).all(|((name, value), (other_name, other))| {
        let other = if spend(|_| in_bytes(name.len())) && name == other_name {
            Some(other)
        } else {
            spend(|_| in_lookup(name.len(), right.len())).then(|| right.get(name)).flatten()
        };
        other.is_some_and(|other| same(value, other, depth))
    })
}

/// Returns whether all elements differ. Also false if the account is empty.
pub(super) fn all_differ(elements: &[Value], depth: usize) -> bool {
    if elements.len() <= FEW {
        let mut rest = elements;
        while let Some((first, others)) = rest.split_first() {
            if !others.iter().all(|other| step() && !same(first, other, depth)) {
                return false;
            }
            rest = others;
        }
        return true;
    }
    let bytes = SEEN_BYTES.saturating_mul(elements.len() as u64);
    // The allocation initialises part of its memory.
    if !spend(|_| in_bytes(elements.len())) {
        return false;
    }
    let Some(_reserved) = Reserved::new(bytes) else { return false };
    let keys = RandomState::new();
    let mut seen =
        HashSet::with_capacity_and_hasher(elements.len(), BuildHasherDefault::<Known>::default());
    elements.iter().all(|value| {
        spend(|_| SEEN_STEPS)
            && digest(value, depth, &keys)
                .is_some_and(|hash| seen.insert(Element { value, hash, depth }))
    })
}

/// An element with its hash.
struct Element<'a> {
    value: &'a Value,
    hash: u64,
    depth: usize,
}

impl PartialEq for Element<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash && same(self.value, other.value, self.depth)
    }
}

impl Eq for Element<'_> {}

impl Hash for Element<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// A hasher that passes a precomputed hash through.
#[derive(Default)]
struct Known(u64);

impl Hasher for Known {
    fn finish(&self) -> u64 {
        self.0
    }

    // Not called: `Element` writes a `u64`.
    fn write(&mut self, _: &[u8]) {}

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

/// Hashes a value with secret keys, so that collisions cannot be prepared. Equal values have equal
/// hashes. Returns `None` if the account is empty.
fn digest(value: &Value, depth: usize, keys: &RandomState) -> Option<u64> {
    step().then_some(())?;
    Some(match value {
        Value::Null => keys.hash_one(0_u8),
        Value::Bool(value) => keys.hash_one((1_u8, *value)),
        Value::Number(number) => number_digest(number, keys),
        Value::String(text) => {
            spend(|_| in_bytes(text.len())).then(|| keys.hash_one((2_u8, text)))?
        }
        Value::Array(elements) => {
            may_enter(depth).then_some(())?;
            let mut all = keys.build_hasher();
            for element in elements {
                all.write_u64(digest(element, depth + 1, keys)?);
            }
            all.write_usize(elements.len());
            all.finish()
        }
        Value::Object(members) => {
            may_enter(depth).then_some(())?;
            // A sum, which does not depend on the order of members.
            let mut sum = 0_u64;
            for (name, value) in members {
                let value = digest(value, depth + 1, keys)?;
                sum = sum.wrapping_add(
                    spend(|_| in_bytes(name.len())).then(|| keys.hash_one((name, value)))?,
                );
            }
            keys.hash_one((3_u8, sum))
        }
    })
}

/// Hashes a number. `2.0` equals the integer 2; floats with a fraction equal no integer.
fn number_digest(number: &Number, keys: &RandomState) -> u64 {
    const WHOLE: f64 = 9_223_372_036_854_775_808.0;
    let whole = match (number.as_i64(), number.as_u64(), number.as_f64()) {
        (Some(whole), _, _) => i128::from(whole),
        (_, Some(whole), _) => i128::from(whole),
        #[allow(clippy::cast_possible_truncation, reason = "it is whole and in range")]
        (_, _, Some(float)) if float.fract() == 0.0 && float.abs() < 2.0 * WHOLE => float as i128,
        (_, _, float) => return keys.hash_one((4_u8, float.map(f64::to_bits))),
    };
    keys.hash_one((5_u8, whole))
}
