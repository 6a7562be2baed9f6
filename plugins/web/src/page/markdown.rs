//! HTML as Markdown. A page is hostile: its tree is cut at a depth, because the conversion recurses.

use super::{Page, tree};
use crate::address::Address;
use htmd::options::{BulletListMarker, Options};
use htmd::{HtmlToMarkdown, Node};
use markup5ever_rcdom::NodeData;
use palisade_guest::Result;
use std::rc::Rc;

/// The deepest elements that are shown. Pages that people read have less than 100 levels.
const MAX_DEPTH: usize = 256;

/// The most characters of a title.
const MAX_TITLE: usize = 200;

/// The elements that show no text to a reader.
const HIDDEN: [&str; 8] =
    ["head", "script", "style", "noscript", "template", "svg", "iframe", "object"];

/// Converts a page. Links become absolute, because the reader knows no address to resolve against.
pub(super) fn convert(html: &str, address: &Address) -> Result<Page> {
    let options = Options {
        bullet_list_marker: BulletListMarker::Dash,
        ul_bullet_spacing: 1,
        ol_number_spacing: 1,
        ..Options::default()
    };
    let converter = HtmlToMarkdown::builder().options(options).skip_tags(HIDDEN.to_vec()).build();
    let tree = tree::parse(html)?;
    let title = prepare(&tree, address);
    let mut text = converter.tree_to_markdown(&tree);
    text.push('\n');
    Ok(Page { text, title })
}

/// Cuts the tree at its depth, makes its links absolute, and returns the title.
fn prepare(tree: &Rc<Node>, address: &Address) -> Option<String> {
    let mut title = None;
    let mut open = vec![(tree.clone(), 0_usize)];
    while let Some((node, depth)) = open.pop() {
        if let NodeData::Element { name, attrs, .. } = &node.data {
            let link = match &*name.local {
                "a" => "href",
                "img" => "src",
                "title" if title.is_none() => {
                    title = text_of(&node);
                    continue;
                }
                _ => "",
            };
            for attribute in attrs.borrow_mut().iter_mut() {
                if !link.is_empty() && &*attribute.name.local == link {
                    let absolute = address.resolve(&attribute.value);
                    attribute.value =
                        absolute.map_or_else(|| attribute.value.clone(), |uri| uri.as_str().into());
                }
            }
        }
        if depth == MAX_DEPTH {
            node.children.borrow_mut().retain(|child| matches!(child.data, NodeData::Text { .. }));
        }
        let children = node.children.borrow();
        open.extend(children.iter().map(|child| (child.clone(), depth.saturating_add(1))));
    }
    title
}

/// Returns the text directly in an element, on one line.
fn text_of(node: &Node) -> Option<String> {
    let children = node.children.borrow();
    let texts = children.iter().filter_map(|child| match &child.data {
        NodeData::Text { contents } => Some(contents.borrow().to_string()),
        _ => None,
    });
    let text: String = texts.collect();
    let words: Vec<&str> = text.split_whitespace().collect();
    let text: String = words.join(" ").chars().take(MAX_TITLE).collect();
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use super::*;

    fn converted(html: &str) -> Page {
        convert(html, &Address::parse("https://example.org/a/b").unwrap()).unwrap()
    }

    #[test]
    fn page_becomes_markdown_with_absolute_links() {
        let page = converted(
            "<html><head><title>A\n <b>page</title><style>x{}</style></head><body><script>bad()</script>\
             <h1>Head</h1><p>Some <em>text</em> with <a href='c?d#e'>a link</a>.</p>\
             <ul><li>one<li>two</ul><pre><code>let x;\n</code></pre><img src=/i.png alt=I>\
             <table><tr><th>k<th>v<tr><td>1<td>2</table>",
        );
        assert_eq!(page.title.as_deref(), Some("A <b>page"));
        for part in [
            "# Head\n",
            "*text*",
            "[a link](https://example.org/a/c?d#e)",
            "- one\n- two",
            "```\nlet x;\n```",
            "![I](https://example.org/i.png)",
            "| k",
        ] {
            assert!(page.text.contains(part), "{part}: {}", page.text);
        }
        assert!(!page.text.contains("bad()") && !page.text.contains("x{}"), "{}", page.text);
    }

    #[test]
    fn depth_of_a_hostile_page_is_bounded() {
        let page = format!("{}deep{}<p>after", "<div>".repeat(5_000), "</div>".repeat(5_000));
        let text = converted(&page).text;
        assert!(!text.contains("deep") && text.contains("after"), "{text}");
        let flat = format!("{}deep", "<div>".repeat(200));
        assert!(converted(&flat).text.contains("deep"));
    }
}
