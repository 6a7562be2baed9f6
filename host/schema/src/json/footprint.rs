//! The memory of a parsed JSON value, which is up to 90 times the size of its text.
//!
//! The model follows `serde_json` 1 without `preserve_order` on a 64-bit machine: a `Value` has 32
//! bytes, an object is a `BTreeMap<String, Value>`, an array is a `Vec<Value>` that doubles its
//! capacity, and each string has its own allocation. The nodes of the tree are those of the
//! standard library: 11 keys of 24 bytes, 11 values of 32 bytes and 16 bytes of links for a leaf,
//! and 12 links more for an inner node. An allocation has a header of 8 bytes and is rounded up to
//! a multiple of 16.

use serde_json::Value;

/// The size of a `Value`, in bytes.
const VALUE: u64 = 32;
/// The size of a map's leaf node, in bytes. The smallest non-empty object has one.
const LEAF: u64 = 640;
/// The size of a map's inner node, in bytes.
const INNER: u64 = 736;
/// The number of members in a leaf.
const CAPACITY: u64 = 11;
/// The initial capacity of a vector of values.
const FIRST: u64 = 4;

/// Returns the size of an allocation of this many bytes.
fn allocated(bytes: u64) -> u64 {
    if bytes == 0 { 0 } else { (bytes.saturating_add(8).saturating_add(15) & !15).max(32) }
}

/// Returns the memory of a string or a key of this many bytes.
pub(super) fn string(bytes: usize) -> u64 {
    allocated(bytes as u64)
}

/// Returns the growth of an array by its `nth` element, counted from 1, without the heap memory of
/// the element.
pub(super) fn element(nth: usize) -> u64 {
    let before = (nth as u64).saturating_sub(1);
    match before {
        0 => allocated(FIRST * VALUE),
        full if full >= FIRST && full.is_power_of_two() => full.saturating_mul(VALUE),
        _ => 0,
    }
}

/// Returns the growth of an object by its `nth` member, counted from 1, without its key and the
/// heap memory of its value.
pub(super) fn member(nth: usize) -> u64 {
    let nth = nth as u64;
    if nth <= CAPACITY {
        return if nth == 1 { LEAF } else { 0 };
    }
    // A full leaf is split in the middle. In the worst case each leaf keeps five members, with one
    // more in the parent between two leaves.
    let leaf = if nth.is_multiple_of(6) { LEAF } else { 0 };
    let inner = if nth.is_multiple_of(30) || nth == CAPACITY + 1 { INNER } else { 0 };
    leaf + inner
}

/// Returns the memory of an array's allocation for this many elements.
pub(super) fn elements(count: usize) -> u64 {
    let capacity = if count == 0 { 0 } else { (count as u64).next_power_of_two().max(FIRST) };
    allocated(capacity.saturating_mul(VALUE))
}

/// Returns the heap memory of a value, without the heap memory of its elements and members.
pub(super) fn outside(value: &Value) -> u64 {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => string(text.len()),
        Value::Array(values) => elements(values.len()),
        Value::Object(members) => members
            .keys()
            .enumerate()
            .map(|(before, key)| string(key.len()) + member(before + 1))
            .sum(),
    }
}

/// Returns the heap memory of a value with everything inside it, in bytes.
#[must_use]
pub fn of(value: &Value) -> u64 {
    let inside: u64 = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
        Value::Array(values) => values.iter().map(of).sum(),
        Value::Object(members) => members.values().map(of).sum(),
    };
    inside + outside(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn footprint_constants_match_the_types() {
        assert_eq!(size_of::<Value>() as u64, VALUE);
        assert_eq!(size_of::<String>(), 24);
        let leaf = CAPACITY * (24 + VALUE) + 16;
        assert_eq!((allocated(leaf), allocated(leaf + 12 * 8)), (LEAF, INNER));
    }

    #[test]
    fn array_elements_add_up_to_the_allocation() {
        for count in [0, 1, 4, 5, 8, 9, 1000, 1024, 1025] {
            let sum: u64 = (1..=count).map(element).sum();
            assert!(sum.abs_diff(elements(count)) <= 32, "{count}: {sum} and {}", elements(count));
        }
    }

    #[test]
    fn map_is_counted_with_its_maximum_of_nodes() {
        let sum = |count: usize| (1..=count).map(member).sum::<u64>();
        assert_eq!((sum(0), sum(1), sum(11)), (0, LEAF, LEAF));
        assert_eq!(sum(12), 2 * LEAF + INNER);
        // 1,000 members are in at most 166 leaves and 27 inner nodes.
        assert!(sum(1000) >= 166 * LEAF + 27 * INNER);
    }
}
