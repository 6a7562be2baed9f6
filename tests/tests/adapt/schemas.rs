//! The schemas of functions hold both ways: an input that a schema accepts comes back unchanged,
//! and every value of the guest conforms.

use palisade::tool::schema::Schema;
use palisade::{Host, SideEffects, ToolResult, sandbox::Adaptation};
use palisade_tests::guest::ADAPT_DEPOT;
use palisade_tests::{Stage, dice::Dice};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The number of random values.
const VALUES: u64 = 1_000;
/// The greatest integer that every JSON number can be, and one more.
const SAFE: u64 = 1 << 53;

fn stage() -> Stage {
    Stage::new(&[], |builder| builder.adapt(ADAPT_DEPOT.file(), Adaptation::new(SideEffects::None)))
}

fn schema(host: &Host, tool: &str) -> (Value, Option<Schema>) {
    let tool = host.registry().get(tool).unwrap();
    (tool.definition().parameters().clone(), tool.definition().output_schema().cloned())
}

/// Calls a tool, and returns the value of its output.
async fn call(host: &Host, tool: &str, input: &Value) -> Value {
    let result: ToolResult = host.call(tool, input.clone(), json!({})).await;
    let json = result.to_json();
    assert!(result.is_success(), "{input}: {json:#}");
    json["content"][0]["json"].clone()
}

#[tokio::test]
async fn input_that_the_schema_accepts_returns_unchanged() {
    let stage = stage();
    let host: Arc<Host> = stage.host.clone();
    let (input, output) = schema(&host, "echo_same_item");
    let mut draw = Draw { dice: Dice::new(1) };
    for _ in 0..VALUES {
        let value = draw.value(&input);
        let returned = call(&host, "echo_same_item", &value).await;
        let (sent, returned) = (normal(&value["it"]), normal(&returned));
        assert!(is_same(&sent, &returned), "{sent}\n{returned}");
        output.as_ref().unwrap().validate(&returned).unwrap();
    }
}

#[tokio::test]
async fn value_of_the_guest_conforms_and_can_be_sent_back() {
    let stage = stage();
    let host = stage.host.clone();
    let (_, output) = schema(&host, "work_draw");
    let (input, _) = schema(&host, "echo_same_item");
    let input = Schema::input(input).unwrap();
    let mut sent_back = 0;
    for seed in 0..VALUES {
        let value = call(&host, "work_draw", &json!({"seed": seed})).await;
        output.as_ref().unwrap().validate(&value).unwrap();
        let text = value.to_string();
        if ["\"NaN\"", "Infinity\""].iter().any(|float| text.contains(float)) {
            // An input has no float that is no number.
            continue;
        }
        let again = json!({"it": value});
        input.validate(&again).unwrap();
        assert_eq!(call(&host, "echo_same_item", &again).await, value);
        sent_back += 1;
    }
    assert!(sent_back > VALUES / 2, "{sent_back}");
}

#[tokio::test]
async fn absent_null_and_given_options_are_told_apart() {
    let stage = stage();
    let host = stage.host.clone();
    let item = call(&host, "work_draw", &json!({"seed": 3})).await;
    let with = |nested: Option<Value>| {
        let mut item = item.clone();
        let fields = item.as_object_mut().unwrap();
        fields.remove("nested");
        fields.extend(nested.map(|nested| ("nested".to_owned(), nested)));
        fields.insert("shape".to_owned(), json!("dot"));
        fields.remove("at");
        item
    };
    for (nested, returned) in [
        (None, None),
        (Some(Value::Null), None),
        (Some(json!({"some": null})), Some(json!({"some": null}))),
        (Some(json!({"some": 7})), Some(json!({"some": 7}))),
    ] {
        let item = call(&host, "echo_same_item", &json!({"it": with(nested)})).await;
        assert_eq!(item.get("nested"), returned.as_ref());
    }
    let perhaps = |input: Value| {
        let host = host.clone();
        async move { call(&host, "echo_perhaps", &input).await }
    };
    assert_eq!(perhaps(json!({})).await, Value::Null);
    assert_eq!(perhaps(json!({"value": null, "other": 1})).await, Value::Null);
    let item = with(None);
    assert_eq!(perhaps(json!({"value": item})).await, item);
}

#[test]
fn schema_of_each_type_is_the_documented_one() {
    let stage = stage();
    let (input, output) = schema(&stage.host, "echo_same_item");
    let item = &input["properties"]["it"];
    let point = |y: Value, x: Value| json!({"type": "object", "properties": {"x": x, "y": y}, "required": ["x", "y"]});
    let f32 = json!({"type": "number", "minimum": -3.402_823_5e38, "maximum": 3.402_823_5e38});
    let mut optional_point = point(f32.clone(), json!({"type": "number"}));
    optional_point["type"] = json!(["object", "null"]);
    let integer =
        |least: i64, most: i64| json!({"type": "integer", "minimum": least, "maximum": most});
    let wide = |least: i64, pattern: &str| json!({"type": ["integer", "string"], "minimum": least, "maximum": SAFE - 1, "pattern": pattern});
    let single = |name: &str, value: Value| json!({"type": "object", "properties": {name: value}, "required": [name], "additionalProperties": false});
    for (field, expected) in [
        ("id", wide(0, "^[0-9]{1,20}$")),
        ("balance", wide(1 - SAFE as i64, "^-?[0-9]{1,19}$")),
        ("label", json!({"type": "string"})),
        ("mark", json!({"type": "string", "minLength": 1, "maxLength": 1})),
        ("tags", json!({"type": "array", "items": {"type": "string"}})),
        ("picture", json!({"type": "string", "contentEncoding": "base64"})),
        ("colour", json!({"type": "string", "enum": ["red", "dark-green", "blue"]})),
        (
            "rights",
            json!({"type": "array", "uniqueItems": true, "items": {"type": "string", "enum": ["look", "take", "put-back"]}}),
        ),
        ("at", optional_point),
        ("nested", {
            let mut nested =
                single("some", json!({"type": ["integer", "null"], "minimum": 0, "maximum": 255}));
            nested["type"] = json!(["object", "null"]);
            nested
        }),
        (
            "moved",
            json!({"anyOf": [single("ok", integer(0, u32::MAX.into())), single("err", json!({"type": "string"}))]}),
        ),
        ("checked", json!({"type": "string", "enum": ["ok", "err"]})),
        (
            "small",
            json!({"type": "array", "minItems": 4, "maxItems": 4, "prefixItems": [integer(0, 255), integer(-128, 127), integer(0, 65_535), integer(-32_768, 32_767)]}),
        ),
        ("fragile", json!({"type": "boolean"})),
    ] {
        assert_eq!(item["properties"][field], expected, "{field}");
    }
    let shape = &item["properties"]["shape"]["anyOf"];
    assert_eq!(shape[0], json!({"type": "string", "enum": ["dot"]}));
    assert_eq!(shape[1], single("circle", json!({"type": "number"})));
    let required = item["required"].as_array().unwrap();
    assert_eq!(required.len(), 14, "`at` and `nested` are optional: {required:?}");
    let output = output.unwrap();
    let not_finite = json!({"enum": ["NaN", "Infinity", "-Infinity"]});
    let float = |number: Value| json!({"anyOf": [number, not_finite]});
    assert_eq!(
        output.as_value()["properties"]["at"],
        point(float(f32), float(json!({"type": "number"}))),
        "an output has no null for a field without a value"
    );
}

/// Draws values from schemas.
struct Draw {
    dice: Dice,
}

impl Draw {
    fn value(&mut self, schema: &Value) -> Value {
        if let Some(names) = schema["enum"].as_array() {
            return names[self.dice.roll(names.len())].clone();
        }
        if let Some(cases) = schema["anyOf"].as_array() {
            let case = &cases[self.dice.roll(cases.len())];
            return self.value(case);
        }
        let kinds: Vec<&str> = match &schema["type"] {
            Value::Array(kinds) => kinds.iter().map(|kind| kind.as_str().unwrap()).collect(),
            kind => vec![kind.as_str().unwrap()],
        };
        match self.dice.pick(&kinds) {
            "null" => Value::Null,
            "boolean" => json!(self.dice.roll(2) == 0),
            "integer" => self.integer(schema),
            "number" => self.number(schema),
            "string" => json!(self.text(schema)),
            "array" => self.list(schema),
            "object" => Value::Object(self.members(schema)),
            other => panic!("{other}"),
        }
    }

    fn integer(&mut self, schema: &Value) -> Value {
        let (least, most) =
            (schema["minimum"].as_i64().unwrap(), schema["maximum"].as_i64().unwrap());
        match self.dice.roll(4) {
            0 => json!(least),
            1 => json!(most),
            _ => {
                let room = most.abs_diff(least);
                json!(least.wrapping_add_unsigned(self.bits() % room.max(1)))
            }
        }
    }

    fn bits(&mut self) -> u64 {
        (self.dice.roll(1 << 31) as u64) << 32 | self.dice.roll(1 << 31) as u64
    }

    fn number(&mut self, schema: &Value) -> Value {
        let bound = |key: &str, none: f64| schema[key].as_f64().unwrap_or(none);
        let (least, most) = (bound("minimum", f64::MIN), bound("maximum", f64::MAX));
        match self.dice.roll(5) {
            0 => json!(least),
            1 => json!(most),
            2 => json!(self.dice.roll(1_000)),
            _ => json!((self.dice.roll(1 << 30) as f64 / 1024.0) - 300_000.0),
        }
    }

    fn text(&mut self, schema: &Value) -> String {
        if let Some(pattern) = schema["pattern"].as_str() {
            let signed = pattern.contains("-?");
            let number = self.bits() << self.dice.roll(3) >> self.dice.roll(64);
            return match (signed, self.dice.roll(3)) {
                (true, 0) => i64::MIN.to_string(),
                (true, _) => (number as i64).to_string(),
                (false, 0) => u64::MAX.to_string(),
                (false, _) => number.to_string(),
            };
        }
        if schema["contentEncoding"] == "base64" {
            return self.dice.pick(&["", "AA==", "AAE=", "q80B", "/+8A/+8A"]).to_owned();
        }
        let letters = ["a", "é", "\"", "\\", "\n", "\u{0}", "🦀", "\u{10ffff}", " "];
        let bound = |key: &str, none: u64| schema[key].as_u64().unwrap_or(none) as usize;
        let (least, most) = (bound("minLength", 0), bound("maxLength", 8));
        let length = least + self.dice.roll(most - least + 1);
        (0..length).map(|_| self.dice.pick(&letters)).collect()
    }

    fn list(&mut self, schema: &Value) -> Value {
        if let Some(elements) = schema["prefixItems"].as_array() {
            return elements.iter().map(|element| self.value(element)).collect();
        }
        if schema["uniqueItems"] == true {
            let names = schema["items"]["enum"].as_array().unwrap();
            let chosen = names.iter().rev().filter(|_| self.dice.roll(2) == 0);
            return chosen.cloned().collect();
        }
        (0..self.dice.roll(4)).map(|_| self.value(&schema["items"])).collect()
    }

    fn members(&mut self, schema: &Value) -> Map<String, Value> {
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        let mut members = Map::new();
        for (name, schema) in schema["properties"].as_object().unwrap() {
            if required.iter().any(|one| one == name) || self.dice.roll(2) == 0 {
                members.insert(name.clone(), self.value(schema));
            }
        }
        members
    }
}

/// Returns the form in which a value comes back: without optional members that are `null`, and with
/// 64-bit integers as numbers up to 2^53 - 1.
fn normal(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.iter().filter(|(_, value)| !value.is_null());
            // The inner option of two is a required member.
            let wraps = members.len() == 1 && members.contains_key("some");
            match wraps {
                true => value.clone(),
                false => kept.map(|(name, value)| (name.clone(), normal(value))).collect(),
            }
        }
        Value::Array(values) => values.iter().map(normal).collect(),
        value => value.clone(),
    }
}

/// Compares values: numbers by their value within the precision of a 32-bit float, decimal digits
/// with numbers, and the names of flags in any order.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(name, value)| {
                    other.get(name).is_some_and(|other| match name.as_str() {
                        "rights" => sorted(value) == sorted(other),
                        _ => is_same(value, other),
                    })
                })
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (Value::Number(one), Value::Number(other)) if one.is_f64() || other.is_f64() => {
            let (one, other) = (one.as_f64().unwrap(), other.as_f64().unwrap());
            one == other || ((one - other) / one).abs() < 1e-6
        }
        (Value::String(digits), Value::Number(number))
        | (Value::Number(number), Value::String(digits)) => {
            digits.parse::<i128>().unwrap() == number.to_string().parse::<i128>().unwrap()
        }
        (one, other) => one == other,
    }
}

fn sorted(names: &Value) -> Vec<String> {
    let mut names: Vec<String> =
        names.as_array().unwrap().iter().map(ToString::to_string).collect();
    names.sort();
    names
}
