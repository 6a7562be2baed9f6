//! The rules for the documents and prompts of a plugin.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use super::*;

fn item(uri: &str) -> Item {
    Item {
        uri: uri.into(),
        name: "n".into(),
        title: None,
        description: None,
        mime: None,
        size: None,
    }
}

fn template(uri: &str) -> Template {
    Template { uri: uri.into(), name: "n".into(), title: None, description: None, mime: None }
}

fn prompt(name: &str) -> Prompt {
    Prompt { name: name.into(), title: None, description: "d".into(), arguments: Vec::new() }
}

fn offer(items: Vec<Item>, templates: Vec<Template>, prompts: Vec<Prompt>) -> Offer {
    Offer { documents: Some(Documents { items, templates }), prompts: Some(prompts) }
}

#[track_caller]
fn refuses(offer: &Offer, why: &str) {
    let error = offer.check().unwrap_err().to_string();
    assert!(error.contains(why), "{error}");
}

#[test]
fn uri_has_its_own_scheme() {
    for right in ["test://static-text", "note:1", "a+b.c-d://x", "ab:/x"] {
        assert_eq!(offer(vec![item(right)], vec![], vec![]).check(), Ok(()), "{right}");
    }
    for wrong in [
        "file:///etc/passwd",
        "view-source:https://a",
        "jar:file:///etc/passwd",
        "c:\\Users",
        "c:/Users",
        "http://a",
        "https://a",
        "",
        "plain",
        "://x",
        "1a://x",
        "A://x",
        "aa://x y",
        "aa://\u{202e}",
    ] {
        refuses(&offer(vec![item(wrong)], vec![], vec![]), "scheme");
    }
    refuses(&offer(vec![item(&format!("aa:{}", "x".repeat(URI)))], vec![], vec![]), "2048");
}

#[test]
fn offers_are_bounded_and_unique() {
    let many =
        |count: usize| (0..count).map(|number| item(&format!("aa:{number}"))).collect::<Vec<_>>();
    assert_eq!(offer(many(256), vec![], vec![]).check(), Ok(()));
    refuses(&offer(many(256), vec![], vec![prompt("p")]), "257");
    refuses(&offer(vec![item("aa:1"), item("aa:1")], vec![], vec![]), "the document `aa:1` twice");
    refuses(&offer(vec![], vec![], vec![prompt("p"), prompt("p")]), "the prompt `p` twice");
    let long = Item { description: Some("x".repeat(BYTES)), ..item("aa:1") };
    refuses(&offer(vec![long], vec![], vec![]), "bytes as JSON");
}

#[test]
fn invalid_offer_fields_are_refused() {
    refuses(&offer(vec![Item { name: " ".into(), ..item("aa:1") }], vec![], vec![]), "one line");
    refuses(
        &offer(vec![Item { title: Some("a\u{202e}b".into()), ..item("aa:1") }], vec![], vec![]),
        "hidden",
    );
    refuses(
        &offer(vec![Item { mime: Some("text".into()), ..item("aa:1") }], vec![], vec![]),
        "media type",
    );
    refuses(&offer(vec![], vec![], vec![prompt("a b")]), "A-Z");
    refuses(
        &offer(vec![], vec![], vec![Prompt { description: " ".into(), ..prompt("p") }]),
        "description",
    );
    refuses(&offer(vec![], vec![template("aa://{x}{y}")], vec![]), "braces");
}

#[test]
fn conflict_names_the_item() {
    let first = offer(vec![item("aa:1")], vec![template("aa://{x}")], vec![prompt("p")]);
    assert_eq!(
        first.clash(&offer(vec![item("aa:2")], vec![template("ab://{y}")], vec![prompt("q")])),
        None
    );
    assert_eq!(
        first.clash(&offer(vec![], vec![], vec![prompt("p")])).as_deref(),
        Some("the prompt `p`")
    );
    let index = DocumentIndex::of(&first);
    assert!(index.has("aa:1") && index.has("aa://b") && !index.has("aa://b/c"));
}

#[test]
fn template_claims_what_it_can_expand_to() {
    let guide = offer(vec![item("style://guide")], vec![], vec![]);
    let any = offer(vec![], vec![template("style://{name}")], vec![]);
    assert_eq!(any.clash(&guide).as_deref(), Some("the template `style://{name}`"));
    assert_eq!(guide.clash(&any).as_deref(), Some("the document `style://guide`"));
    for (other, clashes) in [
        ("style://{other}", true),
        ("style://g{rest}", true),
        ("style://{name}/{part}", false),
        ("style://{name}?q", false),
        ("stale://{name}", false),
    ] {
        let other = offer(vec![], vec![template(other)], vec![]);
        assert_eq!(any.clash(&other).is_some(), clashes, "{other:?}");
    }
    let [md, txt] = ["style://{name}.md", "style://{name}.txt"];
    let one = offer(vec![], vec![template(md)], vec![]);
    assert_eq!(one.clash(&offer(vec![], vec![template(txt)], vec![])), None);
}

#[test]
fn search_cost_is_bounded_by_the_length_of_the_uri() {
    let templates = |count: usize| -> Vec<_> {
        (0..count).map(|number| template(&format!("aa:{number}/{{x}}"))).collect()
    };
    let index = DocumentIndex::of(&offer(vec![item("aa:1")], templates(250), vec![]));
    assert!(index.has("aa:249/b") && !index.has("aa:250/b"));
    assert_eq!(index.search_cost("aa:1"), 4 * 251);
    assert_eq!(index.search_cost(&"a".repeat(URI + 1)), 0, "no document has it");
}

#[test]
fn templates_of_a_plugin_are_bounded_together() {
    let many = |count: usize| -> Vec<_> {
        (0..count).map(|n| template(&format!("aa:{}z{n}", "a{x}".repeat(16)))).collect()
    };
    let fits = PARTS / 33;
    assert_eq!(offer(vec![], many(fits), vec![]).check(), Ok(()));
    refuses(&offer(vec![], many(fits + 1), vec![]), "1024 are accepted in all");
}
