//! A function of a component that is a tool.

use super::from_value::{Lowered, Mismatch, lowered};
use super::lifted;
use super::shape::{ChoiceKind, Field, Room, Shape};
use super::to_text::{NoAnswer, text};
use super::unfit::Unfit;
use crate::execution::account::Account;
use crate::sandbox::limits;
use serde_json::Value;
use wasmtime::component::types::ComponentFunc;
use wasmtime::component::{ComponentExportIndex, Val};

/// The maximum length of an error that is not a string, in bytes of JSON.
const MAX_ERROR: usize = 16 << 10;

/// A function of a component, with its types.
pub(crate) struct Function {
    pub(crate) index: ComponentExportIndex,
    pub(super) parameters: Vec<Field>,
    pub(super) result: Outcome,
    /// The size of the data that the engine may copy out of the guest at once, in bytes. Values
    /// take more memory than that, by a factor that depends on their types.
    pub(crate) fuel: usize,
}

/// The type of the result of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    Nothing,
    Value(Shape),
    /// A `result`, whose error is that of the tool.
    Fallible {
        ok: Option<Shape>,
        err: Option<Shape>,
    },
}

/// The answer of a function.
pub(crate) enum Answered {
    Nothing,
    /// Text for the model.
    Text(String),
    /// The text of a JSON value.
    Json(String),
    /// The function failed, with this message.
    Failed(String),
}

impl Function {
    /// Resolves the types of a function.
    pub(super) fn new(index: ComponentExportIndex, ty: &ComponentFunc) -> Result<Self, Unfit> {
        if ty.async_() {
            return Err(Unfit::Asynchronous);
        }
        let mut room = Room::new();
        let parameter = |(name, ty): (&str, _)| {
            Ok(Field { name: name.to_owned(), shape: Shape::new(&ty, &mut room)? })
        };
        let parameters = ty.params().map(parameter).collect::<Result<Vec<_>, Unfit>>()?;
        let result = ty.results().next().map(|ty| Shape::new(&ty, &mut room)).transpose()?;
        let fuel = lifted::fuel(result.as_ref());
        Ok(Self { index, parameters, result: Outcome::new(result), fuel })
    }

    /// Converts an input to the values of the parameters, which are charged to the account.
    pub(crate) fn lowered(&self, input: &Value, account: &Account) -> Result<Lowered, Mismatch> {
        lowered(&self.parameters, input, account)
    }

    /// Returns the number of values that the engine returns.
    pub(crate) fn results(&self) -> usize {
        match self.result {
            Outcome::Nothing => 0,
            Outcome::Value(_) | Outcome::Fallible { .. } => 1,
        }
    }

    /// Converts the value that the engine has returned.
    pub(crate) fn answered(
        &self,
        returned: Option<Val>,
        account: &Account,
    ) -> Result<Answered, NoAnswer> {
        match (&self.result, returned) {
            (Outcome::Nothing, None) => Ok(Answered::Nothing),
            (Outcome::Value(shape), Some(value)) => succeeded(Some(shape), Some(value), account),
            (Outcome::Fallible { ok, .. }, Some(Val::Result(Ok(value)))) => {
                succeeded(ok.as_ref(), value.map(|value| *value), account)
            }
            (Outcome::Fallible { err, .. }, Some(Val::Result(Err(value)))) => {
                failed(err.as_ref(), value.map(|value| *value))
            }
            _ => Err(NoAnswer::OtherType),
        }
    }
}

impl Outcome {
    fn new(result: Option<Shape>) -> Self {
        match result {
            None => Self::Nothing,
            Some(Shape::Choice(ChoiceKind::Result, cases)) => {
                let payload = |name| cases.get(name).and_then(|case| case.payload.clone());
                Self::Fallible { ok: payload("ok"), err: payload("err") }
            }
            Some(shape) => Self::Value(shape),
        }
    }

    /// Returns the shape of a successful JSON output. A string is text for the model, without the
    /// quotes of JSON.
    pub(super) fn json(&self) -> Option<&Shape> {
        match self {
            Self::Nothing => None,
            Self::Value(shape) => Some(shape),
            Self::Fallible { ok, .. } => ok.as_ref(),
        }
        .filter(|shape| **shape != Shape::String)
    }
}

fn succeeded(
    shape: Option<&Shape>,
    value: Option<Val>,
    account: &Account,
) -> Result<Answered, NoAnswer> {
    match (shape, value) {
        (None, None) => Ok(Answered::Nothing),
        (Some(Shape::String), Some(Val::String(text))) => Ok(Answered::Text(text)),
        (Some(shape), Some(value)) => {
            let text = text(shape, &value, limits::RESULT as usize, |length| {
                account.reserve(length as u64).map_err(NoAnswer::Exhausted)
            })?;
            // The conversion of the output reserves the text again.
            account.release(text.len() as u64);
            Ok(Answered::Json(text))
        }
        (None, Some(_)) | (Some(_), None) => Err(NoAnswer::OtherType),
    }
}

/// Returns the error of a function: its text, the name of its case, or JSON.
fn failed(shape: Option<&Shape>, value: Option<Val>) -> Result<Answered, NoAnswer> {
    let message = match (shape, value) {
        (_, None) => String::new(),
        (_, Some(Val::String(text) | Val::Enum(text) | Val::Variant(text, None))) => text,
        (Some(shape), Some(value)) => match text(shape, &value, MAX_ERROR, |_| Ok(())) {
            Err(NoAnswer::TooLong) => {
                format!("the function returned an error of more than {MAX_ERROR} bytes")
            }
            text => text?,
        },
        (None, Some(_)) => return Err(NoAnswer::OtherType),
    };
    Ok(Answered::Failed(message))
}
