//! The JSON Schema of a function's values.
//!
//! It says all that it can say briefly. Two rules are checked by the conversion alone: the range of
//! a 64-bit integer in a string, and the alphabet of Base64.

use super::docs::Parts;
use super::shape::{Cases, Field, Integer, Shape};
use serde_json::{Map, Value, json};

/// The greatest integer that every program can hold in a JSON number: 2^53 - 1.
pub(super) const SAFE_INTEGER: i128 = (1 << 53) - 1;
/// The values of a float that are no JSON number, as strings.
pub(super) const NOT_FINITE: [&str; 3] = ["NaN", "Infinity", "-Infinity"];
/// The bound of a 32-bit float, in the shortest digits that mean its greatest value.
const F32_MAX: f64 = 3.402_823_5e38;
/// The number of patterns of a schema. The others are left out, since a host bounds the patterns of
/// a schema and of a plugin.
const MAX_PATTERNS: usize = 16;

/// The direction of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    /// To the function: an optional member may be `null`, and a float is a number.
    Input,
    /// From the function: an optional member is left out, and a float may be no number.
    Output,
}

/// Returns the schema of a function's parameters.
pub(super) fn input(parameters: &[Field], docs: Parts<'_>) -> Value {
    Writer::new(Direction::Input, docs).record(parameters, "")
}

/// Returns the schema of a function's result.
pub(super) fn output(result: &Shape, docs: Parts<'_>) -> Value {
    Writer::new(Direction::Output, docs).value(result, "")
}

struct Writer<'a> {
    direction: Direction,
    docs: Parts<'a>,
    patterns: usize,
}

impl<'a> Writer<'a> {
    fn new(direction: Direction, docs: Parts<'a>) -> Self {
        Self { direction, docs, patterns: MAX_PATTERNS }
    }

    fn value(&mut self, shape: &Shape, path: &str) -> Value {
        let schema = match shape {
            Shape::Bool => json!({"type": "boolean"}),
            Shape::Integer(integer) => self.integer(*integer),
            Shape::F32 => self.float(json!({"minimum": -F32_MAX, "maximum": F32_MAX})),
            Shape::F64 => self.float(json!({})),
            Shape::Char => json!({"type": "string", "minLength": 1, "maxLength": 1}),
            Shape::String => json!({"type": "string"}),
            Shape::Bytes => json!({"type": "string", "contentEncoding": "base64"}),
            Shape::List(element) => {
                json!({"type": "array", "items": self.value(element, &format!("{path}[]"))})
            }
            Shape::Tuple(elements) => self.tuple(elements, path),
            Shape::Record(fields) => self.record(fields, path),
            Shape::Choice(_, cases) => self.choice(cases, path),
            // The description of the value is that of the option.
            Shape::Option(inner) => return self.option(inner, path),
            Shape::Flags(names) => {
                let items = self.names(names.iter().map(String::as_str), path);
                json!({"type": "array", "items": items, "uniqueItems": true})
            }
        };
        self.described(schema, path)
    }

    /// Adds the description of a part, before what its schema says already.
    fn described(&self, mut schema: Value, path: &str) -> Value {
        if let (Some(text), Some(keywords)) = (self.docs.at(path), schema.as_object_mut()) {
            let more = keywords.get("description").and_then(Value::as_str);
            let text = more.map_or_else(|| text.to_owned(), |more| format!("{text}\n{more}"));
            keywords.insert("description".to_owned(), text.into());
        }
        schema
    }

    fn integer(&mut self, integer: Integer) -> Value {
        let (least, most) = integer.range();
        if !integer.is_wide() {
            return json!({"type": "integer", "minimum": number(least), "maximum": number(most)});
        }
        let (sign, digits) = if least < 0 { ("-?", 19) } else { ("", 20) };
        let mut schema = json!({
            "type": ["integer", "string"],
            "minimum": number(least.max(-SAFE_INTEGER)),
            "maximum": number(most.min(SAFE_INTEGER)),
        });
        self.patterns = self.patterns.saturating_sub(1);
        if let (1.., Some(keywords)) = (self.patterns, schema.as_object_mut()) {
            keywords.insert("pattern".to_owned(), format!("^{sign}[0-9]{{1,{digits}}}$").into());
        }
        schema
    }

    /// Returns the schema of a float with these bounds.
    fn float(&self, bounds: Value) -> Value {
        let mut number = json!({"type": "number"});
        if let (Some(number), Value::Object(bounds)) = (number.as_object_mut(), bounds) {
            number.extend(bounds);
        }
        match self.direction {
            Direction::Input => number,
            Direction::Output => json!({"anyOf": [number, {"enum": NOT_FINITE}]}),
        }
    }

    fn tuple(&mut self, elements: &[Shape], path: &str) -> Value {
        let count = elements.len();
        let elements = elements.iter().enumerate();
        let elements: Vec<Value> = elements
            .map(|(index, shape)| self.value(shape, &join(path, &index.to_string())))
            .collect();
        json!({"type": "array", "prefixItems": elements, "minItems": count, "maxItems": count})
    }

    fn record(&mut self, fields: &[Field], path: &str) -> Value {
        let mut properties = Map::new();
        let mut required = Vec::new();
        for Field { name, shape } in fields {
            let path = join(path, name);
            let schema = match (shape, self.direction) {
                (Shape::Option(inner), Direction::Output) if !is_nullable(inner) => {
                    self.value(inner, &path)
                }
                _ => self.value(shape, &path),
            };
            if !matches!(shape, Shape::Option(_)) {
                required.push(name.as_str());
            }
            properties.insert(name.clone(), schema);
        }
        let mut schema = json!({"type": "object", "properties": properties});
        if let (false, Some(keywords)) = (required.is_empty(), schema.as_object_mut()) {
            keywords.insert("required".to_owned(), required.into());
        }
        schema
    }

    fn choice(&mut self, cases: &Cases, path: &str) -> Value {
        let bare = cases.iter().filter(|case| case.payload.is_none());
        let bare: Vec<&str> = bare.map(|case| case.name.as_str()).collect();
        let mut alternatives = Vec::new();
        if !bare.is_empty() {
            alternatives.push(self.names(bare.into_iter(), path));
        }
        for case in cases.iter() {
            let Some(payload) = &case.payload else { continue };
            let payload = self.value(payload, &join(path, &case.name));
            alternatives.push(single(&case.name, &payload));
        }
        match alternatives.len() {
            1 => alternatives.remove(0),
            _ => json!({"anyOf": alternatives}),
        }
    }

    /// Returns the schema of one of these names, with their descriptions.
    fn names<'n>(&self, names: impl Iterator<Item = &'n str>, path: &str) -> Value {
        let names: Vec<&str> = names.collect();
        let text = |name: &&str| Some(format!("{name}: {}", self.docs.at(&join(path, name))?));
        let texts: Vec<String> = names.iter().filter_map(text).collect();
        let mut schema = json!({"type": "string", "enum": names});
        if let (false, Some(keywords)) = (texts.is_empty(), schema.as_object_mut()) {
            keywords.insert("description".to_owned(), texts.join("\n").into());
        }
        schema
    }

    /// Returns the schema of an option: its value, or `null`. An option of an option wraps the
    /// inner one, since `null` stands for the outer one already.
    fn option(&mut self, inner: &Shape, path: &str) -> Value {
        let value = self.value(inner, path);
        nullable(if is_nullable(inner) { single("some", &value) } else { value })
    }
}

/// Returns true if `null` is a value of the shape.
pub(super) fn is_nullable(shape: &Shape) -> bool {
    matches!(shape, Shape::Option(_))
}

/// Returns the schema of an object with exactly this member.
fn single(name: &str, value: &Value) -> Value {
    json!({
        "type": "object",
        "properties": {name: value},
        "required": [name],
        "additionalProperties": false,
    })
}

/// Returns the schema of a value or `null`.
fn nullable(mut schema: Value) -> Value {
    let Some(keywords) = schema.as_object_mut() else { return schema };
    let is_listed = keywords.contains_key("enum");
    match (keywords.get_mut("type"), is_listed) {
        (Some(Value::Array(types)), false) => types.push("null".into()),
        (Some(one @ Value::String(_)), false) => *one = json!([one.take(), "null"]),
        _ => match keywords.get_mut("anyOf") {
            Some(Value::Array(alternatives)) => alternatives.push(json!({"type": "null"})),
            _ => return json!({"anyOf": [schema, {"type": "null"}]}),
        },
    }
    schema
}

/// Returns a bound as a JSON number. No bound is beyond the range of `i64`, apart from that of
/// `u64`, whose schema has a lower one.
fn number(bound: i128) -> Value {
    i64::try_from(bound).map_or(Value::Null, Value::from)
}

/// Returns the path of a part below another one.
fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
