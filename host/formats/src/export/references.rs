//! Resolves references within a schema's own document, and inlines them where a provider requires
//! it.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::{Map, Value};

use palisade_schema::schema::resolve_local_ref;

/// The deepest nesting of inlined references.
const MAX_INLINING: usize = 8;
/// The number of values that the export of one schema may visit and copy: references can expand a
/// schema exponentially. The schema of a real tool needs a few thousand.
const MAX_STEPS: usize = 300_000;
/// The bytes of a text, or of a member's name, that count as one more value: a text is copied with
/// each reference to it.
const BYTES_PER_STEP: usize = 64;

/// The budget of the export of one schema, in visited values, and in steps for long texts.
#[derive(Debug)]
pub(super) struct StepBudget(usize);

impl StepBudget {
    pub(super) fn new() -> Self {
        Self(MAX_STEPS)
    }

    /// Returns true if nothing is left.
    pub(super) fn is_spent(&self) -> bool {
        self.0 == 0
    }

    /// Spends the number of values in `value`, and collects the references among them. Returns
    /// `None` if the budget runs out first.
    fn collect_refs<'v>(&mut self, value: &'v Value) -> Option<Vec<&'v str>> {
        let mut found = Vec::new();
        let mut pending = vec![value];
        while let Some(value) = pending.pop() {
            self.0 = self.0.saturating_sub(1 + text_length(value) / BYTES_PER_STEP);
            if self.is_spent() {
                return None;
            }
            match value {
                Value::Array(values) => pending.extend(values),
                Value::Object(members) => {
                    found.extend(members.get("$ref").and_then(Value::as_str));
                    pending.extend(members.values());
                }
                _ => {}
            }
        }
        Some(found)
    }
}

/// Returns the length of a text, or of all names of an object's members.
fn text_length(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Object(members) => members.keys().map(String::len).sum(),
        _ => 0,
    }
}

/// Moves the schema's definitions to `$defs`, where providers look for them.
pub(super) fn move_definitions(root: &Value) -> Cow<'_, Value> {
    let Some(keywords) = root
        .as_object()
        .filter(|keywords| keywords.contains_key("definitions") && !keywords.contains_key("$defs"))
    else {
        return Cow::Borrowed(root);
    };
    let mut keywords = keywords.clone();
    if let Some(definitions) = keywords.remove("definitions") {
        keywords.insert("$defs".to_owned(), definitions);
    }
    let mut root = Value::Object(keywords);
    redirect_refs(&mut root);
    Cow::Owned(root)
}

/// Keywords whose value is data: a member `$ref` in it is no reference.
const DATA: [&str; 4] = ["const", "default", "enum", "examples"];

fn redirect_refs(value: &mut Value) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(redirect_refs),
        Value::Object(members) => {
            for (keyword, value) in members.iter_mut() {
                let name = value
                    .as_str()
                    .filter(|_| keyword == "$ref")
                    .and_then(|target| target.strip_prefix("#/definitions/"));
                match name.map(|name| format!("#/$defs/{name}")) {
                    Some(target) => *value = Value::String(target),
                    None if DATA.contains(&keyword.as_str()) => {}
                    None => redirect_refs(value),
                }
            }
        }
        _ => {}
    }
}

/// A schema object with `allOf` merged and every `$ref` with siblings inlined where possible.
pub(super) struct Flat {
    pub(super) keywords: Map<String, Value>,
    /// The siblings that were dropped because their `$ref` cannot be inlined.
    pub(super) dropped: Vec<String>,
}

/// Inlines a `$ref` with siblings and merges `allOf`, as far as the budget lasts.
pub(super) fn flatten(
    root: &Value,
    keywords: &Map<String, Value>,
    budget: &mut StepBudget,
) -> Flat {
    let mut flat = Flat { keywords: keywords.clone(), dropped: Vec::new() };
    for _ in 0..MAX_INLINING {
        let has_room = keywords.values().all(|value| budget.collect_refs(value).is_some());
        if !has_room || (!flat.merge_all_of() && !flat.inline(root, budget)) {
            break;
        }
    }
    flat.drop_ref_siblings();
    flat
}

impl Flat {
    /// Merges the members of `allOf` into the object unless they conflict.
    fn merge_all_of(&mut self) -> bool {
        let Some(Value::Array(members)) = self.keywords.get("allOf") else { return false };
        let mut merged = self.keywords.clone();
        merged.remove("allOf");
        for member in members {
            match member.as_object().and_then(|member| merge(&merged, member)) {
                Some(next) => merged = next,
                None => return false,
            }
        }
        self.keywords = merged;
        true
    }

    /// Replaces a `$ref` with its target. The annotations among its siblings take precedence over
    /// the target's.
    fn inline(&mut self, root: &Value, budget: &mut StepBudget) -> bool {
        if self.keywords.len() < 2 {
            return false;
        }
        let Some(Value::String(reference)) = self.keywords.get("$ref") else { return false };
        let Some(whole @ Value::Object(target)) = resolve_local_ref(root, reference) else {
            return false;
        };
        if is_recursive(root, whole, reference, budget) {
            return false;
        }
        let mut siblings = self.keywords.clone();
        siblings.remove("$ref");
        let mut definition = target.clone();
        for annotation in ["title", "description", "default", "examples"] {
            if siblings.contains_key(annotation) {
                definition.remove(annotation);
            }
        }
        let Some(merged) = merge(&siblings, &definition) else { return false };
        self.keywords = merged;
        true
    }

    /// Removes the siblings of a `$ref` that could not be inlined. Definitions stay, because they
    /// do not constrain the value.
    fn drop_ref_siblings(&mut self) {
        if self.keywords.contains_key("$ref") {
            let is_kept = |keyword: &str| matches!(keyword, "$ref" | "$defs" | "definitions");
            self.dropped =
                self.keywords.keys().filter(|keyword| !is_kept(keyword)).cloned().collect();
            self.keywords.retain(|keyword, _| is_kept(keyword));
        }
    }
}

/// Merges two objects; `None` if they conflict or contain keywords whose meaning depends on one
/// another.
fn merge(one: &Map<String, Value>, two: &Map<String, Value>) -> Option<Map<String, Value>> {
    const INTERDEPENDENT: [&str; 4] =
        ["additionalProperties", "unevaluatedProperties", "patternProperties", "items"];
    let mut merged = one.clone();
    if INTERDEPENDENT.iter().any(|keyword| {
        one.contains_key(*keyword) != two.contains_key(*keyword)
            && one.contains_key("properties")
            && two.contains_key("properties")
    }) {
        return None;
    }
    for (keyword, value) in two {
        let both = match (keyword.as_str(), merged.get(keyword), value) {
            (_, None, value) => value.clone(),
            ("properties" | "$defs", Some(Value::Object(one)), Value::Object(two)) => {
                Value::Object(merge_properties(one, two)?)
            }
            ("required", Some(Value::Array(one)), Value::Array(two)) => Value::Array(
                one.iter().chain(two.iter().filter(|name| !one.contains(name))).cloned().collect(),
            ),
            (_, Some(one), two) if one == two => continue,
            _ => return None,
        };
        merged.insert(keyword.clone(), both);
    }
    Some(merged)
}

fn merge_properties(
    one: &Map<String, Value>,
    two: &Map<String, Value>,
) -> Option<Map<String, Value>> {
    let disagree =
        |(name, value): (&String, &Value)| one.get(name).is_some_and(|other| other != value);
    (!two.iter().any(disagree))
        .then(|| one.iter().chain(two).map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// Returns true if a definition refers to itself, or if the budget ends before that is known.
fn is_recursive(
    root: &Value,
    definition: &Value,
    reference: &str,
    budget: &mut StepBudget,
) -> bool {
    let mut seen = HashSet::new();
    let Some(mut pending) = budget.collect_refs(definition) else { return true };
    while let Some(next) = pending.pop() {
        if next == reference {
            return true;
        }
        if seen.insert(next)
            && let Some(definition) = resolve_local_ref(root, next)
        {
            let Some(further) = budget.collect_refs(definition) else { return true };
            pending.extend(further);
        }
    }
    false
}

/// Returns true if a reference of the schema is recursive or cannot be resolved, or if the budget
/// ends before that is known. A `$ref` in data counts as a reference.
pub(super) fn has_recursion(root: &Value, budget: &mut StepBudget) -> bool {
    let Some(mut all) = budget.collect_refs(root) else { return true };
    all.sort_unstable();
    all.dedup();
    all.iter().any(|reference| {
        resolve_local_ref(root, reference).is_none_or(|definition| {
            definition.is_object() && is_recursive(root, definition, reference, budget)
        })
    })
}
