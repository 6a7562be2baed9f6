//! The attribute macro of `palisade-guest`, which re-exports it. Use it from there.

mod description;
mod expand;
mod function;
mod options;

use proc_macro::TokenStream;

/// Makes a tool of a free function.
///
/// The function is unchanged and can be called in a plain test. The macro adds a hidden type of the
/// same name for `palisade_guest::export!`; therefore no other module or type in the same scope can
/// have that name.
///
/// The function takes nothing, its arguments (one struct that derives `Deserialize` and
/// `JsonSchema`), a `&Context`, or both in this order. It returns any type that implements
/// `IntoOutput`. Its doc comment is required: it is the description for the model.
///
/// | option | meaning |
/// |---|---|
/// | `side_effects = "none"` | required: `none`, `read`, `write`, `execute` or `network` |
/// | `name = "greet"` | the tool's name if not the function's: `^[a-z][a-z0-9_]{0,63}$` |
/// | `title = "Greeter"` | a display name, at most 128 characters |
/// | `idempotent` | repeating a call with the same input leaves the same state |
/// | `timeout = "30s"` | a timeout in `ms`, `s` or `m`; it can only lower that of the host |
/// | `metadata = r#"{"k": 1}"#` | a JSON object for other settings, at most 64 KiB |
///
/// A violation of these rules is a compile error that lists the accepted forms.
#[proc_macro_attribute]
pub fn tool(options: TokenStream, item: TokenStream) -> TokenStream {
    expand::tool(options.into(), &item.into()).into()
}
