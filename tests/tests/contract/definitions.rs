//! Tool definitions of a plugin, as the registry and the program show them.

use std::time::Duration;

use palisade::{CacheMode, Host, SideEffects, plugins::Shipped};
use palisade_tests::guest::{CONTRACT_DEFINITIONS, cache};
use palisade_tests::{Case, Program, World};
use serde_json::{Value, json};

fn host() -> Host {
    let builder = Host::builder().shipped(Shipped::LeftOut).cache(CacheMode::Directory(cache()));
    builder.plugins(CONTRACT_DEFINITIONS.directory()).build().unwrap()
}

fn inspected(tool: &str) -> Value {
    let world = World::new();
    let program = Program::new(&world)
        .args(["--no-builtin", "--plugins"])
        .args([CONTRACT_DEFINITIONS.directory()]);
    program.args(["inspect", tool, "--json"]).run().exits_with(0).json()
}

#[test]
fn every_definition_field_arrives() {
    let host = host();
    let tool = host.registry().get("every_field").unwrap();
    let definition = tool.definition();
    assert_eq!(definition.name().as_str(), "every_field");
    assert_eq!(definition.title(), Some("Every field"));
    assert_eq!(definition.description(), "Has every field.\n\nAnd a second paragraph.");
    assert_eq!(definition.side_effects(), SideEffects::Read);
    assert!(definition.is_idempotent());
    assert_eq!(definition.timeout(), Some(Duration::from_millis(1500)));
    assert_eq!(Value::Object(definition.metadata().clone()), json!({"vendor": {"key": [1, 2]}}));
    assert_eq!(definition.parameters()["properties"]["count"]["description"], "The count.");
    let output = definition.output_schema().unwrap().as_value();
    assert_eq!(output["required"], json!(["counted"]));
}

#[test]
fn program_shows_every_definition_field() {
    let shown = inspected("every_field");
    let host = host();
    let tool = host.registry().get("every_field").unwrap();
    let definition = tool.definition();
    assert_eq!(shown["name"], definition.name().as_str());
    assert_eq!(shown["title"], "Every field");
    assert_eq!(shown["description"], definition.description());
    assert_eq!(&shown["parameters"], definition.parameters());
    assert_eq!(&shown["output_schema"], definition.output_schema().unwrap().as_value());
    assert_eq!(shown["side_effects"], "read");
    assert_eq!(shown["idempotent"], true);
    assert_eq!(shown["timeout_ms"], 1500);
    assert_eq!(shown["metadata"], json!({"vendor": {"key": [1, 2]}}));
    assert_eq!(shown["plugin"], "contract_definitions");
    assert_eq!(shown["digest"], host.plugins()[0].digest().to_string());
}

#[test]
fn omitted_definition_fields_are_absent() {
    let shown = inspected("bare");
    assert_eq!(shown["title"], Value::Null);
    assert_eq!(shown["output_schema"], Value::Null);
    assert_eq!(shown["timeout_ms"], Value::Null);
    assert_eq!(shown["metadata"], json!({}));
    assert_eq!(shown["idempotent"], false);
}

#[test]
fn each_of_the_five_classes_arrives() {
    let host = host();
    let class = |tool: &str| host.registry().get(tool).unwrap().definition().side_effects();
    let found = ["bare", "every_field", "writes", "executes", "sends"].map(class);
    assert_eq!(found, SideEffects::ALL);
}

#[test]
fn tools_keep_the_order_of_their_plugin() {
    assert_eq!(
        host().registry().tool_names(),
        ["every_field", "bare", "writes", "executes", "sends"]
    );
}

#[test]
fn call_runs_the_named_tool() {
    assert_eq!(Case::new(CONTRACT_DEFINITIONS, "bare").check().output(), "bare");
    let counted = Case::new(CONTRACT_DEFINITIONS, "every_field").input(json!({"count": 3})).check();
    assert_eq!(counted.output(), r#"{"counted":3}"#);
}
