//! A metered view of JSON values for the validator, so that validation takes a bounded number of
//! steps.
//!
//! The validator has no budget of its own, but reads every value through the accessors below. Each
//! accessor charges steps to a thread-local account, according to the size of the data. Once the
//! account is empty, every value reads as `null` and every container as empty, so the validator
//! finishes at once and its result is discarded.

mod account;
mod equal;

use std::borrow::Cow;

use jsonschema::JsonType;
use jsonschema::json::{Array, Json, Node, NodeIdentity, Object, SerdeJson};
use serde_json::{Map, Number, Value};

use super::pattern::Matching;
pub(super) use account::{ErrorCost, Reserved, Spent, Tariff, run, step};
use account::{hand_out, make_error, may_enter, spend, spend_uninterrupted};

/// The number of bytes that one step compares, hashes or counts.
const BYTES_PER_STEP: usize = 64;
/// The steps for returning a member: the validator looks up its name in its own tables.
const MEMBER_STEPS: u64 = 2;

fn in_bytes(bytes: usize) -> u64 {
    1_u64.saturating_add((bytes / BYTES_PER_STEP) as u64)
}

fn in_matching(bytes: usize, pattern: Matching) -> u64 {
    // The empty text is matched as well.
    let matched = (bytes as u64).saturating_add(1).saturating_mul(pattern.byte);
    in_bytes(bytes).saturating_add(matched).saturating_add(pattern.text)
}

/// Returns the steps of finding a name of this length in an object: one comparison at each level of
/// the tree.
fn in_lookup(bytes: usize, members: usize) -> u64 {
    let levels = u64::from(members.checked_ilog2().unwrap_or(0));
    in_bytes(bytes).saturating_mul(1 + levels / 2)
}

/// Charges one division by `multipleOf`. The worst case takes some 400 ns (measured, optimised).
pub(super) fn divide() -> bool {
    spend(|_| 20)
}

/// The JSON representation that the validator is compiled for.
pub(super) struct Metered;

/// A value and its depth.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen<'a> {
    value: &'a Value,
    depth: usize,
}

impl<'a> Seen<'a> {
    pub(super) fn root(value: &'a Value) -> Self {
        Self { value, depth: 0 }
    }

    /// Charges one step, also if the value has another type: a validator may access one value as
    /// often as it has keywords.
    fn is_open(self) -> bool {
        step()
    }

    /// Returns the depth of the values inside, if access is still allowed.
    fn inside(self) -> Option<usize> {
        (self.is_open() && may_enter(self.depth)).then(|| self.depth.saturating_add(1))
    }
}

/// Charges one step and returns none, for a value of another type.
fn step_for_nothing<T>() -> Option<T> {
    step();
    None
}

impl Json for Metered {
    type Node<'a> = Seen<'a>;
    type PreparedKey = String;
    type StringBuffer = Value;

    const KEYS_PER_LOOKUP: usize = <SerdeJson as Json>::KEYS_PER_LOOKUP;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(buffer: &mut Value, string: &str, f: impl FnOnce(Seen<'_>) -> T) -> T {
        if !spend(|_| in_bytes(string.len())) {
            return f(Seen::root(&Value::Null));
        }
        match buffer {
            Value::String(kept) => {
                kept.clear();
                kept.push_str(string);
            }
            _ => *buffer = Value::String(string.to_owned()),
        }
        f(Seen::root(buffer))
    }
}

impl<'a> Node<'a, Metered> for Seen<'a> {
    type Object = Members<'a>;
    type Array = Elements<'a>;
    type Number = &'a Number;

    fn as_object(&self) -> Option<Members<'a>> {
        let Value::Object(members) = self.value else { return step_for_nothing() };
        self.inside().map(|depth| Members { members, depth })
    }

    fn as_array(&self) -> Option<Elements<'a>> {
        let Value::Array(elements) = self.value else { return step_for_nothing() };
        self.inside().map(|depth| Elements { elements, depth })
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        let Value::String(string) = self.value else { return step_for_nothing() };
        spend(|tariff| in_matching(string.len(), tariff.value_pattern))
            .then_some(Cow::Borrowed(string.as_str()))
    }

    fn as_number(&self) -> Option<&'a Number> {
        let Value::Number(number) = self.value else { return step_for_nothing() };
        self.is_open().then_some(number)
    }

    fn as_boolean(&self) -> Option<bool> {
        if self.is_open() { self.value.as_bool() } else { None }
    }

    fn is_null(&self) -> bool {
        !self.is_open() || self.value.is_null()
    }

    fn json_type(&self) -> JsonType {
        if self.is_open() { Node::<SerdeJson>::json_type(&self.value) } else { JsonType::Null }
    }

    fn string_length(&self) -> Option<u64> {
        let Value::String(string) = self.value else { return step_for_nothing() };
        spend(|_| in_bytes(string.len()))
            .then(|| Node::<SerdeJson>::string_length(&self.value))
            .flatten()
    }

    fn equals_value(&self, expected: &Value) -> bool {
        self.is_open() && equal::same(self.value, expected, self.depth)
    }

    /// Returns null and charges an error. Only errors and annotations call this, and neither may
    /// repeat a value, which may be a secret.
    fn to_value(&self) -> Cow<'a, Value> {
        static NOTHING: Value = Value::Null;
        make_error();
        Cow::Borrowed(&NOTHING)
    }

    fn identity(&self) -> Option<NodeIdentity> {
        Some(NodeIdentity::new(std::ptr::from_ref(self.value) as usize))
    }
}

/// The members of an object.
pub(super) struct Members<'a> {
    members: &'a Map<String, Value>,
    depth: usize,
}

impl<'a> Object<'a, Metered> for Members<'a> {
    type Node = Seen<'a>;
    type MemberName = &'a str;
    type MembersIter = MembersIter<'a>;

    fn len(&self) -> usize {
        self.members.len()
    }

    fn get(&self, key: &String) -> Option<Seen<'a>> {
        if !spend(|tariff| in_lookup(key.len(), self.members.len()).saturating_add(tariff.silent)) {
            return None;
        }
        self.members.get(key).map(|value| Seen { value, depth: self.depth })
    }

    fn members(&self) -> MembersIter<'a> {
        MembersIter { members: self.members.iter(), depth: self.depth }
    }
}

/// An iterator over the members of an object, which stops early once the account is empty.
pub(super) struct MembersIter<'a> {
    members: serde_json::map::Iter<'a>,
    depth: usize,
}

impl<'a> Iterator for MembersIter<'a> {
    type Item = (&'a str, Seen<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, value) = self.members.next()?;
        let open = hand_out(name, |tariff| {
            in_matching(name.len(), tariff.name_pattern)
                .saturating_add(MEMBER_STEPS)
                .saturating_add(tariff.silent)
        });
        open.then_some((name.as_str(), Seen { value, depth: self.depth }))
    }
}

/// The elements of an array.
pub(super) struct Elements<'a> {
    elements: &'a [Value],
    depth: usize,
}

impl<'a> Array<'a, Metered> for Elements<'a> {
    type Node = Seen<'a>;
    type ElementsIter = ElementsIter<'a>;

    /// Returns the number of elements, and charges what the validator may do with it: for
    /// `unevaluatedItems` it makes a list of this length, and passes over it many times.
    fn len(&self) -> usize {
        let count = self.elements.len();
        let passes = |tariff: &Tariff| tariff.passes.saturating_mul(in_bytes(count));
        if spend_uninterrupted(passes) { count } else { 0 }
    }

    fn elements(&self) -> ElementsIter<'a> {
        ElementsIter { elements: self.elements.iter(), depth: self.depth }
    }

    fn is_unique(&self) -> bool {
        equal::all_differ(self.elements, self.depth)
    }
}

/// An iterator over the elements of an array, which stops early once the account is empty.
pub(super) struct ElementsIter<'a> {
    elements: std::slice::Iter<'a, Value>,
    depth: usize,
}

impl<'a> Iterator for ElementsIter<'a> {
    type Item = Seen<'a>;

    fn next(&mut self) -> Option<Seen<'a>> {
        let value = self.elements.next()?;
        spend(|tariff| 1 + tariff.silent).then_some(Seen { value, depth: self.depth })
    }
}
