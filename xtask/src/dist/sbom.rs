//! The bill of materials of the program, in CycloneDX 1.6.
//!
//! It is made from `cargo tree` and `cargo metadata`: `cargo-cyclonedx` would be a program to
//! install, and lists the dependencies of the tests and of every system; `cyclonedx-bom` is its
//! library of 20 crates, for a document of five keys. `cargo xtask dist` validates the document
//! with the library of CycloneDX for Python.

use super::inventory::{Component, Id, Inventory};
use serde_json::{Map, Value, json};

/// Returns the document. It has no time and no serial number, so that the same sources make the
/// same document.
pub(super) fn document(inventory: &Inventory) -> anyhow::Result<Vec<u8>> {
    let (program, component) = inventory.program()?;
    let others = inventory.components.iter().filter(|(id, _)| *id != program);
    let document = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": { "component": entry("application", program, component) },
        "components": others.map(|(id, other)| entry("library", id, other)).collect::<Vec<_>>(),
        "dependencies": inventory.components.iter().map(edges).collect::<Vec<_>>(),
    });
    let mut text = serde_json::to_vec_pretty(&document)?;
    text.push(b'\n');
    Ok(text)
}

/// Returns the identity of a crate in the document, a package URL.
fn reference(Id { name, version }: &Id) -> String {
    format!("pkg:cargo/{name}@{version}")
}

fn entry(kind: &str, id: &Id, component: &Component) -> Value {
    let mut entry = Map::new();
    let mut set = |key: &str, value: Value| {
        entry.insert(key.to_owned(), value);
    };
    set("type", json!(kind));
    set("bom-ref", json!(reference(id)));
    set("name", json!(id.name));
    set("version", json!(id.version));
    set("purl", json!(reference(id)));
    if let Some(text) = &component.description {
        set("description", json!(text));
    }
    if let Some(expression) = &component.license {
        set("licenses", json!([{ "expression": expression }]));
    }
    if let Some(digest) = &component.digest {
        set("hashes", json!([{ "alg": "SHA-256", "content": digest }]));
    }
    if let Some(url) = &component.repository {
        set("externalReferences", json!([{ "type": "vcs", "url": url }]));
    }
    Value::Object(entry)
}

fn edges((id, component): (&Id, &Component)) -> Value {
    json!({
        "ref": reference(id),
        "dependsOn": component.uses.iter().map(reference).collect::<Vec<_>>(),
    })
}
