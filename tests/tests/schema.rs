//! Tests schemas: each is checked against a documented subset when its plugin is loaded, and no
//! invalid input reaches a tool.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]
#![allow(clippy::needless_pass_by_value, reason = "a literal reads better than a reference to one")]

#[path = "schema/accepted.rs"]
mod accepted;
#[path = "schema/refused.rs"]
mod refused;
#[path = "schema/typed.rs"]
mod schema_typed;
#[path = "schema/validated.rs"]
mod validated;

use palisade::{CacheMode, Host, plugins::Shipped};
use palisade_tests::guest::cache;
use palisade_tests::wat::Told;
use palisade_tests::{Case, Plugins, Wat, World, is_tested};
use serde_json::Value;

palisade_tests::foreach_schema!(is_tested);

/// Returns a plugin whose only tool has this schema.
fn plugin(schema: &Value) -> Vec<u8> {
    Wat::new(Told::new("raw").with_input(schema.to_string())).build()
}

/// Returns why plugins with these schemas are rejected, or an empty text for loaded ones. All are
/// loaded together, each from a file of its own.
fn reasons(schemas: &[Value]) -> Vec<String> {
    let world = World::new();
    for (number, schema) in schemas.iter().enumerate() {
        let tool = Told::new(&format!("tool_{number:04}")).with_input(schema.to_string());
        std::fs::write(world.plugins().join(format!("{number:04}.wasm")), Wat::new(tool).build())
            .unwrap();
    }
    let builder =
        Host::builder().workspace(world.root()).shipped(Shipped::LeftOut).plugins(world.plugins());
    let host = builder.cache(CacheMode::Directory(cache())).build().unwrap();
    let reason = |number: usize| {
        let refused = host
            .rejected()
            .into_iter()
            .find(|rejected| rejected.file.ends_with(&format!("/{number:04}.wasm")));
        let loaded = host.registry().has(&format!("tool_{number:04}"));
        assert_eq!(refused.is_none(), loaded, "a plugin is loaded or refused, and never both");
        refused.map(|rejected| rejected.reason.clone()).unwrap_or_default()
    };
    (0..schemas.len()).map(reason).collect()
}

/// Returns a call of a tool with this schema, to be made through the library and the program.
fn call(schema: &Value, input: &str) -> Case {
    Case::new(Plugins::Component("raw".to_owned(), plugin(schema)), "raw").text(input)
}
