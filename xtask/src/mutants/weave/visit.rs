//! Finds the places of faults in a parsed source, and returns the edits there.
//!
//! Code that is evaluated at compile time (constants, array lengths, `const fn`) is skipped: it
//! cannot query a switch.

use super::{Fault, Site, forms};
use crate::mutants::fault::Kind;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// A replacement of a range of the source.
#[derive(Debug)]
pub(super) struct Edit {
    pub(super) place: Range<usize>,
    pub(super) text: String,
}

/// All edits of a source, the numbers of their faults, and the numbers of the faults that Rust's
/// grammar does not allow.
#[derive(Debug, Default)]
pub(super) struct Edits {
    pub(super) found: Vec<Edit>,
    pub(super) woven: BTreeSet<usize>,
    pub(super) unviable: BTreeSet<usize>,
}

pub(super) fn edits(
    source: &str,
    parsed: &syn::File,
    sites: &BTreeMap<Site, Vec<&Fault>>,
) -> Edits {
    let mut weaver = Weaver { source, sites, edits: Edits::default() };
    weaver.visit_file(parsed);
    weaver.edits
}

struct Weaver<'a> {
    source: &'a str,
    sites: &'a BTreeMap<Site, Vec<&'a Fault>>,
    edits: Edits,
}

impl<'a> Weaver<'a> {
    fn faults(&self, kind: Kind, spanned: &impl Spanned) -> Vec<&'a Fault> {
        let start = spanned.span().start();
        let site = Site { kind, line: start.line, column: start.column + 1 };
        self.sites.get(&site).cloned().unwrap_or_default()
    }

    fn text(&self, spanned: &impl Spanned) -> &'a str {
        self.source.get(spanned.span().byte_range()).unwrap_or_default()
    }

    fn put(&mut self, place: Range<usize>, text: String) {
        self.edits.found.push(Edit { place, text });
    }

    fn insert(&mut self, at: usize, text: String) {
        self.put(at..at, text);
    }

    fn note(&mut self, faults: &[&Fault]) {
        self.edits.woven.extend(faults.iter().map(|fault| fault.number));
    }

    fn function(&mut self, signature: &syn::Signature, body: &syn::Block) {
        if signature.constness.is_some() {
            return;
        }
        // The body determines the type behind `impl Trait`, so a constant may have another type.
        let is_open = matches!(&signature.output, syn::ReturnType::Type(_, of) if self.text(of).contains("impl "));
        if let Some(first) = body.stmts.first().filter(|_| !is_open) {
            let faults = self.faults(Kind::Body, first);
            if !faults.is_empty() {
                self.insert(body.brace_token.span.open().byte_range().end, forms::body(&faults));
                self.note(&faults);
            }
        }
        self.visit_block(body);
    }

    /// Weaves the faults of a binary operator.
    fn weave_binary(&mut self, node: &syn::ExprBinary, faults: &[&'a Fault]) {
        let [begin, middle, end] = forms::binary(self.text(&node.op), faults);
        let whole = node.span().byte_range();
        self.insert(whole.start, begin);
        self.visit_expr(&node.left);
        self.put(node.op.span().byte_range(), middle);
        self.visit_expr(&node.right);
        self.insert(whole.end, end);
        self.note(faults);
    }

    /// Weaves the faults of a compound assignment. Its form repeats the assigned place, so the
    /// faults inside that place are not woven.
    fn weave_assignment(&mut self, node: &syn::ExprBinary, faults: &[&'a Fault]) {
        let [begin, end] = forms::assignment(self.text(&node.left), self.text(&node.op), faults);
        self.put(node.span().byte_range().start..node.right.span().byte_range().start, begin);
        self.visit_expr(&node.right);
        self.insert(node.span().byte_range().end, end);
        self.note(faults);
    }
}

impl<'ast> Visit<'ast> for Weaver<'_> {
    fn visit_item_fn(&mut self, node: &'ast syn::ItemFn) {
        self.function(&node.sig, &node.block);
    }

    fn visit_impl_item_fn(&mut self, node: &'ast syn::ImplItemFn) {
        self.function(&node.sig, &node.block);
    }

    fn visit_trait_item_fn(&mut self, node: &'ast syn::TraitItemFn) {
        if let Some(body) = &node.default {
            self.function(&node.sig, body);
        }
    }

    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}

    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}

    fn visit_trait_item_const(&mut self, _: &'ast syn::TraitItemConst) {}

    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}

    fn visit_item_enum(&mut self, _: &'ast syn::ItemEnum) {}

    fn visit_type(&mut self, _: &'ast syn::Type) {}

    fn visit_expr_repeat(&mut self, node: &'ast syn::ExprRepeat) {
        self.visit_expr(&node.expr);
    }

    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}

    fn visit_expr_binary(&mut self, node: &'ast syn::ExprBinary) {
        let faults = self.faults(Kind::Binary, &node.op);
        let is_chain = has_let(&node.left) || has_let(&node.right);
        if is_chain {
            self.edits.unviable.extend(faults.iter().map(|fault| fault.number));
        }
        match self.text(&node.op) {
            _ if faults.is_empty() || is_chain => visit::visit_expr_binary(self, node),
            op if op.ends_with('=') && !["==", "!=", "<=", ">="].contains(&op) => {
                self.weave_assignment(node, &faults);
            }
            _ => self.weave_binary(node, &faults),
        }
    }

    fn visit_expr_unary(&mut self, node: &'ast syn::ExprUnary) {
        let faults = self.faults(Kind::Unary, &node.op);
        if faults.is_empty() {
            return visit::visit_expr_unary(self, node);
        }
        let [begin, end] = forms::unary(self.text(&node.op), &faults);
        self.put(node.op.span().byte_range(), begin);
        self.visit_expr(&node.expr);
        self.insert(node.span().byte_range().end, end);
        self.note(&faults);
    }

    fn visit_arm(&mut self, node: &'ast syn::Arm) {
        let arm = self.faults(Kind::Arm, node);
        if let Some((_, guard)) = &node.guard {
            let guards = self.faults(Kind::Guard, guard);
            let [begin, end] = forms::guard(&guards, &arm);
            let is_changed = !(guards.is_empty() && arm.is_empty());
            let place = guard.span().byte_range();
            is_changed.then(|| self.insert(place.start, begin));
            self.visit_expr(guard);
            is_changed.then(|| self.insert(place.end, end));
            self.note(&guards);
        } else if !arm.is_empty() {
            self.insert(node.pat.span().byte_range().end, forms::arm(&arm));
        }
        self.note(&arm);
        self.visit_expr(&node.body);
    }

    fn visit_expr_struct(&mut self, node: &'ast syn::ExprStruct) {
        for value in &node.fields {
            let faults = self.faults(Kind::Field, value);
            let Some(rest) = node.rest.as_deref().filter(|_| !faults.is_empty()) else {
                self.visit_field_value(value);
                continue;
            };
            let name = self.text(&value.member);
            let [begin, end] = forms::field(name, self.text(&node.path), self.text(rest), &faults);
            let label =
                if value.colon_token.is_none() { format!("{name}: ") } else { String::new() };
            self.insert(value.expr.span().byte_range().start, label + &begin);
            self.visit_expr(&value.expr);
            self.insert(value.expr.span().byte_range().end, end);
            self.note(&faults);
        }
        node.rest.iter().for_each(|rest| self.visit_expr(rest));
    }
}

/// Returns whether a condition is a `let` chain, in which `&&` cannot be replaced.
fn has_let(condition: &syn::Expr) -> bool {
    match condition {
        syn::Expr::Let(_) => true,
        syn::Expr::Binary(both) => has_let(&both.left) || has_let(&both.right),
        _ => false,
    }
}
