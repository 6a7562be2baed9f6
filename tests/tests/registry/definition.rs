//! Tool definitions and their properties, without any call.

use palisade::{Definition, DefinitionError, SideEffects, Tool};
use palisade_tests::native::echo;
use serde_json::json;

use super::host;

#[test]
fn definition_has_name_description_and_parameters() {
    let (_world, host) = host();
    let tool = host.registry().get("every_field").unwrap();
    let definition = tool.definition();
    assert_eq!(definition.name().as_str(), "every_field");
    assert!(definition.description().starts_with("Has every field."));
    assert_eq!(definition.parameters()["properties"]["count"]["type"], "integer");
}

#[test]
fn definition_is_immutable() {
    let (_world, host) = host();
    let held = host.registry().get("bare").unwrap().definition().clone();
    let before = held.to_json();
    let changed = held.clone().with_title("Another").unwrap();
    assert!(held.clone().with_title(&"語".repeat(128)).is_ok(), "a title has up to 128 characters");
    assert!(held.clone().with_title(&"語".repeat(129)).is_err());
    assert_eq!((held.title(), changed.title()), (None, Some("Another")));
    host.registry().unregister("bare").unwrap();
    assert_eq!(held.to_json(), before);
}

#[test]
fn plain_form_has_exactly_three_fields() {
    let (_world, host) = host();
    let plain = host.registry().get("bare").unwrap().definition().to_json();
    let keys: Vec<&String> = plain.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["description", "name", "parameters"]);
}

#[test]
fn input_can_be_checked_without_a_call() {
    let (_world, host) = host();
    let tool = host.registry().get("every_field").unwrap();
    assert!(tool.definition().validate_params(&json!({"count": 1})).is_ok());
    let wrong = tool.definition().validate_params(&json!({"count": "one"})).unwrap_err();
    let [violation] = wrong.as_slice() else { panic!("{wrong}") };
    assert_eq!(violation.pointer, "/count");
    assert!(!violation.reason.is_empty());
}

#[test]
fn invalid_definition_cannot_be_created() {
    let make = |name: &str, description: &str, schema| {
        Definition::new(name, description, SideEffects::None, schema)
    };
    let object = || json!({"type": "object"});
    assert!(matches!(make("Not-a-name", "A tool.", object()), Err(DefinitionError::Name(_))));
    assert!(matches!(
        make("t", " ", object()),
        Err(DefinitionError::Text { part: "description", .. })
    ));
    assert!(matches!(
        make("t", "A tool.", json!({"type": "string"})),
        Err(DefinitionError::Input(_))
    ));
}

#[test]
fn tool_has_the_fields_of_its_definition_and_is_send_and_sync() {
    fn can_be_shared<T: Send + Sync + ?Sized>(_: &T) {}
    let (_world, host) = host();
    let (plugin, native) = (host.registry().get("bare").unwrap().instantiate(), echo("native")());
    for (tool, name) in [(plugin, "bare"), (native, "native")] {
        can_be_shared::<dyn Tool>(&*tool);
        assert_eq!((tool.name(), tool.definition().name().as_str()), (name, name));
        assert_eq!(tool.description(), tool.definition().description());
        assert_eq!(tool.parameters(), tool.definition().parameters());
    }
}
