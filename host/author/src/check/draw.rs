//! Inputs drawn from a schema: valid ones, with ordinary and with hostile values.

use super::seeds::{FORMATS, HOSTILE, PATHS, WORDS};
use palisade::Definition;
use palisade::tool::json::text_length;
use serde_json::{Map, Value, json};

/// The depth at which no optional member is drawn any more.
const DEEP: usize = 6;
/// How often one input is drawn until the schema accepts it.
const TRIES: usize = 24;
/// The longest text that is drawn, in characters.
const LONGEST: u64 = 4_096;
/// The largest input that is drawn, in bytes: schemas can nest lists, and refer to themselves.
const LARGEST: usize = 1 << 20;
/// The part of [`LARGEST`] that a value takes beside its text, in bytes.
const PER_VALUE: usize = 32;

/// A deterministic generator of numbers: SplitMix64, which is enough to draw inputs.
#[derive(Debug, Clone)]
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, sides: usize) -> usize {
        let sides = u64::try_from(sides.max(1)).unwrap_or(u64::MAX);
        usize::try_from(self.next() % sides).unwrap_or(0)
    }

    fn one_in(&mut self, sides: usize) -> bool {
        self.below(sides) == 0
    }

    fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> Option<&'a T> {
        from.get(self.below(from.len())).copied()
    }
}

/// The values that an input is drawn from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// Ordinary values, and required members only.
    Plain,
    /// Ordinary values.
    Ordinary,
    /// Hostile values among ordinary ones.
    Hostile,
}

/// Draws an input that the schema accepts; `None` if none is found.
pub(super) fn input(definition: &Definition, dice: &mut Dice, manner: Manner) -> Option<Value> {
    let root = definition.parameters();
    (0..TRIES).find_map(|_| {
        let mut drawing = Drawing { root, dice, manner, room: LARGEST };
        let value = drawing.value(root, 0);
        definition.validate_params(&value).is_ok().then_some(value)
    })
}

struct Drawing<'a> {
    root: &'a Value,
    dice: &'a mut Dice,
    manner: Manner,
    /// The bytes that are left for the input.
    room: usize,
}

impl<'a> Drawing<'a> {
    /// Takes room for a value. Returns false if there is none.
    fn take(&mut self, bytes: usize) -> bool {
        let left = self.room.checked_sub(bytes.saturating_add(PER_VALUE));
        self.room = left.unwrap_or(0);
        left.is_some()
    }

    fn copied(&mut self, value: &Value) -> Value {
        if self.take(text_length(value)) { value.clone() } else { Value::Null }
    }

    fn value(&mut self, schema: &'a Value, depth: usize) -> Value {
        if depth > DEEP * 2 || !self.take(0) {
            return Value::Null;
        }
        let schema = self.resolved(schema);
        if let Some(value) = schema.get("const") {
            return self.copied(value);
        }
        for list in ["enum", "examples"] {
            let values: Vec<&Value> =
                schema.get(list).and_then(Value::as_array).into_iter().flatten().collect();
            let takes = list == "enum" || !self.dice.one_in(3);
            if let (true, Some(value)) = (takes, self.dice.pick(&values)) {
                return self.copied(value);
            }
        }
        for key in ["anyOf", "oneOf"] {
            let cases: Vec<&Value> =
                schema.get(key).and_then(Value::as_array).into_iter().flatten().collect();
            if let Some(case) = self.dice.pick(&cases) {
                return self.merged(schema, case, depth);
            }
        }
        if let Some(first) = schema.get("allOf").and_then(Value::as_array).and_then(|it| it.first())
        {
            return self.merged(schema, first, depth);
        }
        self.typed(schema, depth)
    }

    /// Draws a value of a case, with the members of the schema around it.
    fn merged(&mut self, around: &'a Value, case: &'a Value, depth: usize) -> Value {
        let mut value = self.value(case, depth + 1);
        if let (Some(members), true) = (value.as_object_mut(), around.get("properties").is_some()) {
            members.extend(self.members(around, depth + 1));
        }
        value
    }

    fn resolved(&self, schema: &'a Value) -> &'a Value {
        let pointer = |schema: &'a Value| schema.get("$ref")?.as_str()?.strip_prefix('#');
        let mut schema = schema;
        for _ in 0..DEEP {
            match pointer(schema).and_then(|pointer| self.root.pointer(pointer)) {
                Some(target) => schema = target,
                None => break,
            }
        }
        schema
    }

    fn typed(&mut self, schema: &'a Value, depth: usize) -> Value {
        let kinds: Vec<&str> = match schema.get("type") {
            Some(Value::String(kind)) => vec![kind],
            Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
            _ if schema.get("properties").is_some() => vec!["object"],
            _ => vec!["string", "integer", "boolean"],
        };
        match self.dice.pick(&kinds) {
            Some("object") => Value::Object(self.members(schema, depth)),
            Some("array") => self.list(schema, depth),
            Some("integer") => json!(self.integer(schema)),
            Some("number") => self.number(schema),
            Some("boolean") => json!(self.dice.one_in(2)),
            Some("null") => Value::Null,
            _ => {
                let text = self.text(schema);
                if self.take(text.len()) { text.into() } else { Value::Null }
            }
        }
    }

    fn members(&mut self, schema: &'a Value, depth: usize) -> Map<String, Value> {
        let required: Vec<&str> = schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let mut members = Map::new();
        for (name, member) in
            schema.get("properties").and_then(Value::as_object).into_iter().flatten()
        {
            let optional = self.manner != Manner::Plain && depth < DEEP && self.dice.one_in(2);
            if required.contains(&name.as_str()) || optional {
                members.insert(name.clone(), self.value(member, depth + 1));
            }
        }
        members
    }

    fn list(&mut self, schema: &'a Value, depth: usize) -> Value {
        let bound = |key: &str| schema.get(key).and_then(Value::as_u64);
        let least = bound("minItems").unwrap_or(0).min(64);
        let most = bound("maxItems").unwrap_or(least + 3).min(least + 3).max(least);
        let room = usize::try_from(most - least).unwrap_or(0) + 1;
        let count = usize::try_from(least).unwrap_or(0) + self.dice.below(room);
        let items = schema.get("items").unwrap_or(&Value::Null);
        (0..count).map(|_| self.value(items, depth + 1)).collect()
    }

    fn integer(&mut self, schema: &Value) -> i64 {
        let bound = |key: &str| schema.get(key).and_then(Value::as_i64);
        let least = bound("minimum").or(bound("exclusiveMinimum").map(|it| it.saturating_add(1)));
        let most = bound("maximum").or(bound("exclusiveMaximum").map(|it| it.saturating_sub(1)));
        if self.manner == Manner::Hostile && self.dice.one_in(2) {
            let extreme = [least.unwrap_or(i64::MIN), most.unwrap_or(i64::MAX), 0, -1];
            return extreme[self.dice.below(extreme.len())].clamp(
                least.unwrap_or(i64::MIN),
                most.unwrap_or(i64::MAX).max(least.unwrap_or(i64::MIN)),
            );
        }
        let least = least.unwrap_or(0);
        let room = most.map_or(10, |most| most.saturating_sub(least).clamp(0, 10));
        least.saturating_add(i64::try_from(self.dice.below(11)).unwrap_or(0).min(room))
    }

    fn number(&mut self, schema: &Value) -> Value {
        if self.manner == Manner::Hostile && self.dice.one_in(3) {
            let extremes = [0.0, -0.0, 1e308, -1e308, 5e-324];
            return json!(extremes[self.dice.below(extremes.len())]);
        }
        json!(self.integer(schema) as f64 + 0.5 * self.dice.below(2) as f64)
    }

    fn text(&mut self, schema: &Value) -> String {
        if schema.get("format").and_then(Value::as_str) == Some("workspace-path") {
            let hostile = self.manner == Manner::Hostile && self.dice.one_in(6);
            return if hostile { "../outside".to_owned() } else { self.path() };
        }
        let hostile = self.manner == Manner::Hostile && self.dice.one_in(2);
        let format = schema.get("format").and_then(Value::as_str);
        let known = FORMATS.iter().find(|(name, _)| Some(*name) == format);
        if let (Some((_, values)), false) = (known, hostile) {
            return self.dice.pick(values).unwrap_or_default().to_owned();
        }
        let text = if hostile { self.dice.pick(&HOSTILE) } else { self.dice.pick(&WORDS) };
        let mut text = text.unwrap_or_default().to_owned();
        let bound = |key: &str| schema.get(key).and_then(Value::as_u64);
        let long = hostile && self.dice.one_in(4);
        let least = bound("minLength").unwrap_or(0).max(if long { 1_000 } else { 0 }).min(LONGEST);
        let most = usize::try_from(bound("maxLength").unwrap_or(LONGEST)).unwrap_or(usize::MAX);
        while (text.chars().count() as u64) < least {
            text.push('a');
        }
        text.chars().take(most).collect()
    }

    fn path(&mut self) -> String {
        let first = if self.manner == Manner::Plain { 1 } else { PATHS.len() };
        PATHS.get(self.dice.below(first)).copied().unwrap_or_default().to_owned()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test with a fixed schema")]
    use super::*;
    use palisade::SideEffects;

    fn definition(schema: Value) -> Definition {
        Definition::new("probe", "A tool of a test.", SideEffects::None, schema).unwrap()
    }

    #[test]
    fn every_drawn_input_is_valid_and_repeats_with_its_seed() {
        let schema = json!({
            "type": "object",
            "required": ["path", "kind", "list", "nested"],
            "properties": {
                "path": {"type": "string", "format": "workspace-path"},
                "kind": {"enum": ["a", "b"]},
                "list": {"type": "array", "minItems": 2, "items": {"type": "integer", "minimum": 5, "maximum": 7}},
                "nested": {"$ref": "#/$defs/nested"},
                "text": {"type": "string", "minLength": 3, "maxLength": 9},
                "either": {"anyOf": [{"type": "null"}, {"type": "number"}]}
            },
            "$defs": {"nested": {"type": "object", "properties": {"deep": {"$ref": "#/$defs/nested"}}}}
        });
        let definition = definition(schema);
        let all = |seed| {
            let mut dice = Dice::new(seed);
            let draw = |_| input(&definition, &mut dice, Manner::Hostile);
            (0..100).map(draw).collect::<Option<Vec<_>>>().unwrap()
        };
        assert_eq!(all(1), all(1));
        assert_ne!(all(1), all(2));
        for input in all(3) {
            assert!(definition.validate_params(&input).is_ok(), "{input}");
        }
    }

    #[test]
    fn schemas_that_multiply_are_drawn_within_bounds() {
        let itself = json!({"$ref": "#"});
        let members = json!({"a": itself, "b": itself, "c": itself});
        let referring =
            json!({"type": "object", "properties": members, "required": ["a", "b", "c"]});
        let list = |items| json!({"type": "array", "minItems": 20, "items": items});
        let lists = (0..12).fold(json!({"const": "x".repeat(1_000)}), |items, _| list(items));
        let lists = json!({"type": "object", "properties": {"a": lists}, "required": ["a"]});
        for schema in [referring, lists] {
            let drawn = input(&definition(schema), &mut Dice::new(1), Manner::Hostile);
            assert!(drawn.is_none_or(|input| text_length(&input) <= LARGEST));
        }
    }

    #[test]
    fn text_of_a_known_format_has_it() {
        let schema = json!({
            "type": "object",
            "required": ["day"],
            "properties": {"day": {"type": "string", "format": "date"}}
        });
        let definition = definition(schema);
        let mut dice = Dice::new(1);
        let days = FORMATS.iter().find(|(name, _)| *name == "date").unwrap().1;
        for _ in 0..20 {
            let drawn = input(&definition, &mut dice, Manner::Ordinary).unwrap();
            assert!(days.contains(&drawn["day"].as_str().unwrap()), "{drawn}");
        }
        let hostile = (0..20).map(|_| input(&definition, &mut dice, Manner::Hostile).unwrap());
        assert!(hostile.filter(|it| !days.contains(&it["day"].as_str().unwrap())).count() > 0);
    }

    #[test]
    fn pattern_is_met_by_an_example_or_not_at_all() {
        let text = |extra: Value| {
            let mut member = json!({"type": "string", "pattern": "^[0-9]{4}-x$"});
            member.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            let schema = json!({"type": "object", "required": ["t"], "properties": {"t": member}});
            input(&definition(schema), &mut Dice::new(1), Manner::Ordinary)
        };
        assert_eq!(text(json!({})), None);
        assert_eq!(text(json!({"examples": ["1234-x"]})), Some(json!({"t": "1234-x"})));
    }
}
