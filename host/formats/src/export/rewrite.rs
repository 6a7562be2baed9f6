//! Rewrites a schema for one provider and records every weakening.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::Weakening;
use super::portable::{drop_optional_null, split_types};
use super::profile::{Profile, Treatment, Types};
use super::references::{Flattener, move_definitions};
use super::strict::{Reason, required_names};
use crate::DefinitionView;
use palisade_schema::schema::Dialect;
use palisade_schema::schema::{Shape, holds, join};
use palisade_schema::text::elided;

/// The replacement for `"format": "workspace-path"`.
const PATH_SENTENCE: &str = "A path relative to the workspace.";
/// The word by which a description says itself that a path belongs to the workspace.
const PATH_WORD: &str = "workspace";
/// The longest value in a note, in characters: a description is part of every request.
const MAX_NOTE: usize = 240;

/// A schema rewritten for one provider.
pub(super) struct Rewritten {
    pub(super) schema: Value,
    pub(super) weakened: Vec<Weakening>,
    /// The reason why the schema cannot be strict, if the strict form would forbid inputs that the
    /// tool needs.
    pub(super) blocked: Option<Reason>,
}

/// The value that a schema describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    Input,
    /// An output, which the client validates: its schema accepts what the original accepts.
    Output,
}

/// Rewrites the input schema of a tool.
pub(super) fn rewrite(view: &DefinitionView<'_>, profile: &'static Profile) -> Rewritten {
    rewrite_of(Subject::Input, view.input_schema, view.name, profile)
}

/// Rewrites an output schema without changing the values that it accepts.
pub(super) fn rewrite_output(schema: &Value, tool: &str, profile: &'static Profile) -> Value {
    rewrite_of(Subject::Output, schema, tool, profile).schema
}

fn rewrite_of(
    subject: Subject,
    schema: &Value,
    tool: &str,
    profile: &'static Profile,
) -> Rewritten {
    let schema =
        if profile.keywords.is_some() { move_definitions(schema) } else { Cow::Borrowed(schema) };
    let mut rewriter = Rewriter {
        tool,
        subject,
        profile,
        weakened: Vec::new(),
        blocked: None,
        flattener: Flattener::new(&schema),
        level: 0,
    };
    let rewritten = rewriter.rewrite_schema(&schema, "");
    Rewritten { schema: rewritten, weakened: rewriter.weakened, blocked: rewriter.blocked }
}

struct Rewriter<'v> {
    tool: &'v str,
    subject: Subject,
    profile: &'static Profile,
    weakened: Vec<Weakening>,
    blocked: Option<Reason>,
    flattener: Flattener<'v>,
    /// The number of schemas around the current one, and the current one.
    level: usize,
}

/// The additions to the description of one schema object.
#[derive(Default)]
struct Notes {
    sentence: bool,
    notes: Vec<String>,
}

impl Rewriter<'_> {
    fn rewrite_schema(&mut self, schema: &Value, pointer: &str) -> Value {
        let Value::Object(keywords) = schema else { return schema.clone() };
        self.level += 1;
        let written = self.rewrite_object(keywords, pointer);
        self.level -= 1;
        written
    }

    fn rewrite_object(&mut self, keywords: &Map<String, Value>, pointer: &str) -> Value {
        let mut keywords = self.flatten(keywords, pointer);
        if self.profile.types == Types::One {
            self.use_one_type(keywords.to_mut(), pointer);
        }
        let mut written = Map::new();
        let mut notes = Notes::default();
        for (keyword, value) in keywords.iter() {
            self.rewrite_keyword(keyword, value, pointer, &keywords, &mut written, &mut notes);
        }
        self.add_required_keywords(&mut written);
        if self.profile.closes_objects && is_object(&written) {
            self.close_object(&keywords, &mut written, pointer);
        }
        add_notes(&mut written, &notes);
        Value::Object(written)
    }

    /// Replaces lists of types, and `null` in optional members.
    fn use_one_type(&mut self, keywords: &mut Map<String, Value>, pointer: &str) {
        if self.subject == Subject::Input {
            for name in drop_optional_null(keywords) {
                let place = join(&join(pointer, "properties"), &name);
                self.weaken(&place, "type", "loses `null`: the member is left out instead");
            }
        }
        split_types(keywords);
    }

    /// Flattens references and `allOf`, which only strict subsets require.
    fn flatten<'k>(
        &mut self,
        keywords: &'k Map<String, Value>,
        pointer: &str,
    ) -> Cow<'k, Map<String, Value>> {
        if self.profile.keywords.is_none() {
            return Cow::Borrowed(keywords);
        }
        let flat = self.flattener.flatten(keywords, self.level);
        let effect = match self.flattener.is_spent(self.level) {
            true => {
                "is left out: nothing may stand beside a `$ref`, and this schema is too large to write its references out"
            }
            false => "is left out: nothing may stand beside a recursive `$ref`",
        };
        for keyword in &flat.dropped {
            self.weaken(pointer, keyword, effect);
        }
        flat.keywords
    }

    fn rewrite_keyword(
        &mut self,
        keyword: &str,
        value: &Value,
        pointer: &str,
        siblings: &Map<String, Value>,
        written: &mut Map<String, Value>,
        notes: &mut Notes,
    ) {
        match self.profile.treatment(keyword, value, pointer.is_empty()) {
            Treatment::Keep => {
                let value = self.rewrite_subschemas(keyword, value, &join(pointer, keyword));
                written.insert(keyword.to_owned(), value);
            }
            Treatment::AnyOf if !siblings.contains_key("anyOf") => {
                self.weaken(
                    pointer,
                    keyword,
                    "becomes `anyOf`: that no other alternative matches is not said",
                );
                let value = self.rewrite_subschemas(keyword, value, &join(pointer, keyword));
                written.insert("anyOf".to_owned(), value);
            }
            Treatment::Enum => {
                written.insert("enum".to_owned(), json!([value]));
            }
            Treatment::Sentence if mentions_workspace(siblings) => {}
            Treatment::Sentence => {
                self.weaken(pointer, keyword, "becomes a sentence in the description");
                notes.sentence = true;
            }
            Treatment::AnyOf | Treatment::Note => {
                self.weaken(pointer, keyword, "moves into the description");
                notes.notes.push(format!("{keyword}: {}", elided(&value.to_string(), MAX_NOTE)));
            }
            Treatment::Drop => {}
        }
    }

    /// Rewrites the subschemas of a keyword that is kept.
    fn rewrite_subschemas(&mut self, keyword: &str, value: &Value, place: &str) -> Value {
        match (holds(keyword, value, Dialect::Draft202012), value) {
            (Some((Shape::One, _)), value) => self.rewrite_schema(value, place),
            (Some((Shape::List, _)), Value::Array(list)) => list
                .iter()
                .enumerate()
                .map(|(at, value)| self.rewrite_schema(value, &join(place, &at.to_string())))
                .collect(),
            (Some((Shape::Map, _)), Value::Object(map)) => {
                if keyword == "properties" {
                    self.check_names(map, place);
                }
                map.iter()
                    .map(|(name, value)| {
                        (name.clone(), self.rewrite_schema(value, &join(place, name)))
                    })
                    .collect()
            }
            _ => value.clone(),
        }
    }

    fn check_names(&mut self, properties: &Map<String, Value>, place: &str) {
        let Some(rule) = self.profile.names else { return };
        for name in properties.keys().filter(|name| !(rule.accepts)(name)) {
            let effect =
                format!("has a name that this provider may refuse; it accepts {}", rule.accepted);
            self.weaken(&join(place, name), "properties", &effect);
        }
    }

    /// Adds `properties` and `items` for providers that require them even where they add nothing.
    fn add_required_keywords(&self, written: &mut Map<String, Value>) {
        if !self.profile.requires_empty_keywords {
            return;
        }
        if written.get("type") == Some(&json!("object")) && !written.contains_key("properties") {
            written.insert("properties".to_owned(), json!({}));
        }
        if written.get("type") == Some(&json!("array")) && !written.contains_key("items") {
            written.insert("items".to_owned(), json!({}));
        }
    }

    /// Closes an object to unlisted members, unless the tool depends on them.
    fn close_object(
        &mut self,
        keywords: &Map<String, Value>,
        written: &mut Map<String, Value>,
        pointer: &str,
    ) {
        let open = ["additionalProperties", "unevaluatedProperties", "patternProperties"];
        let accepts_unlisted = open
            .iter()
            .any(|keyword| keywords.get(*keyword).is_some_and(|value| value != &json!(false)));
        let lists_no_members = !pointer.is_empty() && !keywords.contains_key("properties");
        if accepts_unlisted || lists_no_members {
            let explanation = "an object with members of any name is left, which strict mode would have to be empty";
            self.blocked.get_or_insert(Reason { pointer: pointer.to_owned(), explanation });
        }
        written.insert("additionalProperties".to_owned(), json!(false));
        if self.profile.requires_all_members {
            self.require_all(written, pointer);
        }
    }

    fn require_all(&mut self, written: &mut Map<String, Value>, pointer: &str) {
        let required: HashSet<String> = required_names(written).map(str::to_owned).collect();
        let Some(properties) = written.get_mut("properties").and_then(Value::as_object_mut) else {
            return;
        };
        let names: Vec<Value> = properties.keys().cloned().map(Value::String).collect();
        for (name, property) in properties.iter_mut().filter(|(name, _)| !required.contains(*name))
        {
            let place = join(&join(pointer, "properties"), name);
            *property = accept_null(std::mem::take(property));
            self.weakened.push(self.new_weakening(
                &place,
                "required",
                "becomes required: `null` stands for its absence",
            ));
        }
        written.insert("required".to_owned(), Value::Array(names));
    }

    fn weaken(&mut self, pointer: &str, keyword: &str, effect: &str) {
        self.weakened.push(self.new_weakening(pointer, keyword, effect));
    }

    fn new_weakening(&self, pointer: &str, keyword: &str, effect: &str) -> Weakening {
        Weakening {
            tool: self.tool.to_owned(),
            pointer: pointer.to_owned(),
            keyword: keyword.to_owned(),
            effect: effect.to_owned(),
        }
    }
}

fn mentions_workspace(schema: &Map<String, Value>) -> bool {
    let description = schema.get("description").and_then(Value::as_str);
    description.is_some_and(|text| text.to_lowercase().contains(PATH_WORD))
}

fn is_object(schema: &Map<String, Value>) -> bool {
    match schema.get("type") {
        Some(Value::String(kind)) => kind == "object",
        Some(Value::Array(kinds)) => kinds.contains(&json!("object")),
        _ => schema.contains_key("properties"),
    }
}

/// Returns a schema that also accepts `null`, with the description at the outer level.
fn accept_null(mut schema: Value) -> Value {
    let Some(keywords) = schema.as_object_mut() else { return with_null_alternative(schema, None) };
    if let Some(Value::Array(alternatives)) = keywords.get_mut("anyOf") {
        push_unique(alternatives, null_schema());
        return schema;
    }
    if keywords.contains_key("$ref")
        || keywords.contains_key("const")
        || !keywords.contains_key("type")
    {
        let description = keywords.remove("description");
        return with_null_alternative(schema, description);
    }
    let mut kinds = match keywords.remove("type") {
        Some(Value::Array(kinds)) => kinds,
        kind => kind.into_iter().collect(),
    };
    push_unique(&mut kinds, json!("null"));
    keywords.insert("type".to_owned(), Value::Array(kinds));
    if let Some(Value::Array(values)) = keywords.get_mut("enum") {
        push_unique(values, Value::Null);
    }
    schema
}

fn null_schema() -> Value {
    json!({"type": "null"})
}

fn with_null_alternative(schema: Value, description: Option<Value>) -> Value {
    let described = description.map(|description| ("description".to_owned(), description));
    let alternatives = ("anyOf".to_owned(), Value::Array(vec![schema, null_schema()]));
    Value::Object(described.into_iter().chain([alternatives]).collect())
}

fn push_unique(values: &mut Vec<Value>, value: Value) {
    if !values.contains(&value) {
        values.push(value);
    }
}

/// Appends the notes to the description.
fn add_notes(written: &mut Map<String, Value>, notes: &Notes) {
    let sentence = notes.sentence.then(|| PATH_SENTENCE.to_owned());
    let description = written.get("description").and_then(Value::as_str).map(str::to_owned);
    let prose: Vec<String> = description.into_iter().chain(sentence).collect();
    let note = (!notes.notes.is_empty()).then(|| format!("{{{}}}", notes.notes.join(", ")));
    let parts: Vec<String> =
        Some(prose.join(" ")).filter(|prose| !prose.is_empty()).into_iter().chain(note).collect();
    if notes.sentence || !notes.notes.is_empty() {
        written.insert("description".to_owned(), Value::String(parts.join("\n\n")));
    }
}
