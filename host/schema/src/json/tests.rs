//! Tests of the bounded parser.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use serde_json::json;

use super::{JsonBounds, JsonError, Position, parse_bounded, parse_object};

const SMALL: JsonBounds = JsonBounds { bytes: 100, depth: 3, members: 5 };

fn refusal(text: &str) -> JsonError {
    parse_bounded(text, SMALL).unwrap_err()
}

#[test]
fn every_value_parses_as_without_bounds() {
    let text = r#"{"a":[1,-2,2.5e1,true],"b":{"é\n😀":null}}"#;
    let bounds = JsonBounds { members: 10, ..SMALL };
    assert_eq!(
        parse_bounded(text, bounds).unwrap(),
        serde_json::from_str::<serde_json::Value>(text).unwrap()
    );
}

#[test]
fn text_at_a_bound_passes_and_beyond_fails() {
    assert!(parse_bounded("[[[]]]", SMALL).is_ok());
    assert!(matches!(refusal("[[[[]]]]"), JsonError::TooDeep { max: 3, .. }));
    assert!(parse_bounded("[1,2,[3,4]]", SMALL).is_ok());
    assert!(matches!(refusal("[1,2,[3,4],5]"), JsonError::TooManyMembers { max: 5, .. }));
    assert!(parse_bounded(&format!("{:100}", 1), SMALL).is_ok());
    assert_eq!(refusal(&format!("{:101}", 1)), JsonError::TooLong { got: 101, max: 100 });
}

#[test]
fn duplicate_key_is_refused_with_its_position() {
    let at = Position { offset: 10, line: 2, column: 3 };
    assert_eq!(refusal("{\"a\":1,\n\"a\":2}"), JsonError::DuplicateKey { key: "a".into(), at });
    assert!(
        matches!(refusal(r#"{"a":{"b":1,"\u0062":1}}"#), JsonError::DuplicateKey { key, .. } if key == "b")
    );
    assert!(parse_bounded(r#"{"a":{"b":1},"b":{"a":1}}"#, SMALL).is_ok());
}

#[test]
fn invalid_json_is_refused_with_position_and_without_text() {
    for text in [
        "",
        "{",
        "[1,]",
        "nul",
        "1 2",
        "{\"a\":1}x",
        "1e999",
        r#""\ud800""#,
        "'secret'",
        "\u{feff}1",
    ] {
        let error = refusal(text);
        assert!(matches!(error, JsonError::Syntax { .. }), "{text:?}: {error}");
        assert!(!error.to_string().contains("secret"));
    }
    let JsonError::Syntax { at, .. } = refusal("[1,\n  x]") else { panic!("a syntax error") };
    assert_eq!(at, Position { offset: 6, line: 2, column: 3 });
}

#[test]
fn object_is_required_and_empty_text_is_an_empty_object() {
    assert!(parse_object("", SMALL).unwrap().is_empty());
    assert_eq!(parse_object(r#"{"a":1}"#, SMALL).unwrap().get("a"), Some(&json!(1)));
    assert_eq!(parse_object("[]", SMALL).unwrap_err(), JsonError::NotAnObject { got: "array" });
}

#[test]
fn hostile_depth_ends_at_the_bound() {
    let text = "[".repeat(1_000_000);
    let bounds = JsonBounds { bytes: 2_000_000, depth: 1_000_000, members: 1_000_000 };
    assert!(parse_bounded(&text, bounds).is_err());
    assert!(matches!(
        parse_bounded(&text, JsonBounds { depth: 64, ..bounds }),
        Err(JsonError::TooDeep { .. })
    ));
}

mod text {
    //! Canonical text is accepted, refused and written like the parsed value.

    use super::{JsonBounds, JsonError, SMALL};
    use crate::budget::{Budget, Exhausted};
    use crate::json::{Json, parse_bounded};
    use std::sync::atomic::{AtomicU64, Ordering};

    const WIDE: JsonBounds = JsonBounds { bytes: 8 << 20, depth: 64, members: 1_000_000 };

    #[test]
    fn text_is_stored_in_canonical_form() {
        for text in [
            r#" {"b" : [1, -2, 2.50, 1e5, 1e400e] } "#,
            r#"{"b": [1, -2, 2.50, 1e5, 1e15, 1e16, -0, 0.0, 18446744073709551615, 18446744073709551616, -9223372036854775808], "a": null}"#,
            r#"{"z": {"y": 1, "x": {"w": [{"b": 1, "a": 2}, {}], "v": true}}, "a": [[], [false]]}"#,
            r##"{"\n": 1, "\\": 2, "\"": 3, "#": 4, "\u0001": 5, "\u0002": 6, "": 7, "é": 8, "e": 9, "]": 10, "[": 11, "\\a": 12, "a\u0001": 13, "a\u0000": 14}"##,
            r#""\ud83d\ude00 \/ \u0041 \b\f\n\r\t \u001f""#,
            "[1,]",
            "{\"a\":1}x",
            "1e999",
            r#""\ud800""#,
            "",
            "nul",
            "[[[[",
        ] {
            let as_value = parse_bounded(text, WIDE).map(|value| value.to_string());
            let as_text = Json::parse(text, WIDE).map(|json| json.to_string());
            assert_eq!(as_text, as_value, "{text}");
        }
    }

    #[test]
    fn text_and_value_have_the_same_bounds() {
        for text in [
            "[[[]]]",
            "[[[[]]]]",
            "[1,2,[3,4]]",
            "[1,2,[3,4],5]",
            r#"{"a":{"b":1,"\u0063":1}}"#,
            "{\"a\":1,\n\"b\":2}",
        ] {
            let as_value = parse_bounded(text, SMALL).map(|value| value.to_string());
            assert_eq!(Json::parse(text, SMALL).map(|json| json.to_string()), as_value, "{text}");
        }
        // `Json` compares keys at the end of the member or of the object, `parse_bounded` earlier.
        for (text, key, offset) in
            [(r#"{"a":{"b":1,"\u0062":1}}"#, "b", 22), ("{\"a\":1,\n\"b\":2,\"a\":2}", "a", 19)]
        {
            assert!(
                matches!(parse_bounded(text, SMALL), Err(JsonError::DuplicateKey { key: named, .. }) if named == key)
            );
            let Err(JsonError::DuplicateKey { key: named, at }) = Json::parse(text, SMALL) else {
                panic!("{text}")
            };
            assert_eq!((named.as_str(), at.offset), (key, offset), "{text}");
        }
        let long = format!("{:101}", 1);
        assert_eq!(Json::parse(&long, SMALL), Err(JsonError::TooLong { got: 101, max: 100 }));
    }

    #[test]
    fn large_object_is_sorted_and_checked_for_duplicates() {
        let members = |keys: &[usize]| {
            let members: Vec<String> =
                keys.iter().map(|key| format!("\"{}\": {key}", key * 7919 % 10_007)).collect();
            format!("{{{}}}", members.join(", "))
        };
        let mut keys: Vec<usize> = (0..10_000).collect();
        let text = members(&keys);
        let value = parse_bounded(&text, WIDE).unwrap();
        assert_eq!(Json::parse(&text, WIDE).unwrap().as_str(), value.to_string());
        keys.push(17);
        let twice = members(&keys);
        let named = |refused| matches!(refused, JsonError::DuplicateKey { key, .. } if key == (17 * 7919 % 10_007).to_string());
        assert!(
            named(Json::parse(&twice, WIDE).unwrap_err())
                && named(parse_bounded(&twice, WIDE).unwrap_err())
        );
    }

    #[test]
    fn long_keys_are_sorted_within_the_budget() {
        for tail in ["", "\\\\", "\\n", "\\u0001", "\\\"x", "\\\\\\u001f"] {
            let key = |at: usize| {
                format!(
                    "{}{tail}{}\\{}{at:03}",
                    "k".repeat(200),
                    ["", "\\n", "z"][at % 3],
                    ["t", "\\", "b"][at % 3]
                )
            };
            let members: Vec<String> =
                (0..300).rev().map(|at| format!("\"{}\":{at}", key(at))).collect();
            let text = format!("{{{}}}", members.join(","));
            let value = parse_bounded(&text, WIDE).unwrap();
            assert_eq!(Json::parse(&text, WIDE).unwrap().as_str(), value.to_string());
        }
        let members: Vec<String> =
            (0..256).rev().map(|at| format!("\"{}\\n{at:03}\":0", "k".repeat(16_000))).collect();
        let text = format!("{{{}}}", members.join(","));
        let budget = Noting::new(u64::MAX);
        Json::parse_within(&text, WIDE, &budget).unwrap();
        // Two checks for each key read, and one for each comparison.
        let checks = budget.checks.load(Ordering::Relaxed);
        assert!(checks >= 256 + 128 * 8, "{checks}");
    }

    #[test]
    fn escaped_string_is_charged_while_it_is_copied() {
        let text = format!("\"{}\\n\"", "x".repeat(1 << 20));
        for read in [
            |text: &str, budget: &Noting| {
                Json::parse_within(text, WIDE, budget).map(|(_, kept)| kept)
            },
            |text: &str, budget: &Noting| {
                crate::json::parse_within(text, WIDE, budget).map(|(_, kept)| kept)
            },
        ] {
            let budget = Noting::new(u64::MAX);
            let kept = read(&text, &budget).unwrap();
            assert!(
                budget.most.load(Ordering::Relaxed) >= 2 << 20 && kept < 3 << 19,
                "{:?} {kept}",
                budget.most
            );
            assert_eq!(budget.held.load(Ordering::Relaxed), kept);
        }
        let key = format!("{{\"{}\":0}}", "x".repeat(1 << 20));
        assert!(crate::json::parse_within(&key, WIDE, &Noting::new(1 << 19)).is_err());
    }

    #[test]
    fn deep_value_serializes_to_readable_json() {
        let deep = |levels: usize| {
            (0..levels).fold(serde_json::json!(1), |inner, _| serde_json::json!([inner]))
        };
        for levels in [119, 120, 121, 140, 500] {
            let json = Json::from(deep(levels));
            let value = serde_json::to_value(&json).unwrap();
            assert_eq!(
                (json.to_value(), value.to_string().as_str()),
                (value.clone(), json.as_str())
            );
            let (within, _) = json.to_value_within(&Noting::new(u64::MAX)).unwrap();
            assert_eq!(within, value);
            assert_eq!(json.as_str().contains('"'), levels > 120, "{levels}");
        }
    }

    #[test]
    fn stored_text_serializes_like_its_value() {
        let value = serde_json::json!({"a": [1, -2, 2.5, null, true, "é\n"], "b": {}, "c": []});
        let json = Json::from(value.clone());
        assert_eq!(json.to_value(), value);
        assert_eq!(serde_json::to_value(&json).unwrap(), value);
        assert_eq!(serde_json::to_string(&json).unwrap(), json.as_str());
        assert_eq!(
            serde_json::to_string_pretty(&json).unwrap(),
            serde_json::to_string_pretty(&value).unwrap()
        );
    }

    /// A budget that records the maximum reservation.
    struct Noting {
        held: AtomicU64,
        most: AtomicU64,
        limit: u64,
        checks: AtomicU64,
        last: u64,
    }

    impl Noting {
        fn new(limit: u64) -> Self {
            let zero = || AtomicU64::new(0);
            Self { held: zero(), most: zero(), limit, checks: zero(), last: u64::MAX }
        }
    }

    impl Budget for Noting {
        fn reserve(&self, bytes: u64) -> Result<(), Exhausted> {
            let held = self.held.load(Ordering::Relaxed) + bytes;
            if held > self.limit {
                return Err(Exhausted::CallMemory { limit: self.limit });
            }
            self.held.store(held, Ordering::Relaxed);
            self.most.fetch_max(held, Ordering::Relaxed);
            Ok(())
        }

        fn release(&self, bytes: u64) {
            self.held.fetch_sub(bytes, Ordering::Relaxed);
        }

        fn check(&self) -> Result<(), Exhausted> {
            let before = self.checks.fetch_add(1, Ordering::Relaxed);
            if before >= self.last { Err(Exhausted::Deadline) } else { Ok(()) }
        }
    }

    /// Returns a text of 3.5 MB, whose value would take 329 MiB.
    fn expanding() -> String {
        format!("[{}]", vec![r#"{"":0}"#; 499_000].join(","))
    }

    #[test]
    fn expanding_text_is_charged_for_its_length() {
        let text = expanding();
        let budget = Noting::new(8 << 20);
        let (json, kept) = Json::parse_within(&text, WIDE, &budget).unwrap();
        assert_eq!(json.as_str(), text);
        assert_eq!(
            (kept, budget.held.load(Ordering::Relaxed)),
            (text.len() as u64, text.len() as u64)
        );
        assert!(budget.most.load(Ordering::Relaxed) < 4 << 20, "{:?}", budget.most);
        assert!(json.footprint() > 300 << 20, "{}", json.footprint());
        budget.release(kept);
        assert_eq!(json.to_value_within(&budget), Err(Exhausted::CallMemory { limit: 8 << 20 }));
        assert_eq!(
            budget.held.load(Ordering::Relaxed),
            0,
            "what was reserved before is given back"
        );
    }

    #[test]
    fn unordered_keys_cost_a_multiple_of_the_text() {
        let members: Vec<String> =
            (0..400_000).rev().map(|key| format!("\"{key:06}\":0")).collect();
        let text = format!("{{{}}}", members.join(","));
        let budget = Noting::new(24 << 20);
        let (_, kept) = Json::parse_within(&text, WIDE, &budget).unwrap();
        assert_eq!(kept, text.len() as u64);
        assert!(Json::parse_within(&text, WIDE, &Noting::new(8 << 20)).is_err());
    }

    #[test]
    fn deadline_ends_parsing_at_any_point() {
        let members: Vec<String> =
            (0..100_000).rev().map(|key| format!("\"{key:06}\":0")).collect();
        for text in [expanding(), format!("{{{}}}", members.join(","))] {
            let free = Noting::new(u64::MAX);
            Json::parse_within(&text, WIDE, &free).unwrap();
            let checks = free.checks.load(Ordering::Relaxed);
            assert!(checks > 100, "{checks}");
            for last in [0, checks / 2, checks - 1] {
                let budget = Noting { last, ..Noting::new(u64::MAX) };
                let ended = Json::parse_within(&text, WIDE, &budget).unwrap_err();
                assert_eq!(ended, JsonError::Exhausted(Exhausted::Deadline));
                assert_eq!(budget.held.load(Ordering::Relaxed), 0);
            }
        }
    }
}
