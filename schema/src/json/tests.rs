//! What the bounded reader accepts and refuses.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use serde_json::json;

use super::{JsonBounds, JsonError, Position, parse_bounded, parse_object};

const SMALL: JsonBounds = JsonBounds { bytes: 100, depth: 3, members: 5 };

fn refusal(text: &str) -> JsonError {
    parse_bounded(text, SMALL).unwrap_err()
}

#[test]
fn every_kind_of_value_reads_as_it_does_without_bounds() {
    let text = r#"{"a":[1,-2,2.5e1,true],"b":{"é\n😀":null}}"#;
    let bounds = JsonBounds { members: 10, ..SMALL };
    assert_eq!(parse_bounded(text, bounds).unwrap(), serde_json::from_str::<serde_json::Value>(text).unwrap());
}

#[test]
fn a_text_at_each_bound_passes_and_one_beyond_it_does_not() {
    assert!(parse_bounded("[[[]]]", SMALL).is_ok());
    assert!(matches!(refusal("[[[[]]]]"), JsonError::TooDeep { max: 3, .. }));
    assert!(parse_bounded("[1,2,[3,4]]", SMALL).is_ok());
    assert!(matches!(refusal("[1,2,[3,4],5]"), JsonError::TooManyMembers { max: 5, .. }));
    assert!(parse_bounded(&format!("{:100}", 1), SMALL).is_ok());
    assert_eq!(refusal(&format!("{:101}", 1)), JsonError::TooLong { got: 101, max: 100 });
}

#[test]
fn a_key_that_occurs_twice_is_refused_with_its_place() {
    let at = Position { offset: 10, line: 2, column: 3 };
    assert_eq!(refusal("{\"a\":1,\n\"a\":2}"), JsonError::DuplicateKey { key: "a".into(), at });
    assert!(matches!(refusal(r#"{"a":{"b":1,"\u0062":1}}"#), JsonError::DuplicateKey { key, .. } if key == "b"));
    assert!(parse_bounded(r#"{"a":{"b":1},"b":{"a":1}}"#, SMALL).is_ok());
}

#[test]
fn what_is_not_json_is_refused_with_its_place_and_without_its_text() {
    for text in ["", "{", "[1,]", "nul", "1 2", "{\"a\":1}x", "1e999", r#""\ud800""#, "'secret'", "\u{feff}1"] {
        let error = refusal(text);
        assert!(matches!(error, JsonError::Syntax { .. }), "{text:?}: {error}");
        assert!(!error.to_string().contains("secret"));
    }
    let JsonError::Syntax { at, .. } = refusal("[1,\n  x]") else { panic!("a syntax error") };
    assert_eq!(at, Position { offset: 6, line: 2, column: 3 });
}

#[test]
fn an_object_is_asked_for_and_nothing_stands_for_the_empty_one() {
    assert!(parse_object("", SMALL).unwrap().is_empty());
    assert_eq!(parse_object(r#"{"a":1}"#, SMALL).unwrap().get("a"), Some(&json!(1)));
    assert_eq!(parse_object("[]", SMALL).unwrap_err(), JsonError::NotAnObject { got: "array" });
}

#[test]
fn a_hostile_depth_ends_at_the_bound_and_not_at_the_end_of_the_stack() {
    let text = "[".repeat(1_000_000);
    let bounds = JsonBounds { bytes: 2_000_000, depth: 1_000_000, members: 1_000_000 };
    assert!(parse_bounded(&text, bounds).is_err());
    assert!(matches!(parse_bounded(&text, JsonBounds { depth: 64, ..bounds }), Err(JsonError::TooDeep { .. })));
}
