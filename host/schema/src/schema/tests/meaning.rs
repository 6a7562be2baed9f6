//! Patterns mean what ECMA-262 says, for values and for names.

use serde_json::{Map, Value, json};

use super::super::{Schema, SchemaError};
use super::refusal;

/// Returns whether a text matches, in the order: as a value, as a name, as one of several names.
fn matched(pattern: &str, text: &str) -> [bool; 4] {
    let fits = |schema: Value, value: &Value| {
        Schema::output(schema).unwrap_or_else(|error| panic!("{error}")).validate(value).is_ok()
    };
    let name = json!({ text: 1 });
    let value = fits(json!({ "pattern": pattern }), &json!(text));
    let single = fits(json!({"patternProperties": {pattern: false}}), &name);
    let several =
        fits(json!({"patternProperties": {pattern: false, "^never, \\w$": false}}), &name);
    let closed =
        fits(json!({"patternProperties": {pattern: true}, "additionalProperties": false}), &name);
    [value, !single, !several, closed]
}

#[track_caller]
fn means(pattern: &str, matching: &[&str], others: &[&str]) {
    for text in matching {
        assert_eq!(matched(pattern, text), [true; 4], "{pattern} with {text:?}");
    }
    for text in others {
        assert_eq!(matched(pattern, text), [false; 4], "{pattern} with {text:?}");
    }
}

#[test]
fn brackets_mean_what_ecma_says() {
    // A class ends at the first bracket, so these are the empty class and that of all characters.
    means("[]", &[], &["", "]", "a"]);
    means("^[]a]$", &[], &["]", "a", "a]"]);
    means("^[^]$", &["a", "\n", "é", "]"], &["", "ab"]);
    means("^[^]a]$", &["xa]", "\na]"], &["x", "b"]);
    // No class is inside another, and there are no operations on classes.
    means("^[[:alpha:]]$", &["a]", ":]", "[]"], &["b", "b]", "a"]);
    means("^[[a]$", &["[", "a"], &["b"]);
    means("^[a-z&&[b]$", &["c", "&", "["], &["A"]);
    means("^[a-c--b]$", &["a", "b", "c", "-", ".", "0", "Z"], &["d", "+"]);
    means("^[a~~b]$", &["a", "~", "b"], &["c"]);
    means("^[\\w-.]$", &["a", "-", "."], &["+", "/"]);
    means("^[a-\\d]$", &["a", "-", "5"], &["b"]);
    means("^[-a]$", &["-", "a"], &["b"]);
    means("^[a-]$", &["-", "a"], &["b"]);
    means("^[\\b]$", &["\u{8}"], &["b", ""]);
    means("^[.*+?(){}|$^/]$", &[".", "*", "^", "$", "(", "/"], &["a", ""]);
    means("^[#-&]$", &["#", "$", "%", "&"], &["-", "'"]);
    means("^[^\\W_]$", &["a", "0"], &["_", "-", "é"]);
    means("^[\\s\\S]$", &["a", "\n", "é"], &["ab"]);
    means("^[\\D]$", &["a", "é"], &["1"]);
}

#[test]
fn escapes_mean_what_ecma_says() {
    means("^\\u0041\\u{1f600}\\x42\\cJ\\0$", &["A😀B\n\0"], &["A😀B\n0"]);
    means("^\\ud83d\\ude00[\\ud83d\\ude00-\\ud83d\\ude02]$", &["😀😁"], &["😀", "😀😃"]);
    means("^[^\\ud800-\\udfff]$", &["a", "😀", "\u{d7ff}", "\u{e000}"], &[""]);
    means("\\ud800", &[], &["", "a", "\u{fffd}"]);
    means("^\\t\\n\\v\\f\\r$", &["\t\n\u{b}\u{c}\r"], &["tnvfr"]);
    means("^\\<a\\>\\'\\\"\\-\\_\\/\\#\\@\\é$", &["<a>'\"-_/#@é"], &["a"]);
    means("^\\p{Lu}\\P{L}\\p{Script=Greek}[\\p{Nd}\\p{L}]$", &["A1α٣", "É-αz"], &["a1α1", "A1aa"]);
    means("^\\w\\W$", &["a-", "_é", "0 "], &["é-", "ab"]);
    means("^\\s\\S$", &["\u{feff}a", "\u{a0}\u{85}"], &["\u{85}a", "\u{180e}a"]);
    means("^\\d\\D$", &["1a", "1٣"], &["٣a", "11"]);
}

#[test]
fn line_terminators_and_word_boundaries_mean_what_ecma_says() {
    means("^.$", &["a", "é", "\u{85}", "😀"], &["\n", "\r", "\u{2028}", "\u{2029}", ""]);
    means("^a$", &["a"], &["a\n", "\na", "b\na"]);
    means("\\bfoo\\b", &["foo", "-foo-", "éfooé", "foo é"], &["foo_", "1foo", "fo"]);
    means("^é\\Bé$", &["éé"], &["é"]);
    means("^\\B$", &[""], &["a"]);
}

#[test]
fn braces_and_repetitions_mean_what_ecma_says() {
    means("^a{$", &["a{"], &["a", "aa"]);
    means("^{a}$", &["{a}"], &["a"]);
    means("^a{,2}$", &["a{,2}"], &["", "a", "aa"]);
    means("^a{1,x}]$", &["a{1,x}]"], &["a]"]);
    means("^(?:ab){2}c{1,}d{0,1}?$", &["ababc", "ababccd"], &["abc", "abab"]);
    means("^a{0}b{00002}$", &["bb"], &["abb", "b"]);
    means("^(?<year>\\d{4})(?:-(?<month>\\d\\d))?$", &["2026", "2026-11"], &["2026-1"]);
    means("^(a|)b|c$", &["ab", "b!", "xc"], &["a", "cx"]);
    means("^foo", &["foo", "foobar"], &["xfoo", "fo"]);
    means("^(a|b-c|d\\/e)$", &["a", "b-c", "d/e"], &["b", "d", "a\n"]);
    means("^x-\\$\\.$", &["x-$."], &["x-"]);
}

#[test]
fn invalid_patterns_are_refused() {
    for pattern in [
        "*a", "a**", "a+*", "a{2}{3}", "^*", "\\b+", "(|*)", "a{2,1}", "(", ")", "a)", "(?:a",
        "[a", "[^", "[b-a]", "[\\B]", "\\", "a\\", "[\\", "[\\]", "(?", "(?<", "(?<>a)", "(?<1>a)",
        "(?'n'a)", "(?#a)",
    ] {
        assert!(
            matches!(refusal(json!({ "pattern": pattern })), SchemaError::Pattern { .. }),
            "{pattern}"
        );
        let names = json!({"patternProperties": {pattern: true}});
        assert!(matches!(refusal(names), SchemaError::Pattern { .. }), "{pattern}");
    }
}

#[test]
fn escapes_of_other_languages_are_refused_with_the_reason() {
    for (pattern, reason) in [
        ("\\Aa\\z", "an escape of a letter"),
        ("\\a", "an escape of a letter"),
        ("\\h", "an escape of a letter"),
        ("[\\z]", "an escape of a letter"),
        ("\\x{41}", "hexadecimal digits"),
        ("\\x4", "hexadecimal digits"),
        ("\\u{110000}", "`\\u` is not of the form"),
        ("\\u12", "`\\u` is not of the form"),
        ("\\u{}", "`\\u` is not of the form"),
        ("\\U00000041", "an escape of a letter"),
        ("\\pL", "`\\p{Name}`"),
        ("\\p{^L}", "`\\p{Name}`"),
        ("\\p{Nothing}", "unknown property"),
        ("\\c1", "`\\c` has no letter"),
        ("\\01", "octal"),
        ("(a)\\1", "back-reference"),
        ("[\\1]", "back-reference"),
        ("(?<n>a)\\k<n>", "back-reference"),
        ("(?P<n>a)(?P=n)", "back-reference"),
        ("a(?=b)", "look-around"),
        ("a(?!b)", "look-around"),
        ("(?<=a)b", "look-around"),
        ("(?<!a)b", "look-around"),
    ] {
        let said = refusal(json!({ "pattern": pattern })).to_string();
        assert!(said.contains(reason), "{pattern}: {said}");
    }
}

#[test]
fn draft_07_has_the_same_patterns() {
    let schema = |keyword: Value| {
        let mut schema = keyword;
        schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
        Schema::output(schema)
    };
    let value = schema(json!({"pattern": "^\\bfoo (?P<n>[\\w-.])$"})).unwrap();
    assert_eq!(value.validate(&json!("foo .")), Ok(()));
    assert!(value.validate(&json!("foo é")).is_err());
    let name = schema(json!({"patternProperties": {"^[\\w-.]{$": false}})).unwrap();
    assert!(name.validate(&json!({".{": 1})).is_err());
    assert_eq!(name.validate(&json!({".": 1})), Ok(()));
}

#[test]
fn patterns_with_the_same_translation_stay_apart() {
    let schema = json!({"patternProperties": {"\\d": {"type": "integer"}, "[0-9]": {"minimum": 3}, "[\\d]": {"maximum": 5}}});
    let schema = Schema::output(schema).unwrap();
    assert_eq!(schema.validate(&json!({"1": 4})), Ok(()));
    for wrong in [json!({"1": 2}), json!({"1": 6}), json!({"1": 3.5})] {
        assert!(schema.validate(&wrong).is_err(), "{wrong}");
    }
}

#[test]
fn references_lead_through_translated_names() {
    let schema = json!({
        "patternProperties": {"^\\d.$": {"patternProperties": {"/~\\w": {"type": "integer"}}}},
        "properties": {
            "outer": {"$ref": "#/patternProperties/%5E%5Cd.$"},
            "inner": {"$ref": "#/patternProperties/^\\d.$/patternProperties/~1~0\\w"},
            "whole": {"$ref": "#"},
            "data": {"const": {"$ref": "#/patternProperties/^\\d.$"}},
        },
    });
    let schema = Schema::output(schema).unwrap();
    let right = json!({"1x": {"/~a": 1}, "outer": {"/~a": 1}, "inner": 1, "whole": {"inner": 2}, "data": {"$ref": "#/patternProperties/^\\d.$"}});
    assert_eq!(schema.validate(&right), Ok(()));
    for wrong in [
        json!({"1x": {"/~a": "1"}}),
        json!({"outer": {"/~a": "1"}}),
        json!({"inner": "1"}),
        json!({"whole": {"inner": "1"}}),
    ] {
        assert!(schema.validate(&wrong).is_err(), "{wrong}");
    }
}

#[test]
fn messages_about_translated_names_are_those_of_the_original() {
    let schema = json!({"patternProperties": {"^\\d": {"properties": {"colour": true}, "additionalProperties": false}}});
    let said = Schema::output(schema).unwrap().validate(&json!({"1": {"color": 1}})).unwrap_err();
    assert_eq!(said.to_string(), "`/1`: \"color\" is not accepted here; did you mean \"colour\"?");
    let wrong = refusal(
        json!({"patternProperties": {"^\\d": {"patternProperties": {"\\w": {"minimum": "1"}}}}}),
    );
    let SchemaError::Malformed { pointer, .. } = wrong else { panic!("{wrong}") };
    assert_eq!(pointer, "/patternProperties/^\\d/patternProperties/\\w/minimum");
}

#[test]
fn every_name_is_matched_by_the_patterns_of_its_own_place() {
    let patterns: Map<String, Value> =
        (0..40).map(|at| (format!("^\\w{{{at}}}$"), json!({"const": at}))).collect();
    let schema = Schema::output(json!({"patternProperties": patterns})).unwrap();
    for at in 1..40 {
        let name = "a".repeat(at);
        assert_eq!(schema.validate(&json!({name.clone(): at})), Ok(()));
        assert!(schema.validate(&json!({name: at + 1})).is_err());
    }
}
