//! Structured outputs with a declared schema.

use palisade_tests::guest::CONTRACT_STRUCTURED;
use palisade_tests::{Case, Observed};
use serde_json::json;

fn promise(give: &str) -> Observed {
    Case::new(CONTRACT_STRUCTURED, "promise").input(json!({"give": give})).check()
}

#[test]
fn conforming_output_is_one_json_block() {
    let seen = promise("right");
    assert_eq!(seen.output(), r#"{"n":1}"#);
    assert_eq!(seen.result["content"], json!([{"type": "json", "json": {"n": 1}}]));
}

#[test]
fn nonconforming_output_breaks_the_contract() {
    for give in ["wrong", "twice", "text", "nothing"] {
        let seen = promise(give);
        assert_eq!(seen.kind(), "contract", "{give}");
        assert_eq!(seen.result["output"], json!(null), "{give}");
    }
    assert!(promise("wrong").message("execution_error").contains("n"));
}

#[test]
fn unsuccessful_output_needs_no_structure() {
    assert_eq!(promise("failure").kind(), "unsuccessful");
}
