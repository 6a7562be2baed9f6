//! Descriptions of a component's functions, as its WIT has them.

use crate::tool::text::cut;
use std::collections::BTreeMap;

/// The maximum length of a function's description, in bytes; the rest is cut off. Every request of
/// a model has it.
const MAX_TEXT: usize = 4 << 10;
/// The maximum length of the description of a part, in bytes.
const MAX_PART: usize = 1 << 10;

/// Descriptions of a component's functions and of the parts of their types, as its WIT has them.
///
/// A function is found by its name and that of its interface: with the version, without it, or by
/// the interface's last part alone, in this order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Docs(BTreeMap<String, FunctionDocs>);

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct FunctionDocs {
    text: Option<String>,
    /// By the path of the part.
    parts: BTreeMap<String, String>,
}

impl Docs {
    /// Adds the description of a function. `interface` is the name of its interface, such as
    /// `acme:text/words@1.0.0`, or `None` for a function of the world itself.
    #[must_use]
    pub fn with(mut self, interface: Option<&str>, function: &str, text: &str) -> Self {
        let function = self.0.entry(key(interface, function)).or_default();
        function.text = Some(cut(text.trim(), MAX_TEXT).to_owned()).filter(|text| !text.is_empty());
        self
    }

    /// Adds the description of a part of a function's types. The path of a part begins with the
    /// name of a parameter, or is empty for the result. It goes on with `.` and the name of a field
    /// or a case, with `[]` for the elements of a list, and with `.` and the position for those of
    /// a tuple: `shape.corners[].x`.
    #[must_use]
    pub fn with_part(
        mut self,
        interface: Option<&str>,
        function: &str,
        path: &str,
        text: &str,
    ) -> Self {
        if !text.trim().is_empty() {
            let function = self.0.entry(key(interface, function)).or_default();
            function.parts.insert(path.to_owned(), cut(text.trim(), MAX_PART).to_owned());
        }
        self
    }

    /// Returns true if no function is described.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the description of a function.
    pub(super) fn of(&self, interface: Option<&str>, function: &str) -> Option<&str> {
        self.find(interface, function)?.text.as_deref()
    }

    /// Returns the descriptions of the parts of a function's types, by their paths.
    pub(super) fn parts_of(&self, interface: Option<&str>, function: &str) -> Parts<'_> {
        Parts(self.find(interface, function).map(|function| &function.parts))
    }

    fn find(&self, interface: Option<&str>, function: &str) -> Option<&FunctionDocs> {
        let Some(whole) = interface else { return self.0.get(&key(None, function)) };
        let unversioned = whole.split('@').next().unwrap_or(whole);
        let last = unversioned.rsplit('/').next().unwrap_or(unversioned);
        let names = [whole, unversioned, last];
        names.into_iter().find_map(|name| self.0.get(&key(Some(name), function)))
    }
}

/// The descriptions of the parts of a function's types.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parts<'a>(Option<&'a BTreeMap<String, String>>);

impl<'a> Parts<'a> {
    /// Returns the description of the part with this path.
    pub(super) fn at(self, path: &str) -> Option<&'a str> {
        self.0?.get(path).map(String::as_str)
    }
}

/// Returns the key of a function. `#` is in no name of WIT.
fn key(interface: Option<&str>, function: &str) -> String {
    interface.map_or_else(|| function.to_owned(), |interface| format!("{interface}#{function}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn function_is_found_by_the_most_precise_name_of_its_interface() {
        let docs = Docs::default().with(Some("words"), "count", "any");
        let of = |docs: &Docs, interface| docs.of(interface, "count").map(str::to_owned);
        let whole = Some("acme:text/words@1.0.0");
        assert_eq!(of(&docs, whole).as_deref(), Some("any"));
        let docs = docs.with(Some("acme:text/words"), "count", "of the package");
        assert_eq!(of(&docs, whole).as_deref(), Some("of the package"));
        let docs = docs.with(whole, "count", "of the version");
        assert_eq!(of(&docs, whole).as_deref(), Some("of the version"));
        assert_eq!(of(&docs, Some("acme:text/lines@1.0.0")), None);
        assert_eq!(of(&docs, None), None, "a function of the world has no interface");
    }

    #[test]
    fn blank_descriptions_are_none() {
        let docs = Docs::default().with(None, "f", " \n").with_part(None, "f", "a", "\t");
        assert_eq!((docs.of(None, "f"), docs.parts_of(None, "f").at("a")), (None, None));
    }
}
