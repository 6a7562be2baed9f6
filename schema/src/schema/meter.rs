//! Lets the validator see a value only through a meter, so that validating costs a bounded number of steps.
//!
//! The validator has no budget of its own. It does read every value through the accessors below, and each takes steps from an
//! account of this thread. When the account is empty every value turns into `null` and every container is empty, so that
//! the validator comes to its end at once; whatever it then says is thrown away.

use std::borrow::Cow;
use std::cell::Cell;

use jsonschema::JsonType;
use jsonschema::json::{Array, Json, Node, NodeIdentity, Object, SerdeJson, cmp, unique};
use serde_json::{Map, Number, Value};

use super::MAX_VALUE_DEPTH;

/// How many bytes one step compares, hashes or counts.
const BYTES_PER_STEP: usize = 64;

/// What one validation may spend, and what weighs more than a step.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tariff {
    /// The steps of the account. One takes some five nanoseconds (measured, optimised).
    pub(super) steps: u64,
    /// The largest compiled `pattern`, in KiB: what a byte of text costs in steps. The slowest patterns take some 40 ns a byte for
    /// each KiB (measured), which this keeps below half a second in all.
    pub(super) value_pattern: u64,
    /// The patterns of property names together, likewise.
    pub(super) name_pattern: u64,
    /// The steps that an error costs, since it takes memory.
    pub(super) error: u64,
}

/// How a metered run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spent {
    /// Within the account: the result counts.
    Within,
    /// The account was empty: the result is void.
    Everything,
    /// The value is nested too deeply: the result is void.
    TooDeep,
}

/// Runs the validator with a new account.
pub(super) fn run<T>(tariff: Tariff, validate: impl FnOnce() -> T) -> (T, Spent) {
    ACCOUNT.with(|account| {
        account.left.set(tariff.steps);
        account.tariff.set(tariff);
        account.too_deep.set(false);
    });
    let result = validate();
    let spent = ACCOUNT.with(|account| match (account.too_deep.get(), account.left.get()) {
        (true, _) => Spent::TooDeep,
        (false, 0) => Spent::Everything,
        (false, _) => Spent::Within,
    });
    (result, spent)
}

struct Account {
    left: Cell<u64>,
    tariff: Cell<Tariff>,
    too_deep: Cell<bool>,
}

thread_local! {
    // The accessors get no argument of ours, and a value cannot carry the account: the validator makes values of its own.
    static ACCOUNT: Account = const {
        Account {
            left: Cell::new(0),
            tariff: Cell::new(Tariff { steps: 0, value_pattern: 0, name_pattern: 0, error: 0 }),
            too_deep: Cell::new(false),
        }
    };
}

/// Takes steps; false where the account is empty.
fn spend(steps: impl FnOnce(&Tariff) -> u64) -> bool {
    ACCOUNT.with(|account| {
        let left = account.left.get().saturating_sub(steps(&account.tariff.get()));
        account.left.set(left);
        left > 0
    })
}

fn in_bytes(bytes: usize) -> u64 {
    1_u64.saturating_add((bytes / BYTES_PER_STEP) as u64)
}

fn in_matching(bytes: usize, pattern: u64) -> u64 {
    in_bytes(bytes).saturating_add((bytes as u64).saturating_mul(pattern))
}

fn close_too_deep() {
    ACCOUNT.with(|account| {
        account.too_deep.set(true);
        account.left.set(0);
    });
}

/// The representation that the validator is compiled for.
pub(super) struct Metered;

/// One value with its depth.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen<'a> {
    value: &'a Value,
    depth: usize,
}

impl<'a> Seen<'a> {
    pub(super) fn root(value: &'a Value) -> Self {
        Self { value, depth: 0 }
    }

    fn is_open(self) -> bool {
        spend(|_| 1)
    }

    /// The depth of what is inside, where one may still look.
    fn inside(self) -> Option<usize> {
        if self.depth >= MAX_VALUE_DEPTH {
            close_too_deep();
        }
        self.is_open().then(|| self.depth.saturating_add(1))
    }
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
        *buffer = Value::String(string.to_owned());
        f(Seen::root(buffer))
    }
}

impl<'a> Node<'a, Metered> for Seen<'a> {
    type Object = Members<'a>;
    type Array = Elements<'a>;
    type Number = &'a Number;

    fn as_object(&self) -> Option<Members<'a>> {
        let Value::Object(members) = self.value else { return None };
        self.inside().map(|depth| Members { members, depth })
    }

    fn as_array(&self) -> Option<Elements<'a>> {
        let Value::Array(elements) = self.value else { return None };
        self.inside().map(|depth| Elements { elements, depth })
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        let Value::String(string) = self.value else { return None };
        spend(|tariff| in_matching(string.len(), tariff.value_pattern)).then_some(Cow::Borrowed(string.as_str()))
    }

    fn as_number(&self) -> Option<&'a Number> {
        let Value::Number(number) = self.value else { return None };
        self.is_open().then_some(number)
    }

    fn as_boolean(&self) -> Option<bool> {
        self.value.as_bool().filter(|_| self.is_open())
    }

    fn is_null(&self) -> bool {
        !self.is_open() || self.value.is_null()
    }

    fn json_type(&self) -> JsonType {
        if self.is_open() { Node::<SerdeJson>::json_type(&self.value) } else { JsonType::Null }
    }

    fn string_length(&self) -> Option<u64> {
        let Value::String(string) = self.value else { return None };
        spend(|_| in_bytes(string.len())).then(|| string.chars().count() as u64)
    }

    fn equals_value(&self, expected: &Value) -> bool {
        let size = size(expected, 0);
        spend(|_| size) && cmp::equal(self.value, expected)
    }

    /// Only errors and annotations ask for this, and neither is to repeat a value that may be a secret.
    fn to_value(&self) -> Cow<'a, Value> {
        static NOTHING: Value = Value::Null;
        spend(|tariff| tariff.error);
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
        if !spend(|_| in_bytes(key.len())) {
            return None;
        }
        self.members.get(key).map(|value| Seen { value, depth: self.depth })
    }

    fn members(&self) -> MembersIter<'a> {
        MembersIter { members: self.members.iter(), depth: self.depth }
    }
}

/// Goes through the members of an object, to their end or that of the account.
pub(super) struct MembersIter<'a> {
    members: serde_json::map::Iter<'a>,
    depth: usize,
}

impl<'a> Iterator for MembersIter<'a> {
    type Item = (&'a str, Seen<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, value) = self.members.next()?;
        let open = spend(|tariff| in_matching(name.len(), tariff.name_pattern));
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

    fn len(&self) -> usize {
        self.elements.len()
    }

    fn elements(&self) -> ElementsIter<'a> {
        ElementsIter { elements: self.elements.iter(), depth: self.depth }
    }

    /// Hashing and comparing take a few times what reading takes.
    fn is_unique(&self) -> bool {
        let mut elements = self.elements.iter();
        let affordable = elements.all(|element| {
            let size = size(element, self.depth).saturating_mul(4);
            spend(|_| size)
        });
        affordable && unique::is_unique(self.elements)
    }
}

/// Goes through the elements of an array, to their end or that of the account.
pub(super) struct ElementsIter<'a> {
    elements: std::slice::Iter<'a, Value>,
    depth: usize,
}

impl<'a> Iterator for ElementsIter<'a> {
    type Item = Seen<'a>;

    fn next(&mut self) -> Option<Seen<'a>> {
        let value = self.elements.next()?;
        spend(|_| 1).then_some(Seen { value, depth: self.depth })
    }
}

/// What reading all of a value costs, in steps. It reads itself only as deep as a value may be.
fn size(value: &Value, depth: usize) -> u64 {
    if depth > MAX_VALUE_DEPTH {
        close_too_deep();
        return u64::MAX;
    }
    let depth = depth.saturating_add(1);
    match value {
        Value::String(string) => in_bytes(string.len()),
        Value::Array(elements) => elements.iter().fold(1, |sum, value| size(value, depth).saturating_add(sum)),
        Value::Object(members) => members
            .iter()
            .fold(1, |sum, (name, value)| size(value, depth).saturating_add(in_bytes(name.len())).saturating_add(sum)),
        _ => 1,
    }
}
