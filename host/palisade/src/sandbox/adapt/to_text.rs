//! The text of a component's value as JSON.

use super::schema::{NOT_FINITE, SAFE_INTEGER, is_nullable};
use super::shape::{ChoiceKind, Field, Shape};
use crate::tool::budget::Exhausted;
use base64::engine::general_purpose::STANDARD;
use base64::write::EncoderWriter;
use serde::Serialize;
use std::io::{self, Write};
use wasmtime::component::Val;

/// The number of bytes that are encoded at once.
const CHUNK: usize = 1 << 10;

/// The reason why a value has no text.
#[derive(Debug, PartialEq)]
pub(crate) enum NoAnswer {
    /// There is no memory for the text.
    Exhausted(Exhausted),
    /// The text is too long.
    TooLong,
    /// The value has another type. The engine never returns such a value.
    OtherType,
}

/// Only a text that is too long cannot be written.
impl From<io::Error> for NoAnswer {
    fn from(_: io::Error) -> Self {
        Self::TooLong
    }
}

/// Returns the text of a value, with at most `max` bytes. The text is measured first, and `reserve`
/// gets its length before it is allocated.
pub(super) fn text(
    shape: &Shape,
    value: &Val,
    max: usize,
    reserve: impl FnOnce(usize) -> Result<(), NoAnswer>,
) -> Result<String, NoAnswer> {
    let mut measured = Measured { length: 0, max };
    write(shape, value, &mut measured)?;
    reserve(measured.length)?;
    let mut text = Vec::with_capacity(measured.length);
    write(shape, value, &mut text)?;
    String::from_utf8(text).map_err(|_| NoAnswer::OtherType)
}

/// Counts the bytes that are written, up to a maximum.
struct Measured {
    length: usize,
    max: usize,
}

impl Write for Measured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.length += bytes.len();
        if self.length > self.max {
            Err(io::ErrorKind::FileTooLarge.into())
        } else {
            Ok(bytes.len())
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn write(shape: &Shape, value: &Val, out: &mut dyn Write) -> Result<(), NoAnswer> {
    match (shape, value) {
        (Shape::Bool, Val::Bool(value)) => scalar(value, out),
        (Shape::Integer(_), Val::U8(value)) => scalar(value, out),
        (Shape::Integer(_), Val::S8(value)) => scalar(value, out),
        (Shape::Integer(_), Val::U16(value)) => scalar(value, out),
        (Shape::Integer(_), Val::S16(value)) => scalar(value, out),
        (Shape::Integer(_), Val::U32(value)) => scalar(value, out),
        (Shape::Integer(_), Val::S32(value)) => scalar(value, out),
        (Shape::Integer(_), Val::U64(value)) => wide(i128::from(*value), out),
        (Shape::Integer(_), Val::S64(value)) => wide(i128::from(*value), out),
        (Shape::F32, Val::Float32(value)) if value.is_finite() => scalar(value, out),
        (Shape::F32, Val::Float32(value)) => scalar(not_finite(f64::from(*value)), out),
        (Shape::F64, Val::Float64(value)) if value.is_finite() => scalar(value, out),
        (Shape::F64, Val::Float64(value)) => scalar(not_finite(*value), out),
        (Shape::Char, Val::Char(value)) => scalar(value, out),
        (Shape::String, Val::String(value)) => scalar(value, out),
        (Shape::Bytes, Val::List(values)) => bytes(values, out),
        (Shape::List(element), Val::List(values)) => {
            elements(values.iter().map(|value| (&**element, value)), out)
        }
        (Shape::Tuple(shapes), Val::Tuple(values)) if shapes.len() == values.len() => {
            elements(shapes.iter().zip(values), out)
        }
        (Shape::Record(fields), Val::Record(values)) if fields.len() == values.len() => {
            record(fields, values, out)
        }
        (Shape::Choice(kind, _), value) => {
            let (name, payload) = chosen(*kind, value)?;
            choice(shape, name, payload, out)
        }
        (Shape::Option(_), Val::Option(None)) => Ok(out.write_all(b"null")?),
        (Shape::Option(inner), Val::Option(Some(value))) => match is_nullable(inner) {
            true => member("some", inner, value, out),
            false => write(inner, value, out),
        },
        (Shape::Flags(_), Val::Flags(names)) => {
            let mut before: &[u8] = b"[";
            for name in names {
                out.write_all(before)?;
                scalar(name, out)?;
                before = b",";
            }
            Ok(out.write_all(if names.is_empty() { b"[]" } else { b"]" })?)
        }
        _ => Err(NoAnswer::OtherType),
    }
}

/// Writes a value that `serde_json` knows.
fn scalar<T: Serialize + ?Sized>(value: &T, out: &mut dyn Write) -> Result<(), NoAnswer> {
    serde_json::to_writer(out, value).map_err(|_| NoAnswer::TooLong)
}

/// Writes a 64-bit integer: as a number if every program can hold it, and otherwise as a string.
fn wide(value: i128, out: &mut dyn Write) -> Result<(), NoAnswer> {
    if (-SAFE_INTEGER..=SAFE_INTEGER).contains(&value) {
        Ok(write!(out, "{value}")?)
    } else {
        Ok(write!(out, "\"{value}\"")?)
    }
}

fn not_finite(value: f64) -> &'static str {
    let [nan, infinity, negative] = NOT_FINITE;
    match value {
        _ if value.is_nan() => nan,
        _ if value > 0.0 => infinity,
        _ => negative,
    }
}

fn bytes(values: &[Val], out: &mut dyn Write) -> Result<(), NoAnswer> {
    out.write_all(b"\"")?;
    let mut encoder = EncoderWriter::new(&mut *out, &STANDARD);
    let mut buffer = Vec::with_capacity(CHUNK.min(values.len()));
    for chunk in values.chunks(CHUNK) {
        buffer.clear();
        for value in chunk {
            let Val::U8(byte) = value else { return Err(NoAnswer::OtherType) };
            buffer.push(*byte);
        }
        encoder.write_all(&buffer)?;
    }
    encoder.finish()?;
    drop(encoder);
    Ok(out.write_all(b"\"")?)
}

fn elements<'a>(
    elements: impl ExactSizeIterator<Item = (&'a Shape, &'a Val)>,
    out: &mut dyn Write,
) -> Result<(), NoAnswer> {
    let is_empty = elements.len() == 0;
    let mut before: &[u8] = b"[";
    for (shape, value) in elements {
        out.write_all(before)?;
        write(shape, value, out)?;
        before = b",";
    }
    Ok(out.write_all(if is_empty { b"[]" } else { b"]" })?)
}

/// Writes a record. A field without a value is left out.
fn record(fields: &[Field], values: &[(String, Val)], out: &mut dyn Write) -> Result<(), NoAnswer> {
    out.write_all(b"{")?;
    let mut before: &[u8] = b"";
    for (Field { name, shape }, (_, value)) in fields.iter().zip(values) {
        if matches!(value, Val::Option(None)) {
            continue;
        }
        out.write_all(before)?;
        scalar(name, out)?;
        out.write_all(b":")?;
        write(shape, value, out)?;
        before = b",";
    }
    Ok(out.write_all(b"}")?)
}

/// Returns the name and the payload of a choice.
fn chosen(kind: ChoiceKind, value: &Val) -> Result<(&str, Option<&Val>), NoAnswer> {
    match (kind, value) {
        (ChoiceKind::Variant, Val::Variant(name, payload)) => Ok((name, payload.as_deref())),
        (ChoiceKind::Enum, Val::Enum(name)) => Ok((name, None)),
        (ChoiceKind::Result, Val::Result(Ok(payload))) => Ok(("ok", payload.as_deref())),
        (ChoiceKind::Result, Val::Result(Err(payload))) => Ok(("err", payload.as_deref())),
        _ => Err(NoAnswer::OtherType),
    }
}

fn choice(
    shape: &Shape,
    name: &str,
    payload: Option<&Val>,
    out: &mut dyn Write,
) -> Result<(), NoAnswer> {
    let Some(payload) = payload else { return scalar(name, out) };
    let Shape::Choice(_, cases) = shape else { return Err(NoAnswer::OtherType) };
    let shape = cases.get(name).and_then(|case| case.payload.as_ref());
    member(name, shape.ok_or(NoAnswer::OtherType)?, payload, out)
}

/// Writes an object with one member.
fn member(name: &str, shape: &Shape, value: &Val, out: &mut dyn Write) -> Result<(), NoAnswer> {
    out.write_all(b"{")?;
    scalar(name, out)?;
    out.write_all(b":")?;
    write(shape, value, out)?;
    Ok(out.write_all(b"}")?)
}
