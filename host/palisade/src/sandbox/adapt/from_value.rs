//! The values of a function's parameters, from the JSON of an input.

use super::schema::{SAFE_INTEGER, is_nullable};
use super::shape::{Case, Cases, ChoiceKind, Field, Integer, Shape};
use crate::execution::account::Account;
use crate::tool::budget::Exhausted;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use palisade_schema::schema::join;
use serde_json::{Map, Value};
use wasmtime::component::Val;

/// The memory of small values, which is not counted, in bytes.
const UNCOUNTED: u64 = 16 << 10;
/// The memory that is reserved at once, in bytes.
const STEP: u64 = 64 << 10;
/// The least memory of an allocation, in bytes.
const ALLOCATION: u64 = 32;

/// The values of a function's parameters, with their memory.
pub(crate) struct Lowered {
    values: Vec<Val>,
    _memory: Memory,
}

impl Lowered {
    /// Returns the values, in the order of the parameters.
    pub(crate) fn values(&self) -> &[Val] {
        &self.values
    }
}

/// The reason why an input has no values.
#[derive(Debug)]
pub(crate) enum Mismatch {
    /// The part at this JSON pointer breaks a rule that its schema does not say.
    Invalid { pointer: String, reason: String },
    /// There is no memory for the values.
    Exhausted(Exhausted),
}

/// The reason why a part of an input has no value.
enum Refused {
    /// The position of the part, innermost name first, and what is wanted there.
    Part(Vec<String>, String),
    Exhausted(Exhausted),
}

impl Refused {
    fn wanted(what: impl Into<String>) -> Self {
        Self::Part(Vec::new(), what.into())
    }

    fn below(mut self, name: impl FnOnce() -> String) -> Self {
        if let Self::Part(position, _) = &mut self {
            position.push(name());
        }
        self
    }
}

impl From<Exhausted> for Refused {
    fn from(exhausted: Exhausted) -> Self {
        Self::Exhausted(exhausted)
    }
}

/// Memory of an account, which is released at the end.
struct Memory {
    account: Account,
    used: u64,
    reserved: u64,
}

impl Memory {
    fn take(&mut self, bytes: u64) -> Result<(), Exhausted> {
        self.used = self.used.saturating_add(bytes);
        let counted = self.used.saturating_sub(UNCOUNTED);
        if counted > self.reserved {
            let more = (counted - self.reserved).max(STEP);
            self.account.reserve(more)?;
            self.reserved += more;
        }
        Ok(())
    }

    /// Takes the memory of a text.
    fn text(&mut self, length: usize) -> Result<(), Exhausted> {
        self.take(length as u64 + ALLOCATION)
    }

    /// Takes the memory of this many elements of a type.
    fn array<T>(&mut self, count: usize) -> Result<(), Exhausted> {
        self.take((count as u64).saturating_mul(size_of::<T>() as u64) + ALLOCATION)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.account.release(self.reserved);
    }
}

/// Converts an input that its schema accepts. The memory of the values is charged before they are
/// made.
pub(super) fn lowered(
    parameters: &[Field],
    input: &Value,
    account: &Account,
) -> Result<Lowered, Mismatch> {
    let mut memory = Memory { account: account.clone(), used: 0, reserved: 0 };
    let input = input.as_object();
    let values = parameters.iter().map(|parameter| member(parameter, input, &mut memory));
    match values.collect::<Result<Vec<Val>, Refused>>() {
        Ok(values) => Ok(Lowered { values, _memory: memory }),
        Err(Refused::Exhausted(why)) => Err(Mismatch::Exhausted(why)),
        Err(Refused::Part(position, reason)) => {
            let names = position.iter().rev();
            let pointer = names.fold(String::new(), |pointer, name| join(&pointer, name));
            Err(Mismatch::Invalid { pointer, reason })
        }
    }
}

/// Converts the value of a field. An optional one may be absent.
fn member(
    field: &Field,
    object: Option<&Map<String, Value>>,
    memory: &mut Memory,
) -> Result<Val, Refused> {
    let Field { name, shape } = field;
    match (object.and_then(|object| object.get(name)), shape) {
        (Some(value), _) => convert(shape, value, memory),
        (None, Shape::Option(_)) => Ok(Val::Option(None)),
        (None, _) => Err(Refused::wanted("is missing")),
    }
    .map_err(|refused| refused.below(|| name.clone()))
}

fn convert(shape: &Shape, value: &Value, memory: &mut Memory) -> Result<Val, Refused> {
    match (shape, value) {
        (Shape::Bool, Value::Bool(value)) => Ok(Val::Bool(*value)),
        (Shape::Integer(kind), value) => integer(*kind, value),
        (Shape::F32, Value::Number(number)) => {
            let value = number.as_f64().map(|value| value as f32);
            let value = value.filter(|value| value.is_finite());
            value.map(Val::Float32).ok_or_else(|| Refused::wanted("want a 32-bit float"))
        }
        (Shape::F64, Value::Number(number)) => {
            number.as_f64().map(Val::Float64).ok_or_else(|| Refused::wanted("want a 64-bit float"))
        }
        (Shape::Char, Value::String(text)) => character(text),
        (Shape::String, Value::String(text)) => {
            memory.text(text.len())?;
            Ok(Val::String(text.clone()))
        }
        (Shape::Bytes, Value::String(text)) => bytes(text, memory),
        (Shape::List(element), Value::Array(values)) => {
            list(values.iter().map(|value| (&**element, value)), memory).map(Val::List)
        }
        (Shape::Tuple(shapes), Value::Array(values)) if shapes.len() == values.len() => {
            list(shapes.iter().zip(values), memory).map(Val::Tuple)
        }
        (Shape::Record(fields), Value::Object(object)) => record(fields, object, memory),
        (Shape::Choice(kind, cases), value) => choice(*kind, cases, value, memory),
        (Shape::Option(_), Value::Null) => Ok(Val::Option(None)),
        (Shape::Option(inner), value) => option(inner, value, memory),
        (Shape::Flags(_), Value::Array(names)) => flags(names, memory),
        _ => Err(Refused::wanted("has another type than its schema says")),
    }
}

/// Converts a number, or the decimal digits of a 64-bit integer.
fn integer(kind: Integer, value: &Value) -> Result<Val, Refused> {
    let (least, most) = kind.range();
    let exact = match value {
        Value::Number(number) => number
            .as_i64()
            .map(i128::from)
            .or_else(|| number.as_u64().map(i128::from))
            .or_else(|| number.as_f64().and_then(whole)),
        Value::String(digits) if kind.is_wide() => digits.parse().ok(),
        _ => None,
    };
    let exact = exact.filter(|value| (least..=most).contains(value));
    let value = exact.and_then(|value| {
        Some(match kind {
            Integer::U8 => Val::U8(value.try_into().ok()?),
            Integer::S8 => Val::S8(value.try_into().ok()?),
            Integer::U16 => Val::U16(value.try_into().ok()?),
            Integer::S16 => Val::S16(value.try_into().ok()?),
            Integer::U32 => Val::U32(value.try_into().ok()?),
            Integer::S32 => Val::S32(value.try_into().ok()?),
            Integer::U64 => Val::U64(value.try_into().ok()?),
            Integer::S64 => Val::S64(value.try_into().ok()?),
        })
    });
    value.ok_or_else(|| Refused::wanted(format!("want an integer from {least} to {most}")))
}

/// Returns the integer of a float without a fraction, such as `1e3`.
fn whole(float: f64) -> Option<i128> {
    let is_exact = float.fract() == 0.0 && float.abs() <= SAFE_INTEGER as f64;
    is_exact.then_some(float as i128)
}

fn character(text: &str) -> Result<Val, Refused> {
    let mut characters = text.chars();
    match (characters.next(), characters.next()) {
        (Some(only), None) => Ok(Val::Char(only)),
        _ => Err(Refused::wanted("want one character")),
    }
}

fn bytes(text: &str, memory: &mut Memory) -> Result<Val, Refused> {
    let most = text.len() / 4 * 3 + 3;
    memory.array::<u8>(most)?;
    memory.array::<Val>(most)?;
    let bytes = STANDARD.decode(text).map_err(|error| {
        Refused::wanted(format!("want Base64 with `+`, `/` and padding: {error}"))
    })?;
    Ok(Val::List(bytes.into_iter().map(Val::U8).collect()))
}

fn list<'a>(
    elements: impl ExactSizeIterator<Item = (&'a Shape, &'a Value)>,
    memory: &mut Memory,
) -> Result<Vec<Val>, Refused> {
    memory.array::<Val>(elements.len())?;
    let mut values = Vec::with_capacity(elements.len());
    for (index, (shape, value)) in elements.enumerate() {
        let value = convert(shape, value, memory);
        values.push(value.map_err(|refused| refused.below(|| index.to_string()))?);
    }
    Ok(values)
}

fn record(
    fields: &[Field],
    object: &Map<String, Value>,
    memory: &mut Memory,
) -> Result<Val, Refused> {
    memory.array::<(String, Val)>(fields.len())?;
    let mut values = Vec::with_capacity(fields.len());
    for field in fields {
        memory.text(field.name.len())?;
        values.push((field.name.clone(), member(field, Some(object), memory)?));
    }
    Ok(Val::Record(values))
}

/// Converts a choice: the name of a case, or an object with its name and its value.
fn choice(
    kind: ChoiceKind,
    cases: &Cases,
    value: &Value,
    memory: &mut Memory,
) -> Result<Val, Refused> {
    let only = |object: &Map<String, Value>| object.len() == 1;
    let (name, payload) = match value {
        Value::String(name) => (name, None),
        Value::Object(object) if only(object) => match object.iter().next() {
            Some((name, payload)) => (name, Some(payload)),
            None => return Err(Refused::wanted("want one case")),
        },
        _ => return Err(Refused::wanted("want the name of a case, or an object with one case")),
    };
    let case = cases.get(name);
    let (Case { payload: shape, .. }, name) =
        case.map(|case| (case, name.clone())).ok_or_else(|| Refused::wanted("has no such case"))?;
    memory.text(name.len())?;
    let payload = match (shape, payload) {
        (None, None) => None,
        (Some(shape), Some(payload)) => {
            memory.array::<Val>(1)?;
            let value = convert(shape, payload, memory);
            Some(Box::new(value.map_err(|refused| refused.below(|| name.clone()))?))
        }
        (Some(_), None) => {
            return Err(Refused::wanted(format!("want an object with `{name}` and its value")));
        }
        (None, Some(_)) => return Err(Refused::wanted(format!("want the text `{name}` alone"))),
    };
    Ok(match kind {
        ChoiceKind::Variant => Val::Variant(name, payload),
        ChoiceKind::Enum => Val::Enum(name),
        ChoiceKind::Result if name == "ok" => Val::Result(Ok(payload)),
        ChoiceKind::Result => Val::Result(Err(payload)),
    })
}

/// Converts the value of an option that has one.
fn option(inner: &Shape, value: &Value, memory: &mut Memory) -> Result<Val, Refused> {
    memory.array::<Val>(1)?;
    let value = if is_nullable(inner) {
        let some = value.get("some");
        let some = some.ok_or_else(|| Refused::wanted("want null, or an object with `some`"))?;
        convert(inner, some, memory).map_err(|refused| refused.below(|| "some".to_owned()))
    } else {
        convert(inner, value, memory)
    };
    Ok(Val::Option(Some(Box::new(value?))))
}

/// Converts the names of flags. The schema has checked them.
fn flags(names: &[Value], memory: &mut Memory) -> Result<Val, Refused> {
    memory.array::<String>(names.len())?;
    let mut flags = Vec::with_capacity(names.len());
    for name in names {
        let name = name.as_str().ok_or_else(|| Refused::wanted("want names"))?;
        memory.text(name.len())?;
        flags.push(name.to_owned());
    }
    Ok(Val::Flags(flags))
}
