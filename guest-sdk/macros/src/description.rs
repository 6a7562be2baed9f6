//! Extracts the description of a tool from its doc comment.

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::{Attribute, Error, Expr, ExprLit, Lit, Meta, Result};

/// Maximum size of a description, in bytes (`wit/types.wit`, record `definition`).
const MAX_BYTES: usize = 16 * 1024;

/// Joins the doc comments among `attributes`, without their common indentation.
///
/// `function` is the span for the error of a missing comment.
pub(crate) fn description(attributes: &[Attribute], function: Span) -> Result<String> {
    let docs: Vec<_> =
        attributes.iter().filter(|attribute| attribute.path().is_ident("doc")).collect();
    let mut lines = Vec::new();
    for attribute in &docs {
        lines.extend(lines_of(attribute)?);
    }
    let text = unindent(&lines);
    if text.is_empty() {
        return Err(Error::new(
            function,
            "a tool needs a doc comment: it is the description the model reads",
        ));
    }
    check(&text, docs.first().map_or(function, Spanned::span))?;
    Ok(text)
}

fn check(text: &str, span: Span) -> Result<()> {
    if text.len() > MAX_BYTES {
        let message = format!(
            "a tool's description is at most {MAX_BYTES} bytes; this one has {}",
            text.len()
        );
        return Err(Error::new(span, message));
    }
    if text.chars().any(|c| c.is_control() && c != '\n' && c != '\t') {
        return Err(Error::new(
            span,
            "a tool's description holds no control characters but tab and newline",
        ));
    }
    Ok(())
}

/// Returns the lines of one `///` comment, one `/** */` comment or one `#[doc = ".."]`. Other
/// attributes such as `#[doc(hidden)]` have none.
fn lines_of(attribute: &Attribute) -> Result<Vec<String>> {
    let Meta::NameValue(pair) = &attribute.meta else { return Ok(Vec::new()) };
    let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = &pair.value else {
        let message = "a tool's description must be written out: `///` lines or `#[doc = \"..\"]`";
        return Err(Error::new_spanned(&pair.value, message));
    };
    let text = text.value();
    let lines: Vec<&str> = text.split('\n').map(str::trim_end).collect();
    Ok(match lines.split_first() {
        Some((first, rest)) if !rest.is_empty() => block(first, rest),
        _ => lines.into_iter().map(str::to_owned).collect(),
    })
}

/// Returns the lines of a block comment without a left column of stars.
fn block(first: &str, rest: &[&str]) -> Vec<String> {
    let starred = rest.iter().all(|line| line.is_empty() || line.trim_start().starts_with('*'));
    let strip = |line: &&str| match line.trim_start().strip_prefix('*') {
        Some(text) if starred => text.to_owned(),
        _ => (*line).to_owned(),
    };
    let rest: Vec<_> = rest.iter().map(strip).collect();
    // The first line follows `/**` directly, so that its indentation is not comparable.
    std::iter::once(first.trim_start().to_owned()).chain(with_margin_removed(&rest)).collect()
}

fn unindent(lines: &[String]) -> String {
    with_margin_removed(lines).join("\n").trim_matches('\n').to_owned()
}

/// Removes the common indentation of all lines with text.
fn with_margin_removed(lines: &[String]) -> Vec<String> {
    let indent = |line: &String| line.len() - line.trim_start().len();
    let margin = lines.iter().filter(|line| !line.trim().is_empty()).map(indent).min().unwrap_or(0);
    lines.iter().map(|line| line.get(margin..).unwrap_or("").to_owned()).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;
    use syn::{ItemFn, parse_quote, parse_str};

    fn of(source: &str) -> Result<String> {
        let function: ItemFn = parse_str(source).unwrap();
        description(&function.attrs, Span::call_site())
    }

    #[test]
    fn lines_are_joined_without_their_margin() {
        assert_eq!(of("/// Greets.\nfn a() {}").unwrap(), "Greets.");
        assert_eq!(
            of("/// Greets.\n///\n/// - one\n///   - two\nfn a() {}").unwrap(),
            "Greets.\n\n- one\n  - two"
        );
        assert_eq!(of("///Greets.\n/// Kindly.\nfn a() {}").unwrap(), "Greets.\n Kindly.");
        assert_eq!(of("///\n/// Greets.\n///\nfn a() {}").unwrap(), "Greets.");
    }

    #[test]
    fn block_comments_lose_their_stars() {
        assert_eq!(of("/** Greets. */ fn a() {}").unwrap(), "Greets.");
        assert_eq!(
            of("/** Greets.\n * Kindly.\n *\n *  - so\n */ fn a() {}").unwrap(),
            "Greets.\nKindly.\n\n - so"
        );
        assert_eq!(
            of("/**\n    Greets.\n      Kindly.\n*/ fn a() {}").unwrap(),
            "Greets.\n  Kindly."
        );
    }

    #[test]
    fn doc_attributes_count_as_comments() {
        assert_eq!(
            of("#[doc = \"Greets.\"] #[doc(hidden)] #[inline] fn a() {}").unwrap(),
            "Greets."
        );
    }

    #[test]
    fn missing_or_blank_comment_is_refused() {
        for source in ["fn a() {}", "///\n///  \nfn a() {}", "#[doc(hidden)] fn a() {}"] {
            let message = of(source).unwrap_err().to_string();
            assert_eq!(
                message,
                "a tool needs a doc comment: it is the description the model reads"
            );
        }
    }

    #[test]
    fn comment_from_macro_is_refused() {
        let function: ItemFn = parse_quote!(
            #[doc = include_str!("x.md")]
            fn a() {}
        );
        let message = description(&function.attrs, Span::call_site()).unwrap_err().to_string();
        assert!(message.contains("must be written out"), "{message}");
    }

    #[test]
    fn bounds_of_the_contract_are_checked() {
        assert_eq!(
            of(&format!("/// {}\nfn a() {{}}", "x".repeat(MAX_BYTES))).unwrap().len(),
            MAX_BYTES
        );
        let message =
            of(&format!("/// {}\nfn a() {{}}", "x".repeat(MAX_BYTES + 1))).unwrap_err().to_string();
        assert!(message.contains("at most 16384 bytes"), "{message}");
        let message = of("#[doc = \"a\\u{7}b\"] fn a() {}").unwrap_err().to_string();
        assert!(message.contains("control characters"), "{message}");
    }
}
