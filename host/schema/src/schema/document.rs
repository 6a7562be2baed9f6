//! The document that the validator reads, whose patterns are those that the tokenizer has written.
//!
//! The validator has parsers of its own for patterns. It must not see a text that these might
//! understand otherwise than it was checked. So a `pattern` becomes a number, for the matchers of
//! [`super::matcher`], and a name in `patternProperties` becomes its translation. A `$ref` through
//! such a name is changed with it.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::error::SchemaError;
use super::outline::{Outline, PatternPlace};
use super::pointer::{join, percent_decode, to_fragment};
use super::translation::translate;

/// The document for the validator.
pub(super) struct Document<'v> {
    pub(super) value: Value,
    /// The texts of `pattern`, by their numbers.
    pub(super) patterns: Vec<&'v str>,
    pub(super) moved: Moved,
}

/// The subschemas whose names in `patternProperties` were translated.
#[derive(Default)]
pub(super) struct Moved {
    /// Their pointers in the original document, by those in the document for the validator.
    originals: HashMap<String, String>,
}

impl Moved {
    /// Returns a pointer into the original document for one of the validator.
    pub(super) fn original(&self, pointer: &str) -> String {
        if self.originals.is_empty() {
            return pointer.to_owned();
        }
        let ends = pointer.rmatch_indices('/').map(|(at, _)| at);
        let parts = std::iter::once(pointer.len()).chain(ends);
        let found = parts
            .filter_map(|at| pointer.split_at_checked(at))
            .find_map(|(place, rest)| Some(format!("{}{rest}", self.originals.get(place)?)));
        found.unwrap_or_else(|| pointer.to_owned())
    }
}

impl<'v> Document<'v> {
    /// Writes the document. Every pattern has been checked before.
    pub(super) fn new(value: &'v Value, outline: &Outline<'v>) -> Result<Self, SchemaError> {
        let mut patterns = Vec::new();
        let mut changes = Changes::default();
        for place in &outline.patterns {
            if place.keyword == "pattern" {
                changes.texts.insert(place.pointer.clone(), patterns.len().to_string());
                patterns.push(place.pattern);
            } else {
                changes.rename(place)?;
            }
        }
        for (node, target) in &outline.references {
            let Some(node) = outline.nodes.get(*node) else { continue };
            if let Some(target) = changes.target(target) {
                changes.texts.insert(join(&node.pointer, "$ref"), target);
            }
        }
        let value = changes.applied(value, "");
        let moved = Moved { originals: changes.originals };
        Ok(Self { value, patterns, moved })
    }
}

/// The differences from the original document. Pointers lead into the original, if not said
/// otherwise.
#[derive(Default)]
struct Changes {
    /// The new texts, by their pointers.
    texts: HashMap<String, String>,
    /// The new names of members, by their pointers.
    names: HashMap<String, String>,
    /// The new pointers of all names that have been given. They are different, also if two patterns
    /// have the same translation.
    given: HashSet<String>,
    /// The pointers of renamed members, by their new ones.
    originals: HashMap<String, String>,
}

impl Changes {
    /// Renames a member of `patternProperties`. Those that hold it have been renamed before.
    fn rename(&mut self, place: &PatternPlace<'_>) -> Result<(), SchemaError> {
        let mut name = translate(place.pattern).map_err(|why| place.refused(why))?;
        let parent = self.moved(place.pointer.rsplit_once('/').map_or("", |(parent, _)| parent));
        while !self.given.insert(join(&parent, &name)) {
            name.push_str("(?:)");
        }
        if name != place.pattern {
            self.originals.insert(join(&parent, &name), place.pointer.clone());
            self.names.insert(place.pointer.clone(), name);
        }
        Ok(())
    }

    /// Returns the new pointer of a place.
    fn moved(&self, pointer: &str) -> String {
        if self.names.is_empty() {
            return pointer.to_owned();
        }
        let mut moved = String::with_capacity(pointer.len());
        let mut read = 0;
        for token in pointer.split('/').skip(1) {
            read += 1 + token.len();
            match pointer.get(..read).and_then(|place| self.names.get(place)) {
                Some(name) => moved = join(&moved, name),
                None => {
                    moved.push('/');
                    moved.push_str(token);
                }
            }
        }
        moved
    }

    /// Returns the new target of a `$ref`, if it leads through a renamed member.
    fn target(&self, target: &str) -> Option<String> {
        let pointer = percent_decode(target.strip_prefix('#')?)?;
        let moved = self.moved(&pointer);
        (moved != pointer && pointer.starts_with('/')).then(|| to_fragment(&moved))
    }

    /// Returns a part of the document with all changes. The depth of documents is bounded.
    fn applied(&self, value: &Value, pointer: &str) -> Value {
        match value {
            Value::Object(members) => {
                let changed = members.iter().map(|(name, value)| {
                    let place = join(pointer, name);
                    let value = self.applied(value, &place);
                    (self.names.get(&place).unwrap_or(name).clone(), value)
                });
                Value::Object(changed.collect::<Map<_, _>>())
            }
            Value::Array(values) => {
                let each = values.iter().enumerate();
                each.map(|(at, value)| self.applied(value, &join(pointer, &at.to_string())))
                    .collect()
            }
            Value::String(text) => Value::String(self.texts.get(pointer).unwrap_or(text).clone()),
            other => other.clone(),
        }
    }
}
