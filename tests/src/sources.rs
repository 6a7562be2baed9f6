//! The paths that a Rust source names outside of its tests, found by parsing.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::ToTokens as _;
use std::collections::BTreeSet;
use syn::visit_mut::{self, VisitMut};
use syn::{Attribute, File, ImplItem, Item, ItemImpl, ItemMod, TraitItem};

/// Returns every path and single identifier of a source, such as `crate::tool::Call` or `println`.
/// Items that are compiled for tests only are left out. The trees of `use` are expanded, and `self`
/// and `super` are resolved against the file's module.
///
/// # Errors
///
/// If the text is no Rust source.
pub fn named(text: &str, module: &[&str]) -> syn::Result<BTreeSet<String>> {
    let mut file: File = syn::parse_str(text)?;
    WithoutTests.visit_file_mut(&mut file);
    let mut names = Names { module, found: BTreeSet::new() };
    names.scan(file.to_token_stream(), &[]);
    Ok(names.found)
}

/// Returns the module path of a file below the root of its crate: `["tool", "text"]` for
/// `tool/text.rs`.
#[must_use]
pub fn module_of(file: &str) -> Vec<&str> {
    let parts = file.strip_suffix(".rs").unwrap_or(file).split('/');
    parts.filter(|part| !matches!(*part, "lib" | "main")).collect()
}

/// Removes the items that are compiled for tests only.
struct WithoutTests;

impl VisitMut for WithoutTests {
    fn visit_file_mut(&mut self, file: &mut File) {
        file.items.retain(is_kept);
        visit_mut::visit_file_mut(self, file);
    }

    fn visit_item_mod_mut(&mut self, module: &mut ItemMod) {
        if let Some((_, items)) = &mut module.content {
            items.retain(is_kept);
        }
        visit_mut::visit_item_mod_mut(self, module);
    }

    fn visit_item_impl_mut(&mut self, block: &mut ItemImpl) {
        block.items.retain(|item| match item {
            ImplItem::Const(item) => !is_test(&item.attrs),
            ImplItem::Fn(item) => !is_test(&item.attrs),
            ImplItem::Type(item) => !is_test(&item.attrs),
            _ => true,
        });
        visit_mut::visit_item_impl_mut(self, block);
    }

    fn visit_item_trait_mut(&mut self, item: &mut syn::ItemTrait) {
        item.items.retain(|item| match item {
            TraitItem::Fn(item) => !is_test(&item.attrs),
            _ => true,
        });
        visit_mut::visit_item_trait_mut(self, item);
    }
}

fn is_kept(item: &Item) -> bool {
    let attributes = match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => return true,
    };
    !is_test(attributes)
}

/// Returns true for `#[test]`, `#[cfg(test)]` and `#[cfg(all(test, …))]`.
fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let text = attribute.meta.to_token_stream().to_string().replace(' ', "");
        text == "test" || text == "cfg(test)" || text.starts_with("cfg(all(test,")
    })
}

struct Names<'a> {
    module: &'a [&'a str],
    found: BTreeSet<String>,
}

impl Names<'_> {
    /// Adds the paths of some tokens. `prefix` is the path before a group of `use`.
    fn scan(&mut self, tokens: TokenStream, prefix: &[String]) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut path: Vec<String> = prefix.to_vec();
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            at += 1;
            match token {
                TokenTree::Ident(ident) => {
                    path.push(ident.to_string());
                    if is_separator(&tokens, at) {
                        at += 2;
                        match tokens.get(at) {
                            Some(TokenTree::Ident(_)) => continue,
                            Some(TokenTree::Group(group)) => {
                                at += 1;
                                self.enter(group, &path);
                            }
                            _ => self.add(&path),
                        }
                    } else {
                        self.add(&path);
                    }
                }
                TokenTree::Group(group) => self.enter(group, &[]),
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
            path = prefix.to_vec();
        }
    }

    fn enter(&mut self, group: &Group, path: &[String]) {
        let is_tree = group.delimiter() == Delimiter::Brace;
        self.scan(group.stream(), if is_tree { path } else { &[] });
    }

    fn add(&mut self, path: &[String]) {
        let is_relative = |part: &String| part == "self" || part == "super";
        let steps = path.iter().take_while(|part| is_relative(part)).count();
        if steps == 0 || path.len() == 1 {
            self.found.insert(path.join("::"));
            return;
        }
        let up = path.iter().take(steps).filter(|part| *part == "super").count();
        let module = self.module.iter().take(self.module.len().saturating_sub(up));
        let parts = module.copied().chain(path.iter().skip(steps).map(String::as_str));
        let whole: Vec<&str> = std::iter::once("crate").chain(parts).collect();
        self.found.insert(whole.join("::"));
    }
}

/// Returns true if `::` stands at this place.
fn is_separator(tokens: &[TokenTree], at: usize) -> bool {
    let is_colon = |token: Option<&TokenTree>| matches!(token, Some(TokenTree::Punct(it)) if it.as_char() == ':');
    is_colon(tokens.get(at)) && is_colon(tokens.get(at + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str, module: &[&str]) -> BTreeSet<String> {
        named(text, module).expect("it is Rust")
    }

    #[test]
    fn use_trees_are_expanded() {
        let found = names("use a::{b, c::{d as e, self}, f::*};", &[]);
        for path in ["a::b", "a::c::d", "a::c::self"] {
            assert!(found.contains(path), "{path}: {found:?}");
        }
    }

    #[test]
    fn paths_in_expressions_types_macros_and_attributes_are_found() {
        let text = "#[derive(p::D)] struct S(q::T); fn f() { r::g(); println!(\"{}\", s::H); }";
        let found = names(text, &[]);
        for path in ["p::D", "q::T", "r::g", "println", "s::H"] {
            assert!(found.contains(path), "{path}: {found:?}");
        }
    }

    #[test]
    fn relative_paths_are_resolved() {
        let found = names("use super::x::Y; fn f() { super::super::z(); self::w(); }", &["a", "b"]);
        for path in ["crate::a::x::Y", "crate::z", "crate::a::b::w"] {
            assert!(found.contains(path), "{path}: {found:?}");
        }
        assert_eq!(module_of("tool/text.rs"), ["tool", "text"]);
        assert_eq!(module_of("lib.rs"), [""; 0]);
    }

    #[test]
    fn only_test_items_are_omitted() {
        let text = "#[cfg(test)] mod tests; use a::A; #[cfg(all(test, unix))] mod t { use b::B; }
            #[cfg(not(test))] use c::C; impl S { #[cfg(test)] fn f() { d::d() } fn g() { e::e() } }
            #[test] fn h() { f::f() }";
        let found = names(text, &[]);
        assert!(["a::A", "c::C", "e::e"].iter().all(|path| found.contains(*path)), "{found:?}");
        assert!(["b::B", "d::d", "f::f"].iter().all(|path| !found.contains(*path)), "{found:?}");
    }
}
