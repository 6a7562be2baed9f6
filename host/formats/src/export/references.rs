//! Resolves references within a schema's own document, and inlines them where a provider requires
//! it.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::merge::Merged;
use super::recursion::References;
use palisade_schema::schema::resolve_local_ref;

/// The deepest nesting of inlined references.
const MAX_INLINING: usize = 8;
/// The deepest schema in which references are inlined: each inlined one may hold the next, and the
/// rewriting is recursive. Schemas have at most half of these levels themselves, and strict modes
/// accept ten.
const MAX_LEVELS: usize = 32;
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
    pub(super) fn collect_refs<'v>(&mut self, value: &'v Value) -> Option<Vec<&'v str>> {
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
pub(super) struct Flat<'v> {
    pub(super) keywords: Cow<'v, Map<String, Value>>,
    /// The siblings that were dropped because their `$ref` cannot be inlined.
    pub(super) dropped: Vec<String>,
}

/// Flattens the schema objects of a document, as far as its budget lasts.
pub(super) struct Flattener<'v> {
    root: &'v Value,
    /// Read when the first reference has siblings.
    references: Option<References<'v>>,
    budget: StepBudget,
}

impl<'v> Flattener<'v> {
    pub(super) fn new(root: &'v Value) -> Self {
        Self { root, references: None, budget: StepBudget::new() }
    }

    /// Returns true if the budget has ended, or nothing more is inlined at this level: what is left
    /// stays as it is.
    pub(super) fn is_spent(&self, level: usize) -> bool {
        self.budget.is_spent() || level > MAX_LEVELS
    }

    /// Inlines a `$ref` with siblings and merges `allOf`, in a schema at this level.
    pub(super) fn flatten<'k>(
        &mut self,
        keywords: &'k Map<String, Value>,
        level: usize,
    ) -> Flat<'k> {
        let mut flat = Flat { keywords: Cow::Borrowed(keywords), dropped: Vec::new() };
        for _ in 0..MAX_INLINING {
            let merged = self.merge_all_of(&flat.keywords);
            let next = merged.or_else(|| self.inline(&flat.keywords, level));
            let Some(next) = next else { break };
            flat.keywords = Cow::Owned(next);
        }
        flat.drop_ref_siblings();
        flat
    }

    /// Merges the members of `allOf` into the object unless they conflict.
    fn merge_all_of(&mut self, keywords: &Map<String, Value>) -> Option<Map<String, Value>> {
        let Some(Value::Array(members)) = keywords.get("allOf") else { return None };
        self.pay_for(keywords)?;
        let others = keywords.iter().filter(|(keyword, _)| *keyword != "allOf");
        let others = others.map(|(keyword, value)| (keyword.clone(), value.clone())).collect();
        let merged = members
            .iter()
            .try_fold(Merged::new(others), |merged, member| merged.add(member.as_object()?).ok());
        merged.map(Merged::into_keywords)
    }

    /// Replaces a `$ref` with its target. The annotations among its siblings take precedence over
    /// the target's.
    fn inline(
        &mut self,
        keywords: &Map<String, Value>,
        level: usize,
    ) -> Option<Map<String, Value>> {
        let reference = keywords.get("$ref").and_then(Value::as_str)?;
        if keywords.len() < 2 || self.is_spent(level) || !self.is_finite(reference) {
            return None;
        }
        let target = resolve_local_ref(self.root, reference)?.as_object()?;
        self.pay_for(keywords)?;
        self.pay_for(target)?;
        let mut siblings = keywords.clone();
        siblings.remove("$ref");
        let mut definition = target.clone();
        for annotation in ["title", "description", "default", "examples"] {
            if siblings.contains_key(annotation) {
                definition.remove(annotation);
            }
        }
        Merged::new(siblings).add(&definition).ok().map(Merged::into_keywords)
    }

    fn is_finite(&mut self, reference: &str) -> bool {
        let read = || References::of(self.root, &mut self.budget);
        self.references.get_or_insert_with(read).is_finite(reference)
    }

    /// Spends the steps of a copy of this object. Returns `None` if there are not enough.
    fn pay_for(&mut self, keywords: &Map<String, Value>) -> Option<()> {
        keywords.values().try_for_each(|value| self.budget.collect_refs(value).map(drop))
    }
}

impl Flat<'_> {
    /// Removes the siblings of a `$ref` that could not be inlined. Definitions stay, because they
    /// do not constrain the value.
    fn drop_ref_siblings(&mut self) {
        if self.keywords.contains_key("$ref") {
            let is_kept = |keyword: &str| matches!(keyword, "$ref" | "$defs" | "definitions");
            self.dropped =
                self.keywords.keys().filter(|keyword| !is_kept(keyword)).cloned().collect();
            if !self.dropped.is_empty() {
                self.keywords.to_mut().retain(|keyword, _| is_kept(keyword));
            }
        }
    }
}

/// Returns true if a reference of the schema is recursive or cannot be resolved, or if the budget
/// ends before that is known. A `$ref` in data counts as a reference.
pub(super) fn has_recursion(root: &Value, budget: &mut StepBudget) -> bool {
    !References::of(root, budget).are_finite()
}
