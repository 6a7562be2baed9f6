//! The tree of a page. The parser compares the name of an element with those of the elements that
//! are open, so that its time grows with the square of the depth. A page is hostile: the comparisons
//! are counted, and a page that needs too many of them is refused.

use htmd::Node;
use html5ever::interface::{ElementFlags, NodeOrText, QuirksMode, TreeSink};
use html5ever::tendril::{StrTendril, TendrilSink as _};
use html5ever::{Attribute, ExpandedName, ParseOpts, QualName, parse_document};
use markup5ever_rcdom::RcDom;
use palisade_guest::{Error, Result};
use std::borrow::Cow;
use std::cell::Cell;
use std::rc::Rc;

/// The most comparisons of names for one page: a second of computation. A page of 4 MiB that people
/// read needs some ten million, and one that opens 7,000 elements in each other fifty million.
const COMPARISONS: u64 = 100_000_000;

/// The most bytes that are parsed before the comparisons are looked at.
const PIECE: usize = 4096;

/// Parses a page.
pub(super) fn parse(html: &str) -> Result<Rc<Node>> {
    let mut parser = parse_document(Counting::default(), ParseOpts::default());
    let mut rest = html;
    while !rest.is_empty() {
        let (piece, behind) = rest.split_at(rest.floor_char_boundary(PIECE));
        parser.process(StrTendril::from(piece));
        if parser.tokenizer.sink.sink.comparisons.get() > COMPARISONS {
            let parsed = html.len() - behind.len();
            return Err(Error::failed(format!(
                "the page nests its elements too deep to be converted: its first {parsed} bytes open more elements in each other than pages that people read; `\"format\": \"source\"` returns it as it is"
            )));
        }
        rest = behind;
    }
    Ok(parser.finish().document)
}

/// A tree that counts the comparisons of names.
#[derive(Default)]
struct Counting {
    tree: RcDom,
    comparisons: Cell<u64>,
}

impl Counting {
    fn count(&self) {
        self.comparisons.set(self.comparisons.get().saturating_add(1));
    }
}

impl TreeSink for Counting {
    type Handle = Rc<Node>;
    type Output = RcDom;
    type ElemName<'a> = ExpandedName<'a>;

    fn finish(self) -> RcDom {
        self.tree
    }

    /// Errors of a page are of no use here, and would take memory.
    fn parse_error(&self, _: Cow<'static, str>) {}

    fn get_document(&self) -> Rc<Node> {
        self.tree.get_document()
    }

    fn elem_name<'a>(&'a self, target: &'a Rc<Node>) -> ExpandedName<'a> {
        self.count();
        self.tree.elem_name(target)
    }

    fn create_element(
        &self,
        name: QualName,
        attrs: Vec<Attribute>,
        flags: ElementFlags,
    ) -> Rc<Node> {
        self.tree.create_element(name, attrs, flags)
    }

    fn create_comment(&self, text: StrTendril) -> Rc<Node> {
        self.tree.create_comment(text)
    }

    fn create_pi(&self, target: StrTendril, data: StrTendril) -> Rc<Node> {
        self.tree.create_pi(target, data)
    }

    fn append(&self, parent: &Rc<Node>, child: NodeOrText<Rc<Node>>) {
        self.tree.append(parent, child);
    }

    fn append_based_on_parent_node(
        &self,
        element: &Rc<Node>,
        previous: &Rc<Node>,
        child: NodeOrText<Rc<Node>>,
    ) {
        self.tree.append_based_on_parent_node(element, previous, child);
    }

    fn append_doctype_to_document(&self, name: StrTendril, public: StrTendril, system: StrTendril) {
        self.tree.append_doctype_to_document(name, public, system);
    }

    fn get_template_contents(&self, target: &Rc<Node>) -> Rc<Node> {
        self.tree.get_template_contents(target)
    }

    fn same_node(&self, one: &Rc<Node>, other: &Rc<Node>) -> bool {
        self.count();
        self.tree.same_node(one, other)
    }

    fn set_quirks_mode(&self, mode: QuirksMode) {
        self.tree.set_quirks_mode(mode);
    }

    fn append_before_sibling(&self, sibling: &Rc<Node>, new: NodeOrText<Rc<Node>>) {
        self.tree.append_before_sibling(sibling, new);
    }

    fn add_attrs_if_missing(&self, target: &Rc<Node>, attrs: Vec<Attribute>) {
        self.tree.add_attrs_if_missing(target, attrs);
    }

    fn remove_from_parent(&self, target: &Rc<Node>) {
        self.tree.remove_from_parent(target);
    }

    fn reparent_children(&self, node: &Rc<Node>, new_parent: &Rc<Node>) {
        self.tree.reparent_children(node, new_parent);
    }

    fn is_mathml_annotation_xml_integration_point(&self, handle: &Rc<Node>) -> bool {
        self.tree.is_mathml_annotation_xml_integration_point(handle)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use super::*;

    #[test]
    fn page_of_the_most_bytes_is_parsed() {
        let page = "<div><p>some <b>text</b> of a page<ul><li>one<li>two</ul></div>".repeat(64_000);
        assert!(page.len() < 4 * 1024 * 1024 && parse(&page).is_ok());
        assert!(parse(&"<div>".repeat(7_000)).is_ok());
        assert!(parse("").is_ok());
    }

    #[test]
    fn page_that_costs_the_square_of_its_length_is_refused() {
        for (begin, repeated) in [
            ("", "<div>"),
            ("", "<p><section>"),
            ("<table>", "<div>"),
            ("<template>", "<div>"),
            ("<ul>", "<li><ul>"),
        ] {
            let page = begin.to_owned() + &repeated.repeat(4 * 1024 * 1024 / repeated.len());
            let error = parse(&page).err().map(|error| error.message().to_owned());
            let message = error.unwrap_or_default();
            assert!(message.contains("too deep"), "{begin}{repeated}: {message:?}");
            assert!(message.contains("\"source\""), "{message}");
        }
    }
}
