//! The size of a pattern is known before it is compiled, and bounded for a schema and for several.

use serde_json::{Map, Value, json};

use super::super::matcher::Matcher;
use super::super::reading::Reading;
use super::super::translation::translate;
use super::super::{
    Building, MAX_PATTERN_BYTES, MAX_PATTERNS, MAX_PATTERNS_TOGETHER, PatternAllowance, Schema,
    SchemaError,
};

/// Patterns of every construct, and those whose automata are large in a way of their own.
fn patterns() -> Vec<String> {
    let mut bits = 1_u32;
    let mut letter = || {
        bits = bits.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from(b'a' + (bits >> 24) as u8 % 26)
    };
    let mut words = |count: usize, length: usize| -> String {
        let all = (0..count).map(|_| (0..length).map(|_| letter()).collect());
        all.collect::<Vec<String>>().join("|")
    };
    let mut patterns: Vec<String> = [
        "",
        "a",
        "^a$",
        ".",
        "^.{1,200}$",
        "é",
        "[é-ü]{3,}",
        "\\d+",
        "\\w*?",
        "\\S",
        "[^]",
        "[]",
        "\\b\\B",
        "a{2000}",
        "a{0,900}",
        "(?:ab?){300}",
        "(?:a|b)*a(?:a|b){2000}c",
        "^(?:[b-y]{3})*$",
        "(a)|(b)|(c)",
        "(?:(?:a{3}){3}){3}",
        "(?:a?){100}",
        "(?:a*){100}",
        "(?:a*)*",
        "(?:|a)+",
        "(?:){99}",
        "(?:\\b){0}a",
        "a{0}",
        "\\p{L}",
        "\\p{L}{1,9}",
        "[^\\p{L}]{5}",
        "\\P{Lu}?",
        "[\\p{L}\\p{N}_.-]{1,7}",
        "\\p{Greek}{9}|\\p{Han}",
        "[\\u{10000}-\\u{10ffff}]{20}",
        "[\\0-\\u{10ffff}]{20}",
        "[aeiouäöü]{64}",
        "😀{7,9}|😁+",
        "(?:é|è|ê|ë|e){50}",
        "^(?:a{9}b{9}|a{8}c{9}|d+)$",
        "(?:[a-f0-9]{2}:){15}[a-f0-9]{2}",
        "^(?<y>\\d{4})-(?<m>\\d{2})-(?<d>\\d{2})$",
        "(((((((((((a)))))))))))",
    ]
    .map(str::to_owned)
    .to_vec();
    for (count, length) in
        [(1, 900), (3, 300), (60, 9), (100, 9), (100, 30), (240, 9), (600, 4), (900, 3)]
    {
        patterns.push(words(count, length));
        patterns.push(format!("^({})$", words(count, length)));
        patterns.push(format!("x+(?:{})\\d", words(count, length)));
    }
    patterns
}

fn reading(pattern: &str) -> Result<Reading, &'static str> {
    Reading::new(&translate(pattern)?)
}

#[test]
fn compiled_patterns_take_at_most_the_counted_memory() {
    for pattern in patterns() {
        let schema = Schema::output(json!({ "pattern": pattern }));
        let counted = schema.unwrap_or_else(|why| panic!("{pattern:.80}: {why}")).pattern_cost().1;
        let taken = Matcher::new(&pattern).unwrap().size();
        assert!(taken <= counted, "{taken} bytes, counted {counted}: {pattern:.80}");
    }
}

/// Words that begin alike share states, which is not counted.
#[test]
fn counted_size_is_near_the_compiled_one() {
    for pattern in patterns() {
        let counted = reading(&pattern).unwrap().size.together();
        let taken = Matcher::new(&pattern).unwrap().size();
        assert!(
            counted <= 12 * taken + (4 << 10),
            "{taken} bytes, counted {counted}: {pattern:.80}"
        );
    }
}

#[test]
fn pattern_that_is_too_large_is_not_compiled() {
    for pattern in [
        "(?:a{1000}){1000}",
        "a{99999999999}",
        "(?:\\p{L}{9}){9999}",
        "((a{100}){100}){100}",
        "\\S{9999}",
    ] {
        assert_eq!(
            reading(pattern).err(),
            Some("it would compile to more than 1 MiB"),
            "{pattern}"
        );
    }
    assert!(reading("[a-z]{14000}").unwrap().size.limit() > MAX_PATTERN_BYTES * 9 / 10);
}

/// Uniting large classes takes long, and nothing of it may remain in the compiled pattern.
#[test]
fn property_counts_once_in_its_brackets() {
    let class = format!("[{}x]", r"\p{L}\p{Lu}".repeat(300));
    assert_eq!(translate(&class).unwrap(), r"[x\p{Lu}\p{L}]");
    let negated = format!("[^{}]", r"\P{L}".repeat(600));
    assert_eq!(translate(&negated).unwrap(), r"[^\P{L}]");
}

#[test]
fn both_engines_read_the_same_text() {
    for pattern in patterns().iter().map(String::as_str).chain([
        "[&&~~+--]",
        "[\\W-a]",
        "\\#\\-\\&",
        "[^\\s\\d]",
    ]) {
        let translated = translate(pattern).unwrap();
        // The validator's own translation, which has no further effect.
        assert_eq!(
            jsonschema_regex::to_rust_regex(&translated).unwrap(),
            translated,
            "{pattern:.80}"
        );
    }
}

/// Returns a schema with this many different patterns of some 200 KiB each.
fn large(count: usize) -> Value {
    let properties: Map<String, Value> = (0..count)
        .map(|at| (format!("p{at}"), json!({"pattern": format!("^[a-z]{{1400}}{at}$")})))
        .collect();
    json!({"type": "object", "properties": properties})
}

#[test]
fn patterns_of_a_schema_are_bounded_together() {
    let cost = Schema::output(large(1)).unwrap().pattern_cost().1;
    let most = MAX_PATTERNS_TOGETHER / cost;
    assert!(most < MAX_PATTERNS / 4, "{most} patterns are not large");
    assert!(Schema::output(large(most - 1)).is_ok());
    let refused = Schema::output(large(most + 1)).unwrap_err();
    let SchemaError::Pattern { keyword, pointer, why } = refused else { panic!("{refused}") };
    assert_eq!(keyword, "pattern");
    assert!(
        pointer.starts_with("/properties/p") && why.contains("more than 4 MiB"),
        "{pointer}: {why}"
    );
}

#[test]
fn patterns_of_several_schemas_are_charged_before_they_are_compiled() {
    let text = large(8).to_string();
    let cost = Schema::output(large(8)).unwrap().pattern_cost();
    let mut allowance = PatternAllowance::new(cost.0 * 2, cost.1 * 2 + cost.1 / 2);
    for building in [Building::Now, Building::AtFirstUse] {
        assert!(Schema::parse_input_within(&text, building, &mut allowance).is_ok());
    }
    let refused = Schema::parse_output_within(&text, Building::Now, &mut allowance).unwrap_err();
    let SchemaError::PatternAllowance { keyword, pointer } = refused else { panic!("{refused}") };
    assert_eq!((keyword, pointer.as_str()), ("pattern", "/properties/p0/pattern"));
    let mut bytes = PatternAllowance::new(100, cost.1 / 2);
    let refused = Schema::parse_input_within(&text, Building::Now, &mut bytes).unwrap_err();
    assert!(matches!(refused, SchemaError::PatternAllowance { .. }), "{refused}");
    assert!(refused.to_string().contains("/properties/p"), "{refused}");
}

#[test]
fn names_are_charged_for_their_working_memory() {
    let names = |pattern: &str| {
        Schema::output(json!({"patternProperties": {pattern: true}})).unwrap().pattern_cost().1
    };
    let value =
        |pattern: &str| Schema::output(json!({ "pattern": pattern })).unwrap().pattern_cost().1;
    for pattern in ["^[a-z]{200}(a|b)", "^\\w{3,9}\\b", "\\p{L}"] {
        assert!(names(pattern) > value(pattern) + 2 * size_of::<usize>(), "{pattern}");
    }
}
