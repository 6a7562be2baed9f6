//! Finds the comments of a resolved package, with the paths of the parts that they describe.

use palisade::sandbox::Docs;
use std::collections::BTreeMap;
use wit_parser::{Docs as Comment, Function, Resolve, Type, TypeDefKind, WorldItem, WorldKey};

/// The maximum number of parts of a function's types that are visited: a type may use another one
/// many times over.
const MAX_PARTS: usize = 2_000;
/// The maximum nesting of types that are visited.
const MAX_DEPTH: usize = 24;
/// The size of the paths and the comments of all functions together, in bytes. Each function has
/// copies of those of its types, so that functions and types multiply each other.
const MAX_COPIED: usize = 32 << 20;
/// The weight of a visited part beside its path and its comment, in bytes.
const PART: usize = 32;

/// The comment of a part that has no place for one.
static NO_COMMENT: Comment = Comment { contents: None };

/// The paths and the comments of all functions together are larger than [`MAX_COPIED`].
#[derive(Debug, thiserror::Error)]
#[error("the comments of its types, repeated for each function that uses them, exceed 32 MiB")]
pub(super) struct TooLarge;

/// Returns the descriptions of all functions that a component may export: those of interfaces, and
/// those of worlds.
pub(super) fn docs(resolve: &Resolve) -> Result<Docs, TooLarge> {
    let mut found = Descriptions { resolve, docs: Docs::default(), room: MAX_COPIED };
    for (id, interface) in resolve.interfaces.iter() {
        let Some(name) = resolve.id_of(id) else { continue };
        for (_, function) in &interface.functions {
            found.add(Some(&name), function)?;
        }
    }
    for (_, world) in resolve.worlds.iter() {
        for (key, item) in &world.exports {
            match (item, key) {
                (WorldItem::Function(function), _) => found.add(None, function)?,
                // The functions of the others have been visited.
                (WorldItem::Interface { id, .. }, WorldKey::Name(name)) => {
                    for function in resolve.interfaces[*id].functions.values() {
                        found.add(Some(name), function)?;
                    }
                }
                (WorldItem::Interface { .. }, WorldKey::Interface(_))
                | (WorldItem::Type { .. }, _) => {}
            }
        }
    }
    Ok(found.docs)
}

/// The descriptions that were found so far.
struct Descriptions<'a> {
    resolve: &'a Resolve,
    docs: Docs,
    /// The bytes that are left of [`MAX_COPIED`].
    room: usize,
}

impl Descriptions<'_> {
    /// Adds the descriptions of a function and of the parts of its types.
    fn add(&mut self, interface: Option<&str>, function: &Function) -> Result<(), TooLarge> {
        let (name, comment) = (function.name.as_str(), text(&function.docs));
        self.room = [interface.unwrap_or_default(), name, comment]
            .iter()
            .try_fold(self.room, |room, text| room.checked_sub(text.len()))
            .ok_or(TooLarge)?;
        let found = BTreeMap::new();
        let mut walk = Walk { resolve: self.resolve, left: MAX_PARTS, room: self.room, found };
        for parameter in &function.params {
            walk.visit(parameter.ty, &parameter.name, 0)?;
        }
        if let Some(result) = function.result {
            walk.visit(walk.success(result), "", 0)?;
        }
        self.room = walk.room;
        let docs = std::mem::take(&mut self.docs).with(interface, name, comment);
        self.docs = walk
            .found
            .into_iter()
            .fold(docs, |docs, (path, text)| docs.with_part(interface, name, &path, text));
        Ok(())
    }
}

fn text(comment: &Comment) -> &str {
    comment.contents.as_deref().unwrap_or_default()
}

/// A visit to all parts of a function's types.
struct Walk<'a> {
    resolve: &'a Resolve,
    /// The parts that are left of [`MAX_PARTS`].
    left: usize,
    /// The bytes that are left of [`MAX_COPIED`].
    room: usize,
    /// The comments by the paths of their parts.
    found: BTreeMap<String, &'a str>,
}

impl<'a> Walk<'a> {
    /// Returns the type of a successful result: the error of a `result` is that of the tool.
    fn success(&self, ty: Type) -> Type {
        match ty {
            Type::Id(id) => match &self.resolve.types[id].kind {
                TypeDefKind::Result(result) => result.ok.unwrap_or(ty),
                _ => ty,
            },
            ty => ty,
        }
    }

    fn visit(&mut self, ty: Type, path: &str, depth: usize) -> Result<(), TooLarge> {
        let Type::Id(id) = ty else { return Ok(()) };
        if self.left == 0 || depth > MAX_DEPTH {
            return Ok(());
        }
        let resolve = self.resolve;
        let ty = &resolve.types[id];
        self.note(path, &ty.docs)?;
        let depth = depth + 1;
        match &ty.kind {
            TypeDefKind::Type(alias) => self.visit(*alias, path, depth)?,
            TypeDefKind::Option(inner) => self.visit(*inner, path, depth)?,
            TypeDefKind::List(element) => self.visit(*element, &format!("{path}[]"), depth)?,
            TypeDefKind::Record(record) => {
                for field in &record.fields {
                    self.part(path, &field.name, &field.docs, Some(field.ty), depth)?;
                }
            }
            TypeDefKind::Variant(variant) => {
                for case in &variant.cases {
                    self.part(path, &case.name, &case.docs, case.ty, depth)?;
                }
            }
            TypeDefKind::Enum(names) => {
                for case in &names.cases {
                    self.part(path, &case.name, &case.docs, None, depth)?;
                }
            }
            TypeDefKind::Flags(flags) => {
                for flag in &flags.flags {
                    self.part(path, &flag.name, &flag.docs, None, depth)?;
                }
            }
            TypeDefKind::Tuple(tuple) => {
                for (index, element) in tuple.types.iter().enumerate() {
                    self.part(path, &index.to_string(), &NO_COMMENT, Some(*element), depth)?;
                }
            }
            TypeDefKind::Result(result) => {
                for (name, payload) in [("ok", result.ok), ("err", result.err)] {
                    self.part(path, name, &NO_COMMENT, payload, depth)?;
                }
            }
            // Functions with these types are left out.
            TypeDefKind::Resource
            | TypeDefKind::Handle(_)
            | TypeDefKind::Map(..)
            | TypeDefKind::FixedLengthList(..)
            | TypeDefKind::Future(_)
            | TypeDefKind::Stream(_)
            | TypeDefKind::Unknown => {}
        }
        Ok(())
    }

    /// Visits a part of a type. Its own comment takes precedence over that of its type.
    fn part(
        &mut self,
        path: &str,
        name: &str,
        comment: &'a Comment,
        ty: Option<Type>,
        depth: usize,
    ) -> Result<(), TooLarge> {
        if self.left == 0 {
            return Ok(());
        }
        let path = join(path, name);
        self.note(&path, comment)?;
        ty.map_or(Ok(()), |ty| self.visit(ty, &path, depth))
    }

    /// Counts a part, and keeps its comment unless its path has one.
    fn note(&mut self, path: &str, comment: &'a Comment) -> Result<(), TooLarge> {
        self.left -= 1;
        let weight = PART + path.len() + text(comment).len();
        self.room = self.room.checked_sub(weight).ok_or(TooLarge)?;
        if let Some(text) = &comment.contents
            && !self.found.contains_key(path)
        {
            self.found.insert(path.to_owned(), text);
        }
        Ok(())
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
