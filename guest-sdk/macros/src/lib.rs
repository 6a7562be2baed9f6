//! The attribute macro of `palisade-guest`, which re-exports it and documents it; use it from there.

mod description;
mod expand;
mod function;
mod options;

use proc_macro::TokenStream;

/// Makes a tool of a free function.
///
/// The function stays as it is and can be called in a plain test. Beside it the macro puts a hidden type of the same name, which
/// `palisade_guest::export!` takes; so a module or a type of that name cannot stand in the same scope.
///
/// The function takes nothing, its arguments (one struct that derives `Deserialize` and `JsonSchema`), a `&Context`, or both in this order.
/// It returns anything that implements `IntoOutput`. Its doc comment is the description that the model reads, so it must have one.
///
/// | option | meaning |
/// |---|---|
/// | `side_effects = "none"` | required: the most the tool can do, one of `none`, `read`, `write`, `execute`, `network` |
/// | `name = "greet"` | the tool's name, where it is not the function's: `^[a-z][a-z0-9_]{0,63}$` |
/// | `title = "Greeter"` | a name for people, at most 128 characters |
/// | `idempotent` | calling twice with the same input leaves the same state as calling once |
/// | `timeout = "30s"` | the longest that one call should take, in `ms`, `s` or `m`; it can only lower what the host allows |
/// | `metadata = r#"{"k": 1}"#` | a JSON object for what has no option, at most 64 KiB |
///
/// Whatever breaks one of these rules is a compile error that says what would be accepted.
#[proc_macro_attribute]
pub fn tool(options: TokenStream, item: TokenStream) -> TokenStream {
    expand::tool(options.into(), &item.into()).into()
}
