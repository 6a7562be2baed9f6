//! Tests of every signature, return type and option of `#[tool]`, in a crate that denies all
//! warnings.
#![forbid(unsafe_code)]
#![deny(
    warnings,
    missing_docs,
    unreachable_pub,
    unused_qualifications,
    clippy::pedantic,
    clippy::allow_attributes_without_reason,
    clippy::missing_docs_in_private_items
)]
#![allow(
    clippy::unwrap_used,
    clippy::unnecessary_wraps,
    reason = "a panic is how a test fails; tools return results"
)]

use palisade_guest::{
    Content, Context, Definition, Error, Json, Output, Result, SideEffects, WorkspacePath, testing,
    tool,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The arguments of most tools here.
#[derive(Deserialize, JsonSchema)]
struct Args {
    /// The name to greet.
    name: String,
}

/// The output of some tools here.
#[derive(Serialize, JsonSchema)]
struct Report {
    /// The length of the name.
    length: usize,
}

/// Greets a person by name.
///
/// Always in English:
///   - kindly
#[tool(
    side_effects = "none",
    name = "greet_by_name",
    title = "Greeter",
    idempotent,
    timeout = "1500ms",
    metadata = r#"{"k":1}"#
)]
fn greet(args: Args) -> Result<String> {
    Ok(format!("Hello, {}!", args.name))
}

/// Takes nothing.
#[tool(side_effects = "read")]
fn nothing() {}

/// Takes the context.
#[tool(side_effects = "write")]
fn watch(ctx: &Context) -> &'static str {
    ctx.info("watching");
    "seen"
}

/// Takes both.
#[tool(side_effects = "execute")]
fn both(Args { name }: Args, ctx: &Context) -> Output {
    ctx.progress(1.0, None, "");
    Output::text(&name).modified(name).failure()
}

/// Measures a name.
#[tool(side_effects = "network")]
fn measure(args: Args) -> Result<Json<Report>, std::num::TryFromIntError> {
    let length = u8::try_from(args.name.len())?.into();
    Ok(Json(Report { length }))
}

/// Is called like a local of the expansion.
#[tool(side_effects = "none")]
fn context(args: Args, context: &Context) -> Content {
    Content::text(format!("{}{}", args.name, context.call_id()))
}

/// Is called like another local of the expansion.
#[tool(side_effects = "none")]
fn input() -> Vec<Content> {
    vec![Content::text("a"), Content::text("b")]
}

/// Is called like a keyword.
#[tool(side_effects = "none")]
fn r#type() -> Result<(), Error> {
    Err(Error::failed("no"))
}

/// Borrows from the input, and has a lint of its own to answer.
#[tool(side_effects = "none")]
fn borrow(args: Borrowed<'_>) -> String {
    args.name.to_uppercase()
}

/// Arguments that borrow.
#[derive(Deserialize, JsonSchema)]
struct Borrowed<'a> {
    /// The name to shout.
    #[serde(borrow)]
    name: std::borrow::Cow<'a, str>,
}

/// Is not there.
#[tool(side_effects = "none")]
#[cfg(any())]
fn absent(args: Missing) {}

/// Tools in a module.
pub mod inner {
    use super::{Result, WorkspacePath, tool};

    /// Arguments with a path.
    #[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
    #[schemars(inline)]
    pub struct PathArgs {
        /// The file.
        pub path: WorkspacePath,
    }

    /// Measures a file.
    ///
    /// # Errors
    /// The file cannot be read.
    #[tool(side_effects = "read")]
    pub fn size(args: PathArgs) -> Result<String> {
        Ok(std::fs::metadata(args.path)?.len().to_string())
    }
}

/// A tool whose crate only depends on `palisade_guest`.
mod reexported {
    use palisade_guest::schemars::{self, JsonSchema};
    use palisade_guest::serde::Deserialize;

    /// Arguments that name every crate through this one.
    #[derive(Deserialize, JsonSchema)]
    #[serde(crate = "palisade_guest::serde")]
    #[schemars(crate = "schemars")]
    pub(super) struct Args {
        /// A number.
        number: u8,
    }

    /// Doubles.
    #[palisade_guest::tool(side_effects = "none")]
    pub(super) fn double(args: Args) -> String {
        args.number.saturating_mul(2).to_string()
    }
}

palisade_guest::export!(
    greet,
    nothing,
    watch,
    both,
    measure,
    context,
    input,
    r#type,
    borrow,
    inner::size,
    reexported::double,
);

/// Returns a definition without its input schema.
fn bare(mut definition: Definition) -> Definition {
    definition.input_schema = String::new();
    definition
}

#[test]
fn definition_follows_attribute_and_comment() {
    let expected = Definition {
        name: "greet_by_name".to_owned(),
        title: Some("Greeter".to_owned()),
        description: "Greets a person by name.\n\nAlways in English:\n  - kindly".to_owned(),
        input_schema: String::new(),
        output_schema: None,
        side_effects: SideEffects::None,
        idempotent: true,
        timeout_ms: Some(1500),
        metadata: r#"{"k":1}"#.to_owned(),
    };
    assert_eq!(bare(testing::definition::<greet>()), expected);
    let schema = json!({
        "type": "object",
        "properties": { "name": { "type": "string", "description": "The name to greet." } },
        "required": ["name"],
        "description": "The arguments of most tools here.",
    });
    assert_eq!(testing::input_schema::<greet>(), schema);
}

#[test]
fn omitted_attributes_have_defaults() {
    let expected = Definition {
        name: "nothing".to_owned(),
        title: None,
        description: "Takes nothing.".to_owned(),
        input_schema: String::new(),
        output_schema: None,
        side_effects: SideEffects::Read,
        idempotent: false,
        timeout_ms: None,
        metadata: String::new(),
    };
    assert_eq!(bare(testing::definition::<nothing>()), expected);
    assert_eq!(testing::input_schema::<nothing>(), json!({ "type": "object", "properties": {} }));
}

#[test]
fn class_and_name_follow_the_attribute() {
    assert_eq!(testing::definition::<watch>().side_effects, SideEffects::Write);
    assert_eq!(testing::definition::<both>().side_effects, SideEffects::Execute);
    assert_eq!(testing::definition::<measure>().side_effects, SideEffects::Network);
    assert_eq!(testing::definition::<r#type>().name, "type");
    assert_eq!(testing::definition::<inner::size>().name, "size");
}

#[test]
fn functions_remain_callable() {
    assert_eq!(greet(Args { name: "Ada".to_owned() }), Ok("Hello, Ada!".to_owned()));
    let ctx = testing::context();
    assert_eq!(watch(&ctx), "seen");
    assert_eq!(ctx.record().logs.len(), 1);
}

#[test]
fn every_signature_and_return_type_can_be_called() {
    let ada = || json!({ "name": "Ada" });
    assert_eq!(testing::call::<greet>(ada()), Ok(Output::text("Hello, Ada!")));
    assert_eq!(testing::call::<nothing>(json!({})), Ok(Output::new(Vec::new())));
    assert_eq!(testing::call::<watch>(json!({})), Ok(Output::text("seen")));
    assert_eq!(testing::call::<both>(ada()), Ok(Output::text("Ada").modified("Ada").failure()));
    assert_eq!(testing::call::<context>(ada()).unwrap().to_text(), "Adacall_1");
    assert_eq!(testing::call::<input>(json!({})).unwrap().content().len(), 2);
    assert_eq!(testing::call::<r#type>(json!({})), Err(Error::failed("no")));
    assert_eq!(testing::call::<borrow>(ada()), Ok(Output::text("ADA")));
    assert_eq!(testing::call::<reexported::double>(json!({ "number": 4 })), Ok(Output::text("8")));
}

#[test]
fn only_json_outputs_have_a_schema() {
    let output = testing::call::<measure>(json!({ "name": "Ada" })).unwrap();
    assert_eq!(output.content(), [Content::Json(r#"{"length":3}"#.to_owned())]);
    let schema = testing::output_schema::<measure>().unwrap();
    assert_eq!((&schema["type"], &schema["required"]), (&json!("object"), &json!(["length"])));
    assert_eq!(testing::output_schema::<greet>(), None);
}

#[test]
fn foreign_errors_become_tool_errors() {
    let error = testing::call::<measure>(json!({ "name": "x".repeat(300) })).unwrap_err();
    assert_eq!(error, Error::failed("out of range integral type conversion attempted"));
    let error = testing::call::<inner::size>(json!({ "path": "no/such/file" })).unwrap_err();
    assert_eq!(error.kind(), palisade_guest::ErrorKind::NotFound);
}

#[test]
fn mismatched_input_is_refused_with_the_field() {
    let error = testing::call::<greet>(json!({ "name": Value::Null })).unwrap_err();
    assert_eq!(error.field(), Some("/name"));
    assert_eq!(error.message(), "invalid type: null, expected a string");
}
