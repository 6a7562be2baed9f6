//! Numbers, lists, paths and errors that cost the host time: the deadline of the call holds.

use palisade_tests::sample::{Group, leaves_out};
use std::cell::Cell;
use std::time::{Duration, Instant};

use palisade::{Call, ToolResult};
use palisade_tests::oracle::{Oracle, around, around_both, served};
use palisade_tests::wat::Told;
use palisade_tests::{Case, Plugins, Wat, World, expanding_json};
use serde_json::{Value, json};

use super::{ENOUGH, raw};

/// The timeout of calls that would otherwise take longer.
const SECOND: Duration = Duration::from_secs(1);
/// The address of a long text in a guest.
const FAR: u32 = 131_072;

fn plugin(plugin: &Wat) -> Plugins {
    Plugins::Component("raw".to_owned(), plugin.build())
}

/// Returns the schema of an object with the property `p`.
fn with(p: &Value) -> Value {
    json!({"type": "object", "properties": {"p": p}})
}

/// Returns schemas of `p` with values that are short to write and expensive to compare.
fn costly() -> Vec<(&'static str, Value, String)> {
    let numbers = |count: usize, number: &str| {
        format!("[{}{number}]", format!("{number},").repeat(count - 1))
    };
    let multiples: Vec<Value> = (0..1_900).map(|_| json!({"multipleOf": 0.5})).collect();
    let huge = numbers(5_200, "1.797e308");
    let long: Vec<Value> =
        (0..200).map(|number| json!(format!("{}{number}", "x".repeat(1_000)))).collect();
    let text = format!("\"{}\"", "x".repeat(1_000));
    vec![
        ("multiples", json!({"type": "array", "items": {"allOf": multiples}}), huge.clone()),
        (
            "contains",
            json!({"type": "array", "contains": {"allOf": multiples_of(0.3, 900)}}),
            huge.clone(),
        ),
        (
            "exponents",
            json!({"type": "array", "items": {"allOf": multiples_of(1e-300, 400)}}),
            huge,
        ),
        ("unique", json!({"type": "array", "uniqueItems": true}), numbers(90_000, "1")),
        ("enum", json!({"type": "array", "items": {"enum": long}}), numbers(4_000, &text)),
    ]
}

fn multiples_of(number: f64, count: usize) -> Vec<Value> {
    (0..count).map(|_| json!({"multipleOf": number})).collect()
}

/// Checks that the outcome is neither a crash of the guest nor unexpected; the oracle checks the
/// deadline.
#[track_caller]
fn is_judged(name: &str, result: &Value) {
    let (class, kind) = (result["error"]["class"].as_str(), &result["error"]["detail"]["kind"]);
    let judged = ["timeout", "resource_exhausted", "validation_error"].map(Some).contains(&class)
        || kind == "contract";
    assert!(result["success"] == true || judged, "{name}: {class:?} {kind}");
}

#[test]
fn output_validation_ends_with_the_call() {
    if leaves_out(&[Group::H]) {
        return;
    }
    for (name, schema, value) in costly() {
        let plugin = plugin(&expanding_json::described(
            "raw",
            &with(&schema).to_string(),
            &format!("{{\"p\":{value}}}"),
        ));
        is_judged(name, &around(&Case::new(plugin, "raw").timeout(SECOND)).result);
    }
    let fine = expanding_json::described(
        "raw",
        &with(&json!({"multipleOf": 0.5})).to_string(),
        "{\"p\":1.5}",
    );
    assert_eq!(
        around_both(&Case::new(plugin(&fine), "raw").timeout(ENOUGH)).output(),
        "{\"p\":1.5}"
    );
}

#[test]
fn input_validation_ends_with_the_call() {
    for (name, schema, value) in costly() {
        let told = Told::new("raw").with_input(with(&schema).to_string());
        let case = Case::new(plugin(&Wat::new(told)), "raw").text(&format!("{{\"p\":{value}}}"));
        is_judged(name, &around(&case.timeout(SECOND)).result);
    }
}

#[test]
fn validation_delays_no_other_call_of_a_server() {
    let (_, schema, value) = costly().swap_remove(0);
    let json = format!("{{\"p\":{value}}}");
    let output = expanding_json::described("raw", &with(&schema).to_string(), &json);
    assert_eq!(served(&Case::new(plugin(&output), "raw").timeout(SECOND), 1).answers.len(), 1);
    let input = Wat::new(Told::new("raw").with_input(with(&schema).to_string()));
    assert_eq!(
        served(&Case::new(plugin(&input), "raw").text(&json).timeout(SECOND), 1).answers.len(),
        1
    );
}

#[test]
fn path_search_ends_with_the_call() {
    let schema =
        with(&json!({"type": "array", "items": {"type": "string", "format": "workspace-path"}}));
    let case = |paths: usize, there: usize, missing: usize| {
        let told = Told { class: 1, ..Told::new("raw").with_input(schema.to_string()) };
        let path = format!("{}{}x", "d/".repeat(there), "m/".repeat(missing));
        let paths: Vec<String> = (0..paths).map(|number| format!("{path}{number}")).collect();
        let arrange = move |world: &World| {
            world.folder(&"d/".repeat(there));
        };
        Case::new(plugin(&Wat::new(told)), "raw")
            .input(json!({"p": paths}))
            .timeout(SECOND)
            .arrange(arrange)
    };
    is_judged("paths", &around(&case(60, 512, 512)).result);
    assert_eq!(around_both(&case(2, 3, 0)).output(), "done");
}

/// Returns a call whose list schema has many path properties for each element, with elements that
/// have none.
fn pathless(elements: usize) -> Case {
    let path = json!({"type": "string", "format": "workspace-path"});
    let paths: serde_json::Map<String, Value> =
        (0..1_990).map(|at| (format!("p{at:04}"), path.clone())).collect();
    let schema = with(&json!({"type": "array", "items": {"properties": paths}}));
    let told = Told { class: 1, ..Told::new("raw").with_input(schema.to_string()) };
    Case::new(plugin(&Wat::new(told)), "raw")
        .text(&format!("{{\"p\":[{}{{}}]}}", "{},".repeat(elements - 1)))
}

#[test]
fn path_search_without_paths_is_fast() {
    assert_eq!(around_both(&pathless(99_000).timeout(SECOND)).output(), "done");
    assert_eq!(served(&pathless(10_000).timeout(SECOND), 4).answers.len(), 4);
}

#[test]
fn error_about_many_names_uses_little_memory() {
    let branch = json!({"properties": {"a": {}}, "additionalProperties": false});
    let told = || {
        Told::new("raw").with_input(with(&json!({"anyOf": vec![branch.clone(); 33]})).to_string())
    };
    let said = |names: usize| {
        let names: serde_json::Map<String, Value> =
            (0..names).map(|at| (format!("{at:04x}"), json!(0))).collect();
        let case =
            Case::new(plugin(&Wat::new(told())), "raw").input(json!({"p": names})).memory_mib(16);
        around_both(&case.timeout(ENOUGH)).message("validation_error").to_owned()
    };
    assert!(said(2).contains("`/p`: matches none of 33 alternatives; the closest"));
    assert!(said(95_000).contains("does not conform to its schema, and is too large to say where"));
}

/// Returns the fastest of five calls of a plugin that does not crash, since other processes may
/// take the CPU.
fn quickest(plugin: &Wat) -> Duration {
    let bytes = plugin.build();
    let oracle = Oracle::new(|world, builder| {
        std::fs::write(world.plugins().join("raw.wasm"), &bytes).unwrap();
        builder.plugins(world.plugins())
    });
    let took = Cell::new(Duration::MAX);
    let results = oracle.watch(ENOUGH, |stage| {
        let (host, took) = (stage.host.clone(), &took);
        async move {
            let mut results = Vec::new();
            for _ in 0..5 {
                let start = Instant::now();
                results.push(host.dispatch(host.session(), Call::new("raw", json!({}))).await);
                took.set(took.get().min(start.elapsed()));
            }
            results
        }
    });
    let crashed = |result: &ToolResult| {
        result.error().is_some_and(|error| error.to_json()["detail"]["kind"] == "trap")
    };
    assert!(!results.iter().any(crashed), "{:.200}", results[0].to_string());
    took.get()
}

/// Returns code that fills memory with control characters, which are escaped to several characters
/// each.
fn unseen(length: u32) -> String {
    format!(
        "(drop (memory.grow (i32.const {}))) (memory.fill (i32.const {FAR}) (i32.const 27) (i32.const {length}))",
        length / 65_536 + 3
    )
}

/// The time limit for a text that is truncated to 128 bytes.
const GLANCE: Duration = Duration::from_millis(100);

#[test]
fn huge_error_field_is_cut_before_escaping() {
    let wrong = |length: u32| {
        raw().answering(&unseen(length), &[(256, 1), (260, 0), (264, FAR), (268, length)])
    };
    assert!(quickest(&wrong(100)) <= GLANCE);
    let took = quickest(&wrong(4 << 20));
    assert!(took <= GLANCE, "{took:?}");
}

#[test]
fn claimed_files_are_cut_before_parsing() {
    let list = "(local.set $at (i32.const 5000000))
        (loop (i32.store (local.get $at) (i32.const 131072)) (i32.store offset=4 (local.get $at) (i32.const 400))
          (br_if 0 (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 8))) (i32.const 5080000))))";
    let claims = |count: u32| {
        let code = format!("(local $at i32) {} {list}", unseen(5_000_000));
        raw().answering(&code, &[(268, 1), (280, 5_000_000), (284, count)])
    };
    let (few, many) = (quickest(&claims(10)), quickest(&claims(10_000)));
    assert!(many <= few + GLANCE, "{few:?}, {many:?}");
}
