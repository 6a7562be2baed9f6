//! The text that a program prints.

use crate::engine::function;
use crate::result::text_of;
use boa_engine::object::ObjectInitializer;
use boa_engine::property::Attribute;
use boa_engine::{Context, JsObject, JsResult, JsString, JsValue};
use std::cell::RefCell;

/// The most bytes that a program prints. The rest is dropped, with a note.
const MOST: usize = 1 << 20;

/// The note at the end of what was cut.
const CUT: &str = "[the rest of what the program printed is left out]\n";

/// The text that a program has printed.
struct Printed {
    text: String,
    /// True once something was dropped.
    is_cut: bool,
}

thread_local! {
    static PRINTED: RefCell<Printed> =
        const { RefCell::new(Printed { text: String::new(), is_cut: false }) };
}

/// Returns what the program has printed.
pub(crate) fn printed() -> String {
    PRINTED.with_borrow_mut(|printed| std::mem::take(&mut printed.text))
}

/// Creates `console`.
pub(crate) fn build(context: &mut Context) -> JsResult<JsObject> {
    let print = function(context, "log", print);
    let mut console = ObjectInitializer::new(context);
    for name in ["log", "info", "warn", "error", "debug"] {
        console.property(JsString::from(name), print.clone(), Attribute::all());
    }
    Ok(console.build())
}

fn print(_: &JsValue, values: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let mut texts = Vec::new();
    for value in values {
        texts.push(text_of(value, context)?);
    }
    let line = texts.join(" ");
    PRINTED.with_borrow_mut(|printed| {
        if printed.is_cut {
            return;
        }
        if printed.text.len() + line.len() >= MOST {
            printed.is_cut = true;
            printed.text.push_str(CUT);
        } else {
            printed.text.push_str(&line);
            printed.text.push('\n');
        }
    });
    Ok(JsValue::undefined())
}
