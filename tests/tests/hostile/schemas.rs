//! Schemas made to fetch, backtrack, explode or deceive, and inputs made to cost time.

use palisade_tests::sample::{Group, leaves_out};
use std::time::{Duration, Instant};

use palisade::{Call, ToolResult};
use palisade_tests::guest::HOSTILE_ECHO;
use palisade_tests::oracle::{self, Oracle, around};
use palisade_tests::wat::Told;
use palisade_tests::{Case, Plugins, Wat};
use serde_json::{Value, json};

use super::ENOUGH;

/// The time limit for rejecting an input, on an idle machine.
const GLANCE: Duration = Duration::from_millis(100);

/// The slowdown of an unoptimised host, for inputs that are checked in full.
const UNOPTIMISED: u32 = if cfg!(debug_assertions) { 10 } else { 1 };

fn with(schema: &str) -> Wat {
    Wat::new(Told::new("raw").with_input(schema))
}

/// Returns why a plugin with this schema is rejected; a good plugin beside it is loaded.
#[track_caller]
fn refused(schema: &str) -> String {
    let bytes = with(schema).build();
    let loaded = oracle::loading(ENOUGH, |world| {
        std::fs::write(world.plugins().join("a-bad.wasm"), &bytes).unwrap();
        std::fs::copy(HOSTILE_ECHO.file(), world.plugins().join("good.wasm")).unwrap();
    });
    assert_eq!(loaded.tools, ["echo"], "{schema:.200}");
    let reason = loaded.reason().to_owned();
    assert!(
        reason.contains("schema is refused") || reason.contains("schemas of its tools"),
        "{schema:.200}: {reason}"
    );
    reason
}

fn property(schema: &Value) -> String {
    json!({"type": "object", "properties": {"p": schema}}).to_string()
}

#[test]
fn external_references_are_refused_without_a_fetch() {
    for reference in [
        "https://example.com/schema.json",
        "http://127.0.0.1:1/x",
        "file:///etc/passwd",
        "//example.com/x",
        "other.json",
        "../outside/secret.txt",
        "#/$defs/missing",
        "urn:uuid:1",
        "data:application/json,{}",
        "jar:file:///x!/y",
    ] {
        refused(&property(&json!({"$ref": reference})));
    }
    for keyword in ["$dynamicRef", "$recursiveRef", "$id"] {
        refused(&property(&json!({keyword: "https://example.com/x"})));
    }
    refused(r#"{"type":"object","$schema":"https://example.com/dialect"}"#);
}

#[test]
fn costly_patterns_are_refused_or_linear() {
    for pattern in [
        "(a)\\1",
        "(?=a)b",
        "(?<!a)b",
        "(a{1000}){1000}",
        "((a{100}){100}){100}",
        "[",
        "(?P<n>a)\\k<n>",
        "a{99999999}",
    ] {
        refused(&property(&json!({"type": "string", "pattern": pattern})));
    }
    for pattern in ["^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "(.*a){12}"] {
        let case = case(
            &property(&json!({"type": "string", "pattern": pattern})),
            &json!({"p": "a".repeat(100_000) + "!"}).to_string(),
        );
        let seen = around(&case);
        assert!(
            seen.result["success"] == true || seen.result["error"]["class"] == "validation_error",
            "{pattern}"
        );
    }
}

#[test]
fn exploding_schemas_are_refused() {
    let doubling: serde_json::Map<String, Value> = (0..40)
        .map(|n| {
            (
                format!("d{n}"),
                json!({"allOf": [{"$ref": format!("#/$defs/d{}", n + 1)}, {"$ref": format!("#/$defs/d{}", n + 1)}]}),
            )
        })
        .collect();
    let mut defs = doubling;
    defs.insert("d40".to_owned(), json!({"type": "string"}));
    refused(
        &json!({"type": "object", "$defs": defs, "properties": {"p": {"$ref": "#/$defs/d0"}}})
            .to_string(),
    );
    refused(
        &json!({"type": "object", "properties": {"p": {"$ref": "#/properties/p"}}}).to_string(),
    );
    let deep = "{\"not\":".repeat(200) + "{}" + &"}".repeat(200);
    refused(&format!("{{\"type\":\"object\",\"properties\":{{\"p\":{deep}}}}}"));
    let wide: String = (0..20_000).map(|n| format!("\"p{n}\":{{\"type\":\"string\"}},")).collect();
    refused(&format!("{{\"type\":\"object\",\"properties\":{{{wide}\"z\":{{}}}}}}"));
    refused(&("[".repeat(100_000) + &"]".repeat(100_000)));
}

#[test]
fn non_object_roots_and_deceptive_names_are_refused() {
    for schema in [
        "true",
        "false",
        "null",
        "[]",
        "\"object\"",
        "1",
        "{}",
        r#"{"type":"array"}"#,
        r#"{"type":["object","null"]}"#,
        "",
        "{",
    ] {
        refused(schema);
    }
    for name in
        ["a\u{202e}b", "a\u{0}b", "a\u{1b}[2J", "a\r\nb", "\u{200b}", "a\u{2028}b", "a\u{e0041}b"]
    {
        refused(&json!({"type": "object", "properties": {name: {"type": "string"}}}).to_string());
    }
}

fn case(schema: &str, input: &str) -> Case {
    Case::new(Plugins::Component("raw".to_owned(), with(schema).build()), "raw")
        .text(input)
        .timeout(ENOUGH)
}

/// Returns inputs that are expensive for a naive validator, each with the expected error class.
fn costly() -> Vec<(String, Option<&'static str>)> {
    let deep = |depth: usize| format!("{{\"p\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
    let keys = |count: usize| {
        format!("{{{}\"z\":1}}", (0..count).map(|n| format!("\"k{n}\":1,")).collect::<String>())
    };
    let objects = |count: usize| {
        format!(
            "{{\"p\":[{}{{}}]}}",
            (0..count).map(|n| format!("{{\"a\":{n}}},")).collect::<String>()
        )
    };
    let invalid = Some("validation_error");
    vec![
        (format!("{{\"p\":\"{}\"}}", "x".repeat(50 << 20)), invalid),
        (deep(10_000), invalid),
        (deep(1_000_000), invalid),
        ("[".repeat(1_000_000), invalid),
        (keys(1_000_000), invalid),
        (objects(100_000), invalid),
        // Inputs just within the limits are checked in full, and fast as well.
        (objects(40_000), None),
        (keys(60_000), None),
        (deep(60), None),
        (format!("{{\"p\":\"{}\"}}", "x".repeat(1_000_000)), None),
        (format!("{{\"p\":[{}0]}}", "0,".repeat(500_000)), invalid),
        (format!("{{\"p\":{}}}", "9".repeat(1_000_000)), invalid),
        (format!("{{\"p\":1e{}}}", "9".repeat(1000)), invalid),
        (format!("{{\"p\":\"{}", "\\u0000".repeat(100_000)), invalid),
        (" ".repeat(1 << 20) + " {}", invalid),
        ("{\"p\":[1,2,3]}".to_owned(), None),
    ]
}

#[test]
fn costly_inputs_are_refused_at_once() {
    if leaves_out(&[Group::C]) {
        return;
    }
    let schema = property(&json!({"uniqueItems": true}));
    let bytes = with(&schema).build();
    let oracle = Oracle::new(|world, builder| {
        std::fs::write(world.plugins().join("raw.wasm"), &bytes).unwrap();
        builder.plugins(world.plugins())
    });
    for (input, class) in costly() {
        let head: String = input.chars().take(40).collect();
        // Take the fastest of three, since other processes may take the CPU.
        let took = std::cell::Cell::new(Duration::MAX);
        // The oracle's deadline covers all three calls, so it is generous.
        let result = oracle.watch(ENOUGH, |stage| {
            let (host, call) = (stage.host.clone(), || Call::new("raw", input.clone()));
            let took = &took;
            async move {
                let mut results = Vec::new();
                for _ in 0..3 {
                    let (call, start) = (call(), Instant::now());
                    results.push(host.dispatch(host.session(), call).await);
                    took.set(took.get().min(start.elapsed()));
                }
                results
            }
        });
        assert_eq!(result[0].error().map(|error| error.class().as_str()), class, "{head}");
        assert!(
            took.get() <= GLANCE * if class.is_some() { 1 } else { UNOPTIMISED },
            "{head}: {:?}",
            took.get()
        );
    }
}

#[test]
fn violations_are_brief_and_never_quote_a_value() {
    let schema = json!({"type": "object", "additionalProperties": {"type": "integer", "maximum": 5, "enum": [1, 2]}})
        .to_string();
    let secret = "hunter2-secret";
    let wrong: serde_json::Map<String, Value> = (0..500)
        .map(|n| (format!("{}{n}", "k".repeat(200)), json!(format!("{secret}{n}"))))
        .collect();
    let seen = around(&case(&schema, &Value::Object(wrong).to_string()));
    let error = seen.error("validation_error");
    assert!(
        error["message"].as_str().unwrap().len() <= 4 << 10,
        "{}",
        error["message"].as_str().unwrap().len()
    );
    let listed = error["errors"].as_array().unwrap();
    assert!(!listed.is_empty() && listed.len() <= 10, "{}", listed.len());
    assert!(!seen.result.to_string().contains(secret), "{:#}", seen.result);
    let seen = around(&case(&schema, &json!({"a": 1}).to_string()));
    assert_eq!(seen.output(), "done");
}

#[test]
fn half_mebibyte_key_makes_no_long_message() {
    let schema =
        json!({"type": "object", "additionalProperties": false, "properties": {}}).to_string();
    for input in [json!({"k".repeat(500_000): 1}), json!({"\u{1b}[2J\u{202e}": 1})] {
        let seen = around(&case(&schema, &input.to_string()));
        let message = seen.message("validation_error");
        assert!(message.len() <= 4 << 10 && !message.contains('\u{1b}'), "{} bytes", message.len());
        assert!(seen.result.to_string().len() < 16 << 10);
    }
}

#[test]
fn many_hostile_pairs_are_answered() {
    let oracle = Oracle::new(|_, builder| builder);
    let results: Vec<ToolResult> = oracle.watch(ENOUGH, |stage| {
        let host = stage.host.clone();
        async move {
            let mut results = Vec::new();
            for input in [
                "",
                "{",
                "[]",
                "null",
                "{\"text\":1}",
                "{\"text\":null}",
                "{\"text\":\"a\",\"text\":\"b\"}",
                "{\"text\":\"\\ud800\"}",
                "\u{feff}{}",
                "{}{}",
            ] {
                results
                    .push(host.dispatch(host.session(), Call::new("echo", input.to_owned())).await);
            }
            results
        }
    });
    assert!(
        results.iter().all(|result| result
            .error()
            .is_some_and(|error| error.class().as_str() == "validation_error")),
        "{results:?}"
    );
}
