//! The words, schemas and imports of a plugin, without a call.

use super::finding::{Findings, Topic};
use crate::build::needs;
use crate::trial::Trial;
use palisade::formats::{DefinitionView, Format, Strictness, Weakening, export};
use palisade::{Definition, SideEffects};
use palisade_net::Wishes;
use serde_json::Value;

/// The least length of a description that says something, in characters.
const TERSE: usize = 12;
/// The length of a definition beyond which it costs a model too much, in bytes.
const LONG: usize = 16 << 10;
/// The keyword of the output's schema in a definition of MCP.
const OUTPUT_SCHEMA: &str = "outputSchema";

pub(super) fn check(trial: &Trial, found: &mut Findings) {
    let definitions = trial.plugin().definitions();
    for definition in definitions {
        words(definition, found);
        providers(definition, found);
    }
    imports(trial, definitions, found);
    wishes(definitions, found);
}

/// Names the wishes of each tool that are no grants.
fn wishes(definitions: &[Definition], found: &mut Findings) {
    let wishes = Wishes::of(definitions);
    for tool in definitions.iter().map(|definition| definition.name().as_str()) {
        let faults = wishes.faults().iter().filter(|fault| fault.tool == tool);
        let reasons: Vec<&str> = faults.map(|fault| fault.reason.as_str()).collect();
        if !reasons.is_empty() {
            let message = format!("wishes in its metadata are ignored: {}", reasons.join("; "));
            found.warn(Topic::Definitions, "invalid-wish", Some(tool), message);
        }
    }
}

fn words(definition: &Definition, found: &mut Findings) {
    let tool = Some(definition.name().as_str());
    if definition.description().trim().chars().count() < TERSE {
        let message = format!(
            "its description is `{}`; say what the tool does and when a model should call it",
            definition.description().trim()
        );
        found.warn(Topic::Definitions, "terse-description", tool, message);
    }
    let bytes = definition.to_json().to_string().len();
    if bytes > LONG {
        let message = format!("its definition has {bytes} bytes, which every request carries");
        found.warn(Topic::Definitions, "long-definition", tool, message);
    }
    let properties = definition.parameters().get("properties").and_then(Value::as_object);
    let silent: Vec<&str> = properties
        .into_iter()
        .flatten()
        .filter(|(_, schema)| schema.get("description").is_none() && schema.get("$ref").is_none())
        .map(|(name, _)| name.as_str())
        .collect();
    if !silent.is_empty() {
        let message = format!("no description of the argument {}", silent.join(", "));
        found.warn(Topic::Definitions, "undescribed-argument", tool, message);
    }
}

fn providers(definition: &Definition, found: &mut Findings) {
    let view = DefinitionView::from(definition);
    for format in Format::ALL {
        let weakened = export(&view, format, Strictness::AsIs).weakened;
        if let Some(weakened) = weakened.iter().find(|it| !is_expected(definition, it)) {
            let message = format!("in the format {}: {weakened}", format.as_str());
            found.warn(Topic::Providers, "weakened-schema", Some(&weakened.tool), message);
        }
    }
}

/// Returns true for a loss that no author can avoid: that of the output's schema, for which only
/// MCP has a place, and that of the format of a workspace path, which the host checks, so that a
/// provider needs only the sentence that it becomes.
fn is_expected(definition: &Definition, weakened: &Weakening) -> bool {
    if weakened.keyword == OUTPUT_SCHEMA {
        return true;
    }
    let place = definition.parameters().pointer(&weakened.pointer);
    let format = place.and_then(|schema| schema.get("format")).and_then(Value::as_str);
    weakened.keyword == "format" && format == Some("workspace-path")
}

fn imports(trial: &Trial, definitions: &[Definition], found: &mut Findings) {
    let names: Vec<&str> = trial.plugin().imports().iter().map(|it| it.name.as_str()).collect();
    // A tool of class none sends no request either.
    let is_used = |name: &&str| {
        needs(name) == SideEffects::Read || name.starts_with("wasi:http/outgoing-handler")
    };
    if names.iter().any(is_used) {
        return;
    }
    for definition in definitions {
        let class = definition.side_effects();
        if matches!(class, SideEffects::Read | SideEffects::Write) {
            let message = format!(
                "its class is {class}, and the plugin imports neither a file system nor `wasi:http`: class none suffices"
            );
            let tool = Some(definition.name().as_str());
            found.warn(Topic::Imports, "class-too-high", tool, message);
        }
    }
}
