//! The circles in the module graph of a folder: modules that depend on each other, directly or
//! through others.

use crate::sources::{module_of, named};
use std::collections::{BTreeMap, BTreeSet};

/// A source file of a crate.
#[derive(Clone)]
pub struct Source {
    /// The path below the root of the crate, such as `sandbox/run.rs`.
    pub file: String,
    /// The content.
    pub text: String,
}

/// Returns the folders at and below `top` that have source files, such as `sandbox/run`.
#[must_use]
pub fn folders(top: &str, sources: &[Source]) -> BTreeSet<String> {
    let inside = sources.iter().filter(|source| source.file.starts_with(&format!("{top}/")));
    let parents = inside.flat_map(|source| {
        let ends = source.file.match_indices('/').map(|(end, _)| end);
        ends.map(|end| source.file[..end].to_owned())
    });
    parents.filter(|folder| folder == top || folder.starts_with(&format!("{top}/"))).collect()
}

/// Returns the sets of modules of a folder that depend on each other. A child module with all of
/// its own children counts as one, and so does the parent module, `sandbox.rs` for `sandbox`. A
/// child that names an item of the parent, defined or re-exported there, depends on the parent.
///
/// # Errors
///
/// If a text is no Rust source.
pub fn circles(folder: &str, sources: &[Source]) -> syn::Result<Vec<BTreeSet<String>>> {
    let graph = graph(folder, sources)?;
    let reachable: BTreeMap<&String, BTreeSet<String>> =
        graph.keys().map(|module| (module, reached_from(module, &graph))).collect();
    let mut circles = Vec::new();
    for (module, reached) in &reachable {
        let is_mutual =
            |other: &&String| reachable.get(other).is_some_and(|back| back.contains(*module));
        let circle: BTreeSet<String> = reached.iter().filter(is_mutual).cloned().collect();
        if circle.len() > 1 && !circles.contains(&circle) {
            circles.push(circle);
        }
    }
    Ok(circles)
}

type Graph = BTreeMap<String, BTreeSet<String>>;

/// Returns the modules of the folder, each with those that it names.
fn graph(folder: &str, sources: &[Source]) -> syn::Result<Graph> {
    let known: BTreeSet<Vec<&str>> = sources.iter().map(|source| module_of(&source.file)).collect();
    let base = module_of(folder);
    let mut graph = Graph::new();
    for source in sources {
        let module = module_of(&source.file);
        let Some(own) = part_of(&module, &base, &known) else { continue };
        let named_modules = graph.entry(own.clone()).or_default();
        for name in named(&source.text, &module)? {
            let parts: Vec<&str> = name.split("::").collect();
            let path = match parts.as_slice() {
                // The folder itself, in a visibility such as `pub(in crate::sandbox)`.
                ["crate", path @ ..] if path == base => continue,
                ["crate", path @ ..] => path.to_vec(),
                [first, _, ..] if known.contains(&[module.as_slice(), &[*first]].concat()) => {
                    [module.as_slice(), &parts].concat()
                }
                _ => continue,
            };
            named_modules.extend(part_of(&path, &base, &known).filter(|named| *named != own));
        }
    }
    Ok(graph)
}

/// Returns the module of the folder that a path leads into: a child, or the folder's own module.
fn part_of(path: &[&str], base: &[&str], known: &BTreeSet<Vec<&str>>) -> Option<String> {
    let rest = path.strip_prefix(base)?;
    let child = rest.first().map(|first| [base, &[*first]].concat());
    let part = child.filter(|child| known.contains(child)).unwrap_or_else(|| base.to_vec());
    Some(part.join("/"))
}

fn reached_from(module: &str, graph: &Graph) -> BTreeSet<String> {
    let mut reached = BTreeSet::new();
    let mut open = vec![module.to_owned()];
    while let Some(next) = open.pop() {
        for named in graph.get(&next).into_iter().flatten() {
            if reached.insert(named.clone()) {
                open.push(named.clone());
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(file: &str, text: &str) -> Source {
        Source { file: file.to_owned(), text: text.to_owned() }
    }

    fn circles_of(folder: &str, files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let sources: Vec<Source> = files.iter().map(|(file, text)| source(file, text)).collect();
        let circles = circles(folder, &sources).expect("it is Rust");
        circles.into_iter().map(|circle| circle.into_iter().collect()).collect()
    }

    #[test]
    fn modules_that_name_each_other_are_a_circle() {
        let files = [
            ("a.rs", "mod x; mod y; mod z; pub use x::X;"),
            ("a/x.rs", "use super::y::Y;"),
            ("a/y.rs", "fn f() -> crate::a::z::Z { x }"),
            ("a/z.rs", "use crate::{a::x::X, b::B};"),
            ("b.rs", "use crate::a::X;"),
        ];
        assert_eq!(circles_of("a", &files), [["a/x", "a/y", "a/z"]]);
        let mut open = files;
        open[3] = ("a/z.rs", "use crate::b::B;");
        assert_eq!(circles_of("a", &open), [[""; 0]; 0]);
    }

    #[test]
    fn a_child_that_names_an_item_of_the_parent_is_in_a_circle_with_it() {
        let parent = ("a.rs", "mod x; use x::X; struct A(X);");
        assert_eq!(circles_of("a", &[parent, ("a/x.rs", "use super::A;")]), [["a", "a/x"]]);
        for text in ["use crate::b::A;", "pub(in crate::a) struct X;"] {
            assert_eq!(circles_of("a", &[parent, ("a/x.rs", text)]), [[""; 0]; 0], "{text}");
        }
    }

    #[test]
    fn each_level_has_its_own_graph() {
        let files = [
            ("a.rs", "mod x; mod y;"),
            ("a/x.rs", "mod one; mod other;"),
            ("a/x/one.rs", "use super::other::O; use crate::a::y::Y;"),
            ("a/x/other.rs", "use super::one::P;"),
            ("a/y.rs", ""),
        ];
        assert_eq!(circles_of("a", &files), [[""; 0]; 0]);
        assert_eq!(circles_of("a/x", &files), [["a/x/one", "a/x/other"]]);
        let sources: Vec<Source> = files.iter().map(|(file, text)| source(file, text)).collect();
        assert_eq!(folders("a", &sources).into_iter().collect::<Vec<_>>(), ["a", "a/x"]);
    }
}
