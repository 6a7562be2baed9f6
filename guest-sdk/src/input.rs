//! Deserialises the input of a call to the arguments of a function.

use serde::Deserialize;
use serde_path_to_error::{Path, Segment};

use crate::{Error, Result};

/// Deserialises the arguments.
///
/// # Errors
/// `invalid-input` with the JSON pointer of the wrong field, and the reason. The host validates
/// inputs against the schema before the call, so that only requirements outside of the schema fail
/// here.
pub fn arguments<'de, T: Deserialize<'de>>(input: &'de str) -> Result<T> {
    let mut source = serde_json::Deserializer::from_str(input);
    let arguments = serde_path_to_error::deserialize(&mut source)
        .map_err(|error| refuse(error.path(), &error.inner().to_string()))?;
    source.end().map_err(|error| Error::invalid_input("", reason(&error.to_string())))?;
    Ok(arguments)
}

fn refuse(path: &Path, message: &str) -> Error {
    let reason = reason(message);
    let mut field = pointer(path);
    // The path of a missing field ends at its parent.
    if let Some(name) =
        reason.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`'))
    {
        push(&mut field, name);
    }
    Error::invalid_input(field, reason)
}

/// Removes the line and column, which are meaningless for an input that was built as a value.
fn reason(message: &str) -> &str {
    message.rsplit_once(" at line ").map_or(message, |(reason, _)| reason)
}

/// Converts a path to a JSON pointer (RFC 6901). It ends where serde lost track of the path.
fn pointer(path: &Path) -> String {
    let mut pointer = String::new();
    for segment in path {
        match segment {
            Segment::Seq { index } => push(&mut pointer, &index.to_string()),
            Segment::Map { key } => push(&mut pointer, key),
            Segment::Enum { variant } => push(&mut pointer, variant),
            Segment::Unknown => break,
        }
    }
    pointer
}

fn push(pointer: &mut String, token: &str) {
    pointer.push('/');
    pointer.push_str(&token.replace('~', "~0").replace('/', "~1"));
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        dead_code,
        reason = "a panic is how a test fails, and fields are only deserialised"
    )]

    use super::*;
    use std::borrow::Cow;
    use std::collections::BTreeMap;

    #[derive(Debug, Deserialize)]
    struct Args {
        name: String,
        #[serde(default)]
        items: Vec<Item>,
        #[serde(default)]
        map: BTreeMap<String, u8>,
    }

    #[derive(Debug, Deserialize)]
    struct Item {
        size: u32,
        #[serde(default)]
        kind: Kind,
    }

    #[derive(Debug, Default, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Kind {
        #[default]
        Small,
        Large,
    }

    fn refusal(input: &str) -> (String, String) {
        let error = arguments::<Args>(input).unwrap_err();
        (error.field().unwrap().to_owned(), error.message().to_owned())
    }

    #[test]
    fn matching_arguments_are_accepted_and_unknown_fields_ignored() {
        let args: Args =
            arguments(r#"{"name":"a","items":[{"size":1,"kind":"large"}],"other":null}"#).unwrap();
        assert_eq!(args.name, "a");
        assert_eq!(args.items.len(), 1);
    }

    #[test]
    fn unknown_field_is_refused_if_the_author_denies_it() {
        #[derive(Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        #[allow(dead_code, reason = "what it holds is not looked at")]
        struct Closed {
            path: String,
        }
        let refused = arguments::<Closed>(r#"{"path":"a","pth":1}"#).unwrap_err();
        assert_eq!(refused.message(), "unknown field `pth`, expected `path`");
    }

    #[test]
    fn mismatched_field_is_named_by_pointer() {
        let (field, reason) = refusal(r#"{"name":5}"#);
        assert_eq!(
            (field.as_str(), reason.as_str()),
            ("/name", "invalid type: integer `5`, expected a string")
        );
        assert_eq!(refusal(r#"{"name":"a","items":[{"size":1},{"size":-1}]}"#).0, "/items/1/size");
        assert_eq!(refusal(r#"{"name":"a","map":{"a/b~c":300}}"#).0, "/map/a~1b~0c");
        let (field, reason) = refusal(r#"{"name":"a","items":[{"size":1,"kind":"huge"}]}"#);
        assert_eq!(field, "/items/0/kind");
        assert_eq!(reason, "unknown variant `huge`, expected `small` or `large`");
    }

    #[test]
    fn missing_field_is_named_at_its_place() {
        assert_eq!(refusal("{}"), ("/name".to_owned(), "missing field `name`".to_owned()));
        assert_eq!(refusal(r#"{"name":"a","items":[{}]}"#).0, "/items/0/size");
    }

    #[test]
    fn text_other_than_one_json_value_is_refused() {
        assert_eq!(
            refusal(r#"{"name":"a"} {}"#),
            (String::new(), "trailing characters".to_owned())
        );
        assert!(refusal("").1.contains("EOF"));
    }

    #[test]
    fn arguments_may_borrow_from_the_input() {
        #[derive(Deserialize)]
        struct Borrowed<'a> {
            #[serde(borrow)]
            name: Cow<'a, str>,
        }
        let args: Borrowed<'_> = arguments(r#"{"name":"a"}"#).unwrap();
        assert!(matches!(args.name, Cow::Borrowed("a")));
    }
}
