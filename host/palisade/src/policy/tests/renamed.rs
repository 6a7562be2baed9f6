//! Tests of the rules for tools that the operator's settings rename.

use super::super::*;
use crate::registry::Source;
use crate::tool::{Digest, ToolName};
use serde_json::json;

/// Returns the tool `a` of the plugin `p`, which sessions see as `b`.
fn renamed(source: Source) -> (Definition, Origin) {
    let schema = json!({"type": "object"});
    let own = Definition::new("a", "A tool.", SideEffects::Write, schema).unwrap();
    let definition = own.shown_as(ToolName::parse("b").unwrap());
    let origin = Origin::Plugin { name: "p".into(), digest: Digest::of(b""), source };
    (definition, origin)
}

/// The names that a rule for a renamed tool may have.
const NAMES: [&str; 4] = ["p/a", "a", "p/b", "b"];

#[test]
fn only_a_tools_own_name_loosens() {
    for mode in [Mode::Auto, Mode::PromptOnce] {
        for name in NAMES {
            let policy = Policy::default().with_tool(name, mode);
            let mode_of = |source| {
                let (tool, origin) = renamed(source);
                policy.decide(&tool, &origin)
            };
            let is_own = name == "p/a";
            assert_eq!(mode_of(Source::File("p.wasm".into())) == mode, is_own, "{name}");
            assert_eq!(mode_of(Source::Namesake("p.wasm".into())), Mode::Prompt, "{name}");
            assert_eq!(mode_of(Source::ThisRun("p.wasm".into())), Mode::Prompt, "{name}");
        }
    }
}

#[test]
fn each_name_of_a_renamed_tool_tightens() {
    let sources = [Source::File, Source::Namesake, Source::ThisRun];
    for source in sources.map(|source| source("p.wasm".into())) {
        let (tool, origin) = renamed(source);
        for (name, rule) in NAMES.into_iter().zip([
            Rule::PluginTool,
            Rule::Tool,
            Rule::SeenPluginTool,
            Rule::SeenTool,
        ]) {
            let allowed = Policy::default().with_class(SideEffects::Write, Mode::Auto);
            let allowed = allowed.with_tool("p/a", Mode::Auto);
            for mode in [Mode::Prompt, Mode::Deny] {
                let decision = allowed.clone().with_tool(name, mode).explain(&tool, &origin);
                assert_eq!(decision, Decision { mode, rule }, "{name}");
                let key = format!("confirm.tools.{name}");
                assert_eq!(rule.key(&tool, &origin), key);
            }
        }
        for other in ["q/a", "q/b", "c", "p/c"] {
            let denied = Policy::default().with_tool(other, Mode::Deny);
            assert_eq!(denied.decide(&tool, &origin), Mode::Prompt, "{other}");
        }
    }
}

#[test]
fn list_grants_to_a_tools_own_name_only() {
    let (tool, origin) = renamed(Source::File("p.wasm".into()));
    for (name, granted) in [("a", true), ("p/a", true), ("b", false), ("p/b", false)] {
        assert_eq!(is_granted(name, &tool, &origin), granted, "{name}");
    }
    // The name of a shipped tool stays its own, also if a file offers it under another one.
    let schema = json!({"type": "object"});
    let own = Definition::new("read_file", "A tool.", SideEffects::Read, schema).unwrap();
    let own = own.shown_as(ToolName::parse("my_read_file").unwrap());
    assert!(is_granted("p/read_file", &own, &origin));
    assert!(!is_granted("read_file", &own, &origin));
}

#[test]
fn advice_for_a_renamed_tool_names_its_own_name() {
    let (tool, origin) = renamed(Source::File("p.wasm".into()));
    let policy = Policy::default();
    let rule = policy.explain(&tool, &origin).rule;
    let advice = policy.advice_on_prompt(rule, &tool, &origin);
    let told = advice.told(&crate::tool::Places::new("in mine"));
    assert!(told.contains("\"p/a\" = \"auto\""), "{told}");
}
