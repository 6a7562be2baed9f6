//! Finds the comments of a resolved package, with the paths of the parts that they describe.

use palisade::sandbox::Docs;
use wit_parser::{Docs as Comment, Function, Resolve, Type, TypeDefKind, WorldItem, WorldKey};

/// The maximum number of parts of a function's types that are visited: a type may use another one
/// many times over.
const MAX_PARTS: usize = 2_000;
/// The maximum nesting of types that are visited.
const MAX_DEPTH: usize = 24;

/// Returns the descriptions of all functions that a component may export: those of interfaces, and
/// those of worlds.
pub(super) fn docs(resolve: &Resolve) -> Docs {
    let mut docs = Docs::default();
    for (id, interface) in resolve.interfaces.iter() {
        let Some(name) = resolve.id_of(id) else { continue };
        for (_, function) in &interface.functions {
            docs = described(resolve, docs, Some(&name), function);
        }
    }
    for (_, world) in resolve.worlds.iter() {
        for (key, item) in &world.exports {
            docs = match (item, key) {
                (WorldItem::Function(function), _) => described(resolve, docs, None, function),
                // The functions of the others have been visited.
                (WorldItem::Interface { id, .. }, WorldKey::Name(name)) => {
                    let functions = resolve.interfaces[*id].functions.values();
                    functions
                        .fold(docs, |docs, function| described(resolve, docs, Some(name), function))
                }
                (WorldItem::Interface { .. }, WorldKey::Interface(_))
                | (WorldItem::Type { .. }, _) => docs,
            };
        }
    }
    docs
}

/// Adds the descriptions of a function and of the parts of its types.
fn described(resolve: &Resolve, docs: Docs, interface: Option<&str>, function: &Function) -> Docs {
    let name = function.name.as_str();
    let docs = docs.with(interface, name, text(&function.docs));
    let mut walk = Walk { resolve, left: MAX_PARTS, found: Vec::new() };
    for parameter in &function.params {
        walk.visit(parameter.ty, &parameter.name, 0);
    }
    if let Some(result) = function.result {
        walk.visit(walk.success(result), "", 0);
    }
    let part =
        |docs: Docs, (path, text): (String, &str)| docs.with_part(interface, name, &path, text);
    walk.found.into_iter().fold(docs, part)
}

fn text(comment: &Comment) -> &str {
    comment.contents.as_deref().unwrap_or_default()
}

struct Walk<'a> {
    resolve: &'a Resolve,
    left: usize,
    found: Vec<(String, &'a str)>,
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

    fn visit(&mut self, ty: Type, path: &str, depth: usize) {
        let Type::Id(id) = ty else { return };
        self.left = self.left.saturating_sub(1);
        if self.left == 0 || depth > MAX_DEPTH {
            return;
        }
        let resolve = self.resolve;
        let ty = &resolve.types[id];
        self.note(path, &ty.docs);
        let depth = depth + 1;
        match &ty.kind {
            TypeDefKind::Type(alias) => self.visit(*alias, path, depth),
            TypeDefKind::Option(inner) => self.visit(*inner, path, depth),
            TypeDefKind::List(element) => self.visit(*element, &format!("{path}[]"), depth),
            TypeDefKind::Record(record) => {
                for field in &record.fields {
                    self.part(path, &field.name, &field.docs, Some(field.ty), depth);
                }
            }
            TypeDefKind::Variant(variant) => {
                for case in &variant.cases {
                    self.part(path, &case.name, &case.docs, case.ty, depth);
                }
            }
            TypeDefKind::Enum(names) => {
                for case in &names.cases {
                    self.part(path, &case.name, &case.docs, None, depth);
                }
            }
            TypeDefKind::Flags(flags) => {
                for flag in &flags.flags {
                    self.part(path, &flag.name, &flag.docs, None, depth);
                }
            }
            TypeDefKind::Tuple(tuple) => {
                for (index, element) in tuple.types.iter().enumerate() {
                    self.visit(*element, &join(path, &index.to_string()), depth);
                }
            }
            TypeDefKind::Result(result) => {
                for (name, payload) in [("ok", result.ok), ("err", result.err)] {
                    payload.into_iter().for_each(|ty| self.visit(ty, &join(path, name), depth));
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
    }

    /// Visits a named part. Its own comment takes precedence over that of its type.
    fn part(
        &mut self,
        path: &str,
        name: &str,
        comment: &'a Comment,
        ty: Option<Type>,
        depth: usize,
    ) {
        let path = join(path, name);
        self.note(&path, comment);
        ty.into_iter().for_each(|ty| self.visit(ty, &path, depth));
    }

    fn note(&mut self, path: &str, comment: &'a Comment) {
        let is_new = self.found.iter().all(|(known, _)| known != path);
        if let (true, Some(text)) = (is_new, &comment.contents) {
            self.found.push((path.to_owned(), text));
        }
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
