//! The descriptions in a component itself: the custom section `package-docs`, in which tools for
//! WIT keep the comments of a package.

use super::docs::Docs;
use crate::tool::json::{JsonBounds, parse_bounded};
use serde_json::Value;
use wasmparser::{Parser, Payload};

/// The name of the section.
const SECTION: &str = "package-docs";
/// The bounds of its JSON. The comments of a package have on the order of a hundred kilobytes.
const BOUNDS: JsonBounds = JsonBounds { bytes: 1 << 20, depth: 16, members: 50_000 };
/// The versions of its form, in its first byte. Both have the same members for functions.
const VERSIONS: [u8; 2] = [0, 1];

/// Returns the descriptions of functions in a component. A section that cannot be read counts as
/// absent, since a component works without it.
pub(crate) fn package_docs(component: &[u8]) -> Docs {
    section(component).and_then(parse).unwrap_or_default()
}

/// Returns the section of the component itself, not that of one inside it.
fn section(component: &[u8]) -> Option<&[u8]> {
    let mut depth = 0_usize;
    for payload in Parser::new(0).parse_all(component) {
        match payload.ok()? {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::CustomSection(section) if depth == 0 && section.name() == SECTION => {
                return Some(section.data());
            }
            _ => {}
        }
    }
    None
}

fn parse(section: &[u8]) -> Option<Docs> {
    let (version, text) = section.split_first()?;
    if !VERSIONS.contains(version) {
        return None;
    }
    let package = parse_bounded(str::from_utf8(text).ok()?, BOUNDS).ok()?;
    let mut docs = interfaces(Docs::default(), &package["interfaces"]);
    for (_, world) in members(&package["worlds"]) {
        // Exports that have the name of an import stand apart.
        for key in ["interfaces", "interface_exports"] {
            docs = interfaces(docs, &world[key]);
        }
        for key in ["funcs", "func_exports"] {
            docs = functions(docs, None, &world[key]);
        }
    }
    Some(docs)
}

fn interfaces(docs: Docs, interfaces: &Value) -> Docs {
    let interface = |docs, (name, interface): (&String, &Value)| {
        functions(docs, Some(name), &interface["funcs"])
    };
    members(interfaces).fold(docs, interface)
}

fn functions(docs: Docs, interface: Option<&str>, described: &Value) -> Docs {
    members(described).fold(docs, |docs, (name, function)| {
        let text = function.as_str().or_else(|| function["docs"].as_str());
        docs.with(interface, name, text.unwrap_or_default())
    })
}

fn members(object: &Value) -> impl Iterator<Item = (&String, &Value)> {
    object.as_object().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use wasm_encoder::{Component, CustomSection};

    /// Returns a component with a section of this version and content.
    fn component(version: u8, content: &str) -> Vec<u8> {
        let data = [&[version], content.as_bytes()].concat();
        let mut component = Component::new();
        component.section(&CustomSection { name: SECTION.into(), data: data.into() });
        component.finish()
    }

    #[test]
    fn functions_of_both_versions_are_described() {
        let content = json!({
            "interfaces": {"words": {"funcs": {"count": {"docs": "Counts words."}}}},
            "worlds": {"all": {
                "funcs": {"ping": "Answers."},
                "func_exports": {"pong": {"docs": "Asks."}},
                "interface_exports": {"inline": {"funcs": {"f": {"docs": "Does."}}}},
            }},
        });
        for version in VERSIONS {
            let docs = package_docs(&component(version, &content.to_string()));
            assert_eq!(docs.of(Some("a:b/words@1.0.0"), "count"), Some("Counts words."));
            assert_eq!(docs.of(None, "ping"), Some("Answers."));
            assert_eq!(docs.of(None, "pong"), Some("Asks."));
            assert_eq!(docs.of(Some("inline"), "f"), Some("Does."));
        }
    }

    #[test]
    fn unreadable_section_describes_nothing() {
        let deep = "[".repeat(1_000);
        for (version, content) in [(2, "{}"), (1, "{"), (1, "[]"), (1, "\u{0}"), (1, &deep)] {
            assert!(package_docs(&component(version, content)).is_empty(), "{content:.9}");
        }
        let wrong = json!({"interfaces": [1], "worlds": {"w": {"funcs": {"f": 1}}}});
        let docs = package_docs(&component(1, &wrong.to_string()));
        assert_eq!(docs.of(None, "f"), None);
        assert!(package_docs(b"no component").is_empty());
    }
}
