//! Walks a schema document once, and records its subschemas and their connections for the later
//! checks.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::error::SchemaError;
use super::keyword::{Dialect, Reach, Shape, holds, looks};
use super::{MAX_NAME, MAX_SUBSCHEMAS, WORKSPACE_PATH};
use crate::json::type_name;
use crate::text::{elided, first_deceptive};

/// The connection from one subschema to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// `$ref`: to the same value.
    Ref,
    /// `properties`: to one member.
    Property(String),
    /// `items`: to the elements from this index on.
    Items(usize),
    /// Another keyword, to the same value.
    Same(&'static str),
    /// Another keyword, to values inside.
    Inside(&'static str),
}

impl Step {
    /// Returns whether both subschemas apply to the same value.
    pub(super) fn stays(&self) -> bool {
        matches!(self, Self::Ref | Self::Same(_))
    }

    pub(super) fn keyword(&self) -> &'static str {
        match self {
            Self::Ref => "$ref",
            Self::Property(_) => "properties",
            Self::Items(_) => "items",
            Self::Same(keyword) | Self::Inside(keyword) => keyword,
        }
    }
}

/// One subschema.
#[derive(Debug, Default)]
pub(super) struct Node {
    pub(super) pointer: String,
    pub(super) steps: Vec<(Step, usize)>,
    /// Whether it has `"format": "workspace-path"`.
    pub(super) is_path: bool,
    /// The number of its `unevaluatedItems` and `unevaluatedProperties` keywords.
    pub(super) unevaluated: u64,
    /// Whether it has a keyword that accesses each value of any type.
    pub(super) looks: bool,
}

/// All subschemas of a document. The root is the first.
#[derive(Debug)]
pub(super) struct Outline<'v> {
    pub(super) nodes: Vec<Node>,
    /// Every pattern with its keyword and pointer.
    pub(super) patterns: Vec<(&'v str, &'static str, String)>,
    dialect: Dialect,
    references: Vec<(usize, &'v str)>,
    places: HashMap<String, usize>,
    anchors: HashMap<&'v str, usize>,
}

impl<'v> Outline<'v> {
    /// Reads the document. The caller has bounded its depth.
    pub(super) fn read(document: &'v Value, dialect: Dialect) -> Result<Self, SchemaError> {
        let mut outline = Self {
            nodes: Vec::new(),
            patterns: Vec::new(),
            dialect,
            references: Vec::new(),
            places: HashMap::new(),
            anchors: HashMap::new(),
        };
        outline.subschema(document, String::new())?;
        outline.resolve()?;
        Ok(outline)
    }

    fn subschema(&mut self, schema: &'v Value, pointer: String) -> Result<usize, SchemaError> {
        let index = self.nodes.len();
        if index >= MAX_SUBSCHEMAS {
            return Err(SchemaError::TooMuch {
                what: "too many subschemas",
                max: MAX_SUBSCHEMAS,
                pointer,
            });
        }
        self.places.insert(pointer.clone(), index);
        self.nodes.push(Node { pointer: pointer.clone(), ..Node::default() });
        match schema {
            Value::Bool(_) => {}
            Value::Object(keywords) => self.keywords(index, keywords, &pointer)?,
            other => return Err(SchemaError::NotASchema { pointer, got: type_name(other) }),
        }
        Ok(index)
    }

    fn keywords(
        &mut self,
        index: usize,
        keywords: &'v Map<String, Value>,
        pointer: &str,
    ) -> Result<(), SchemaError> {
        let only_ref =
            self.dialect == Dialect::Draft07 && keywords.get("$ref").is_some_and(Value::is_string);
        for (keyword, value) in keywords {
            let place = join(pointer, keyword);
            refuse_foreign(keyword, value, &place, index == 0)?;
            self.note(index, keyword, value, &place, only_ref)?;
            let Some((shape, reach)) = holds(keyword, value, self.dialect) else { continue };
            let reach = if only_ref { Reach::Stored } else { reach };
            self.children(index, keywords, (keyword, value), (shape, reach), &place)?;
        }
        Ok(())
    }

    /// Records the relevant keywords that hold no subschemas.
    fn note(
        &mut self,
        index: usize,
        keyword: &str,
        value: &'v Value,
        place: &str,
        only_ref: bool,
    ) -> Result<(), SchemaError> {
        let Some(node) = self.nodes.get_mut(index) else { return Ok(()) };
        node.looks |= !only_ref && looks(keyword);
        match (keyword, value) {
            ("$ref", Value::String(target)) => self.references.push((index, target)),
            ("$anchor", Value::String(name)) if self.dialect == Dialect::Draft202012 => {
                self.anchor(index, name, place)?;
            }
            ("format", Value::String(format)) if format == WORKSPACE_PATH => {
                if only_ref {
                    let keyword = "$ref, whose siblings draft-07 ignores".to_owned();
                    return Err(SchemaError::PathPlace { pointer: place.to_owned(), keyword });
                }
                node.is_path = true;
            }
            ("unevaluatedItems" | "unevaluatedProperties", _)
                if self.dialect == Dialect::Draft202012 =>
            {
                node.unevaluated = node.unevaluated.saturating_add(1);
            }
            ("pattern", Value::String(pattern)) => {
                self.patterns.push((pattern, "pattern", place.to_owned()))
            }
            _ => {}
        }
        Ok(())
    }

    fn anchor(&mut self, index: usize, name: &'v str, place: &str) -> Result<(), SchemaError> {
        if self.anchors.insert(name, index).is_none() {
            return Ok(());
        }
        let instead = "another subschema has this anchor already, and every anchor may occur once";
        Err(SchemaError::Keyword { keyword: "$anchor", pointer: place.to_owned(), instead })
    }

    fn children(
        &mut self,
        index: usize,
        siblings: &Map<String, Value>,
        (keyword, value): (&str, &'v Value),
        (shape, reach): (Shape, Reach),
        place: &str,
    ) -> Result<(), SchemaError> {
        match (shape, value) {
            (Shape::One, Value::Object(_) | Value::Bool(_)) => {
                let step = if keyword == "items" {
                    Step::Items(tuple_length(siblings))
                } else {
                    plain(keyword, reach)
                };
                self.child(index, value, place.to_owned(), step, reach)
            }
            (Shape::List, Value::Array(list)) => {
                list.iter().enumerate().try_for_each(|(at, value)| {
                    self.child(
                        index,
                        value,
                        join(place, &at.to_string()),
                        plain(keyword, reach),
                        reach,
                    )
                })
            }
            (Shape::Map, Value::Object(map)) => map.iter().try_for_each(|(name, value)| {
                self.entry(index, (keyword, name), value, place, reach)
            }),
            // The meta-schema reports a keyword of the wrong shape.
            _ => Ok(()),
        }
    }

    fn entry(
        &mut self,
        index: usize,
        (keyword, name): (&str, &'v str),
        value: &'v Value,
        place: &str,
        reach: Reach,
    ) -> Result<(), SchemaError> {
        refuse_name(name, keyword, place)?;
        let place = join(place, name);
        if keyword == "dependencies" && value.is_array() {
            return Ok(());
        }
        if keyword == "patternProperties" {
            self.patterns.push((name, "patternProperties", place.clone()));
        }
        let step = if keyword == "properties" {
            Step::Property(name.to_owned())
        } else {
            plain(keyword, reach)
        };
        self.child(index, value, place, step, reach)
    }

    fn child(
        &mut self,
        parent: usize,
        value: &'v Value,
        place: String,
        step: Step,
        reach: Reach,
    ) -> Result<(), SchemaError> {
        let child = self.subschema(value, place)?;
        if reach != Reach::Stored {
            self.lead(parent, step, child);
        }
        Ok(())
    }

    fn lead(&mut self, from: usize, step: Step, to: usize) {
        if let Some(node) = self.nodes.get_mut(from) {
            node.steps.push((step, to));
        }
    }

    fn resolve(&mut self) -> Result<(), SchemaError> {
        for (from, target) in std::mem::take(&mut self.references) {
            let to = self.find(target).map_err(|why| SchemaError::Reference {
                pointer: self
                    .nodes
                    .get(from)
                    .map(|node| join(&node.pointer, "$ref"))
                    .unwrap_or_default(),
                target: elided(target, 128),
                why,
            })?;
            self.lead(from, Step::Ref, to);
        }
        Ok(())
    }

    fn find(&self, target: &str) -> Result<usize, &'static str> {
        let fragment = target
            .strip_prefix('#')
            .ok_or("points out of this schema, and nothing is ever fetched")?;
        let fragment = percent_decode(fragment).ok_or("is not a valid URI fragment")?;
        if fragment.is_empty() || fragment.starts_with('/') {
            return self.places.get(&fragment).copied().ok_or("is no place of a subschema");
        }
        self.anchors.get(fragment.as_str()).copied().ok_or("is no `$anchor` of this schema")
    }
}

/// Appends one reference token to a JSON pointer.
#[must_use]
pub fn join(pointer: &str, token: &str) -> String {
    let mut joined =
        String::with_capacity(pointer.len().saturating_add(token.len()).saturating_add(1));
    joined.push_str(pointer);
    push_token(&mut joined, token);
    joined
}

/// Appends a token as [`join`], in place.
pub(super) fn push_token(pointer: &mut String, token: &str) {
    pointer.push('/');
    for c in token.chars() {
        match c {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            c => pointer.push(c),
        }
    }
}

/// Returns the index where `items` begins. In 2020-12 this is after the tuple of `prefixItems`; if
/// `items` itself is the tuple, there is nothing to skip.
fn tuple_length(siblings: &Map<String, Value>) -> usize {
    siblings.get("prefixItems").and_then(Value::as_array).map_or(0, Vec::len)
}

/// Creates a step with the keyword's static name, since steps outlive the document.
fn plain(keyword: &str, reach: Reach) -> Step {
    const NAMES: [&str; 17] = [
        "allOf",
        "anyOf",
        "oneOf",
        "not",
        "if",
        "then",
        "else",
        "dependentSchemas",
        "dependencies",
        "patternProperties",
        "additionalProperties",
        "propertyNames",
        "contains",
        "additionalItems",
        "prefixItems",
        "unevaluatedItems",
        "unevaluatedProperties",
    ];
    // Only the tuple form of draft-07 reaches this.
    let name = if keyword == "items" {
        "a tuple of items"
    } else {
        NAMES.into_iter().find(|name| *name == keyword).unwrap_or("an applicator")
    };
    if reach == Reach::Same { Step::Same(name) } else { Step::Inside(name) }
}

fn refuse_foreign(
    keyword: &str,
    value: &Value,
    place: &str,
    is_root: bool,
) -> Result<(), SchemaError> {
    let (keyword, instead) = match keyword {
        "$schema" if !is_root => return Err(SchemaError::Dialect { pointer: place.to_owned() }),
        "$id" if !is_root => (
            "$id",
            "it would move the base of references; leave it out, and refer with \"#/$defs/NAME\"",
        ),
        "$dynamicRef" => ("$dynamicRef", "use `$ref`"),
        "$dynamicAnchor" => ("$dynamicAnchor", "use `$defs` and `$ref`"),
        "$recursiveRef" => ("$recursiveRef", "use `$ref`: \"#\""),
        "$recursiveAnchor" => ("$recursiveAnchor", "use `$ref`: \"#\""),
        "$vocabulary" => ("$vocabulary", "it belongs to meta-schemas; leave it out"),
        "x-mcp-header" if !is_header_name(value) => {
            ("x-mcp-header", "want the name of an HTTP header: 1 to 64 letters, digits and hyphens")
        }
        _ => return Ok(()),
    };
    Err(SchemaError::Keyword { keyword, pointer: place.to_owned(), instead })
}

fn is_header_name(value: &Value) -> bool {
    let fits = |name: &str| {
        (1..=64).contains(&name.len())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    value.as_str().is_some_and(fits)
}

fn refuse_name(name: &str, keyword: &str, place: &str) -> Result<(), SchemaError> {
    // A pattern is not read as a name, and has its own bound.
    let is_pattern = keyword == "patternProperties";
    let why = if first_deceptive(name).is_some() || name.contains(['\n', '\t']) {
        "it holds control, zero-width or bidirectional characters"
    } else if name.len() > MAX_NAME && !is_pattern {
        "it is longer than 256 bytes"
    } else {
        return Ok(());
    };
    Err(SchemaError::Name {
        name: format!("{:?}", elided(name, 64)),
        pointer: place.to_owned(),
        why,
    })
}

/// Decodes percent escapes such as `%41` in a URI fragment. Returns `None` if an escape is
/// malformed or the result is not UTF-8.
#[must_use]
pub fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let pair = [bytes.next()?, bytes.next()?];
        let digits = std::str::from_utf8(&pair)
            .ok()
            .filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))?;
        decoded.push(u8::from_str_radix(digits, 16).ok()?);
    }
    String::from_utf8(decoded).ok()
}
