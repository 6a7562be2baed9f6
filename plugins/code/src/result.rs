//! The value that a program returned or threw, as the output of the tool.

use crate::console::printed;
use crate::engine::PROGRAM;
use crate::json::json;
use boa_engine::builtins::error::Error as ErrorObject;
use boa_engine::error::{EngineError, JsNativeErrorKind, TryNativeError};
use boa_engine::{Context, JsError, JsNativeError, JsResult, JsString, JsValue};
use palisade_guest::{Content, Output};

/// The output of a program that neither returned nor printed anything.
const NOTHING: &str = "the program returned nothing and printed nothing. It has ended without an error, and what its calls have done stays done. `return VALUE`, such as `return await main()`, returns a value";

/// Returns the value that a program returned, if it returned one.
pub(crate) fn content(value: &JsValue, context: &mut Context) -> JsResult<Option<Content>> {
    Ok(match value {
        value if value.is_undefined() => None,
        value if value.is_string() => Some(Content::Text(text_of(value, context)?)),
        value => Some(match json(value, context)? {
            Some(json) => Content::Json(json.to_string()),
            None => Content::Text(text_of(value, context)?),
        }),
    })
}

/// Returns the output of a program that returned this, with what it had printed.
pub(crate) fn success(returned: Option<Content>) -> Output {
    let printed = printed();
    let mut content = Vec::new();
    if !printed.is_empty() {
        content.push(Content::Text(printed));
    }
    content.extend(returned);
    if content.is_empty() {
        content.push(Content::Text(NOTHING.to_owned()));
    }
    Output::new(content)
}

/// Returns the output of a program that threw this, with what it had printed. `indent` is the
/// number of columns before the program on its first line.
pub(crate) fn failure(error: &JsError, indent: u32, context: &mut Context) -> Output {
    let (told, place) = match error.try_native(context) {
        Err(TryNativeError::EngineError { source: EngineError::RuntimeLimit(limit) }) => {
            (format!("the program was ended: {limit}"), None)
        }
        Ok(native) => {
            let message = native.message();
            let (name, place) = match class(error, context) {
                Some(class) => (class, line(error, context)),
                None => (kind(native.kind()).to_owned(), place(error, message, indent)),
            };
            (format!("{name}: {message}"), place)
        }
        Err(_) => (thrown(error, context), place(error, "", indent)),
    };
    let place = place.map(|place| format!(" ({place})")).unwrap_or_default();
    let printed = printed();
    Output::text(format!("{printed}{told}{place}")).failure()
}

/// Returns the class of the failed call that an error is about.
fn class(error: &JsError, context: &mut Context) -> Option<String> {
    let class = own(error, "class", context)?;
    class.as_string().map(|class| class.to_std_string_lossy())
}

/// Returns a property that the error itself has, and not all objects of the program.
fn own(error: &JsError, name: &str, context: &mut Context) -> Option<JsValue> {
    let error = error.clone().into_opaque(context).ok()?.as_object()?;
    let name = JsString::from(name);
    let is_own = error.has_own_property(name.clone(), context).ok()?;
    is_own.then(|| error.get(name, context).ok()).flatten()
}

/// Returns the name of a kind of error, as programs know it.
fn kind(kind: &JsNativeErrorKind) -> &'static str {
    match kind {
        JsNativeErrorKind::Aggregate(_) => "AggregateError",
        JsNativeErrorKind::Eval => "EvalError",
        JsNativeErrorKind::Range => "RangeError",
        JsNativeErrorKind::Reference => "ReferenceError",
        JsNativeErrorKind::Syntax => "SyntaxError",
        JsNativeErrorKind::Type => "TypeError",
        JsNativeErrorKind::Uri => "URIError",
        _ => "Error",
    }
}

/// Returns the words for a thrown value that is no error.
fn thrown(error: &JsError, context: &mut Context) -> String {
    let value = error.clone().into_opaque(context);
    let text = value.and_then(|value| text_of(&value, context));
    let text = text.unwrap_or_else(|_| "a value without a text".to_owned());
    format!("the program threw {text}")
}

/// Returns the place of the failed call that an error is about.
fn line(error: &JsError, context: &mut Context) -> Option<String> {
    let line = own(error, "line", context)?.as_number().filter(|line| *line > 0.0)?;
    Some(format!("line {line}"))
}

/// Returns the place of an error in the program. The engine tells it in its text alone, after the
/// message and the innermost first: `    at f (program:3:5)`.
fn place(error: &JsError, message: &str, indent: u32) -> Option<String> {
    let text = error.to_string();
    let (_, trace) = text.split_once(message)?;
    let (line, column) = trace.lines().find_map(position)?;
    // For some errors the engine tells the beginning of its text, before the program.
    (line > 1 || column > indent).then(|| shown(line, column, indent))
}

/// Finds the place in a line of the engine about a part of the program. A text that the program
/// evaluates has lines of its own, which would mislead.
fn position(line: &str) -> Option<(u32, u32)> {
    let place = line.strip_prefix("    at ")?.rsplit_once(" (")?.1.strip_suffix(')')?;
    let (line, column) = place.strip_prefix(PROGRAM)?.strip_prefix(':')?.split_once(':')?;
    Some((line.parse().ok()?, column.parse().ok()?))
}

/// Returns the error of a program that does not parse, with the place in the program. `indent` is
/// the number of columns before the program on its first line.
pub(crate) fn unparsed(error: JsError, indent: u32, context: &mut Context) -> JsError {
    let Ok(native) = error.try_native(context) else { return error };
    JsNativeError::syntax().with_message(without_indent(native.message(), indent)).into()
}

/// Returns a message of the engine in which the place is that in the program: `… at line 1, col 9`.
fn without_indent(message: &str, indent: u32) -> String {
    let mut parts = message.rsplitn(2, "at line ");
    let (place, before) = (parts.next(), parts.next());
    let numbers = place.and_then(|place| place.split_once(", col "));
    let numbers =
        numbers.and_then(|(line, column)| Some((line.parse().ok()?, column.parse().ok()?)));
    match (before, numbers) {
        (Some(before), Some((line, column))) => {
            format!("{before}at {}", shown(line, column, indent))
        }
        _ => message.to_owned(),
    }
}

fn shown(line: u32, column: u32, indent: u32) -> String {
    let column = if line == 1 { column.saturating_sub(indent).max(1) } else { column };
    format!("line {line}, column {column}")
}

/// Returns the text of a value: a text as it is, and any other value as JSON if it has such a form.
pub(crate) fn text_of(value: &JsValue, context: &mut Context) -> JsResult<String> {
    let is_plain = value.as_object().is_some_and(|it| !it.is_callable() && !it.is::<ErrorObject>());
    if is_plain && let Some(json) = json(value, context)? {
        return Ok(json.to_string());
    }
    Ok(match value.is_symbol() {
        true => value.display().to_string(),
        false => value.to_string(context)?.to_std_string_lossy(),
    })
}
