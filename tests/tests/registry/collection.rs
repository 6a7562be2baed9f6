//! Registering, finding, listing and removing tools.

use std::sync::Arc;

use palisade::formats::Format;
use palisade::registry::{RegisterError, Registry};
use palisade_tests::native::echo;
use serde_json::json;

use super::host;

const PLUGIN: [&str; 5] = ["every_field", "bare", "writes", "executes", "sends"];

#[test]
fn registering_can_be_chained() -> Result<(), RegisterError> {
    let registry = Registry::new();
    registry.register(echo("one"))?.register(echo("two"))?.register(echo("three"))?;
    assert_eq!(registry.tool_names(), ["one", "two", "three"]);
    Ok(())
}

#[test]
fn duplicate_name_is_refused_with_a_free_one() {
    let (_world, host) = host();
    let registry = host.registry();
    let refused = registry.register(echo("bare")).err().unwrap();
    let refused = refused.duplicate().unwrap();
    assert_eq!((refused.name(), refused.suggestion()), ("bare", "bare_2"));
    assert!(refused.to_string().contains("already exists"), "{refused}");
    assert_eq!(registry.tool_names(), PLUGIN);
    registry.register(echo(refused.suggestion())).unwrap();
    let refused = registry.register(echo("bare")).err().unwrap();
    assert_eq!(refused.duplicate().unwrap().suggestion(), "bare_3");
}

#[test]
fn tool_is_found_by_its_name() {
    let (_world, host) = host();
    assert_eq!(host.registry().get("bare").unwrap().definition().name().as_str(), "bare");
    assert!(host.registry().has("bare"));
    assert!(!host.registry().has("Bare"));
}

#[test]
fn unknown_name_is_an_error_with_the_nearest() {
    let (_world, host) = host();
    let missing = host.registry().get("evry_field").err().unwrap();
    assert_eq!(
        (missing.name(), missing.nearest()),
        ("evry_field", &["every_field".to_owned()][..])
    );
    assert!(host.registry().get("zzz").err().unwrap().nearest().is_empty());
}

#[test]
fn size_names_and_tools_agree() {
    let (empty, (_world, host)) = (Registry::new(), host());
    assert_eq!((empty.is_empty(), empty.len(), empty.tools().len()), (true, 0, 0));
    let registry = host.registry();
    assert!(!registry.is_empty());
    assert_eq!((registry.len(), registry.tools().len(), registry.definitions().len()), (5, 5, 5));
    let names: Vec<String> =
        registry.tools().iter().map(|tool| tool.definition().name().to_string()).collect();
    assert_eq!(names, registry.tool_names());
}

#[test]
fn listing_has_name_description_and_schema() {
    let (_world, host) = host();
    assert_eq!((host.registry().definitions().len(), host.registry().tools().len()), (5, 5));
    for (listed, tool) in host.registry().definitions().iter().zip(host.registry().tools()) {
        let definition = tool.definition();
        let expected = json!({"name": definition.name().as_str(), "description": definition.description(), "parameters": definition.parameters()});
        assert_eq!(*listed, expected);
    }
}

#[test]
fn listing_is_cached_until_a_change() {
    let (_world, host) = host();
    let registry = host.registry();
    let first = registry.definitions();
    assert!(Arc::ptr_eq(&first, &registry.definitions()), "nothing changed, so it is the same");
    registry.register(echo("more")).unwrap();
    let second = registry.definitions();
    assert_eq!((first.len(), second.len()), (5, 6));
    registry.unregister("more").unwrap();
    assert_eq!(registry.definitions().len(), 5);
}

#[test]
fn openai_export_is_strict_and_cached_until_a_change() {
    let (_world, host) = host();
    let registry = host.registry();
    let first = registry.export(Format::OpenAi);
    for (tool, name) in first.as_array().unwrap().iter().zip(PLUGIN) {
        assert_eq!((&tool["type"], &tool["function"]["name"]), (&json!("function"), &json!(name)));
        assert!(
            tool["function"]["strict"].is_boolean() && tool["function"]["parameters"].is_object()
        );
        assert!(!tool["function"]["description"].as_str().unwrap().is_empty());
    }
    assert!(Arc::ptr_eq(&first, &registry.export(Format::OpenAi)));
    registry.register(echo("more")).unwrap();
    let second = registry.export(Format::OpenAi);
    assert_eq!((first.as_array().unwrap().len(), second.as_array().unwrap().len()), (5, 6));
}

#[test]
fn subset_has_the_named_tools_and_is_independent() {
    let (_world, host) = host();
    let subset = host.registry().subset(["sends", "bare", "sends"]).unwrap();
    assert_eq!(subset.tool_names(), ["sends", "bare"]);
    subset.register(echo("own")).unwrap();
    assert!(!host.registry().has("own"));
    host.registry().unregister("bare").unwrap();
    assert!(subset.has("bare"));
}

#[test]
fn subset_with_an_unknown_name_is_an_error() {
    let (_world, host) = host();
    assert_eq!(host.registry().subset(["bare", "bear"]).err().unwrap().name(), "bear");
}

#[test]
fn unregistered_name_can_be_used_again() {
    let (_world, host) = host();
    host.registry().unregister("bare").unwrap();
    assert!(!host.registry().has("bare"));
    assert_eq!(host.registry().unregister("bare").err().unwrap().name(), "bare");
    host.registry().register(echo("bare")).unwrap();
    assert_eq!(host.registry().tool_names().last().map(String::as_str), Some("bare"));
}

#[test]
fn clone_is_the_same_registry() {
    let (_world, host) = host();
    let clone = host.registry().clone();
    clone.register(echo("seen_by_all")).unwrap();
    assert!(host.registry().has("seen_by_all"));
    host.registry().unregister("seen_by_all").unwrap();
    assert!(!clone.has("seen_by_all"));
}
