//! Walks a schema document once, and records its subschemas and their connections for the later
//! checks.

mod refused;
mod step;

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::access::PathAccess;
use super::error::SchemaError;
use super::keyword::{Dialect, Reach, Shape, holds, looks};
use super::pointer::{join, percent_decode};
use super::{MAX_SUBSCHEMAS, WORKSPACE_PATH, max_pointers};
use crate::json::type_name;
use crate::text::elided;
use refused::{refuse_foreign, refuse_name};
pub(super) use step::Step;

/// One subschema.
#[derive(Debug, Default)]
pub(super) struct Node {
    pub(super) pointer: String,
    pub(super) steps: Vec<(Step, usize)>,
    /// The use of the path that it marks with `"format": "workspace-path"`.
    pub(super) path: Option<PathAccess>,
    /// Whether it has `unevaluatedItems`.
    pub(super) collects_elements: bool,
    /// Whether it has `unevaluatedProperties`.
    pub(super) collects_members: bool,
    /// Whether it has a keyword that accesses each value of any type.
    pub(super) looks: bool,
}

impl Node {
    /// Returns the number of its `unevaluatedItems` and `unevaluatedProperties` keywords.
    pub(super) fn unevaluated(&self) -> u64 {
        u64::from(self.collects_elements) + u64::from(self.collects_members)
    }
}

/// A pattern in a schema.
#[derive(Debug)]
pub(super) struct PatternPlace<'v> {
    pub(super) pattern: &'v str,
    /// `pattern` or `patternProperties`.
    pub(super) keyword: &'static str,
    pub(super) pointer: String,
    /// The index of the subschema that holds the keyword.
    pub(super) node: usize,
}

/// All subschemas of a document. The root is the first.
#[derive(Debug)]
pub(super) struct Outline<'v> {
    pub(super) nodes: Vec<Node>,
    pub(super) patterns: Vec<PatternPlace<'v>>,
    /// Every `$ref`: the subschema that holds it, and the target.
    pub(super) references: Vec<(usize, &'v str)>,
    /// The length of the JSON pointers of all keywords, in bytes.
    pub(super) pointers: usize,
    max_pointers: usize,
    dialect: Dialect,
    places: HashMap<String, usize>,
    anchors: HashMap<&'v str, usize>,
}

/// A keyword that holds subschemas, such as `properties`.
struct Applicator<'k, 'v> {
    keyword: &'k str,
    value: &'v Value,
    reach: Reach,
    /// The JSON pointer of the keyword.
    place: &'k str,
}

impl<'v> Outline<'v> {
    /// Reads the document, whose compact text has this length in bytes. The caller has bounded its
    /// depth.
    pub(super) fn read(
        document: &'v Value,
        length: usize,
        dialect: Dialect,
    ) -> Result<Self, SchemaError> {
        let mut outline = Self {
            nodes: Vec::new(),
            patterns: Vec::new(),
            pointers: 0,
            max_pointers: max_pointers(length),
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
            self.count_pointer(&place)?;
            refuse_foreign(keyword, value, &place, index == 0)?;
            self.note(index, keyword, value, &place, only_ref)?;
            let Some((shape, reach)) = holds(keyword, value, self.dialect) else { continue };
            let reach = if only_ref { Reach::Stored } else { reach };
            let applicator = Applicator { keyword, value, reach, place: &place };
            self.children(index, keywords, &applicator, shape)?;
        }
        if let Some(node) = self.nodes.get_mut(index).filter(|node| node.path.is_some()) {
            node.path = Some(PathAccess::of(keywords, pointer)?);
        }
        Ok(())
    }

    /// Counts the pointer of a keyword, which the validator keeps with the keyword.
    fn count_pointer(&mut self, place: &str) -> Result<(), SchemaError> {
        self.pointers = self.pointers.saturating_add(place.len());
        if self.pointers > self.max_pointers {
            return Err(SchemaError::TooMuch {
                what: "too many bytes in the JSON pointers of its keywords",
                max: self.max_pointers,
                pointer: elided(place, 128),
            });
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
                node.path = Some(PathAccess::Write);
            }
            ("unevaluatedItems", _) => {
                node.collects_elements = self.dialect == Dialect::Draft202012;
            }
            ("unevaluatedProperties", _) => {
                node.collects_members = self.dialect == Dialect::Draft202012;
            }
            ("pattern", Value::String(pattern)) => {
                let (keyword, pointer) = ("pattern", place.to_owned());
                self.patterns.push(PatternPlace { pattern, keyword, pointer, node: index });
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
        applicator: &Applicator<'_, 'v>,
        shape: Shape,
    ) -> Result<(), SchemaError> {
        let Applicator { keyword, value, reach, place } = *applicator;
        match (shape, value) {
            (Shape::One, Value::Object(_) | Value::Bool(_)) => {
                let step = if keyword == "items" {
                    Step::Items(tuple_length(siblings))
                } else {
                    Step::of_keyword(keyword, reach)
                };
                self.child(index, value, place.to_owned(), step, reach)
            }
            (Shape::List, Value::Array(list)) => {
                list.iter().enumerate().try_for_each(|(at, value)| {
                    let step = Step::of_keyword(keyword, reach);
                    self.child(index, value, join(place, &at.to_string()), step, reach)
                })
            }
            (Shape::Map, Value::Object(map)) => {
                map.iter().try_for_each(|(name, value)| self.entry(index, applicator, name, value))
            }
            // The meta-schema reports a keyword of the wrong shape.
            _ => Ok(()),
        }
    }

    fn entry(
        &mut self,
        index: usize,
        applicator: &Applicator<'_, 'v>,
        name: &'v str,
        value: &'v Value,
    ) -> Result<(), SchemaError> {
        let Applicator { keyword, reach, place, .. } = *applicator;
        refuse_name(name, keyword, place)?;
        let place = join(place, name);
        if keyword == "dependencies" && value.is_array() {
            return Ok(());
        }
        if keyword == "patternProperties" {
            let (keyword, pointer) = ("patternProperties", place.clone());
            self.patterns.push(PatternPlace { pattern: name, keyword, pointer, node: index });
        }
        let step = if keyword == "properties" {
            Step::Property(name.to_owned())
        } else {
            Step::of_keyword(keyword, reach)
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
        let references = std::mem::take(&mut self.references);
        for &(from, target) in &references {
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
        self.references = references;
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

/// Returns the index where `items` begins. In 2020-12 this is after the tuple of `prefixItems`; if
/// `items` itself is the tuple, there is nothing to skip.
fn tuple_length(siblings: &Map<String, Value>) -> usize {
    siblings.get("prefixItems").and_then(Value::as_array).map_or(0, Vec::len)
}
