//! Tests of the lines of a difference.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use super::*;
use crate::lock::ToolEntry;
use palisade::tool::offer::Offer;
use palisade::{Definition, SideEffects, json};
use serde_json::Value;

fn words(text: &str, class: SideEffects, properties: &Value, required: &[&str]) -> Words {
    let schema = json!({"type": "object", "properties": properties, "required": required});
    let tool = Definition::new("look", text, class, schema).unwrap();
    Words::new(&[tool], &Offer::default())
}

fn entry(words: &Words) -> Entry {
    Entry {
        name: "git".to_owned(),
        source: "/p".to_owned(),
        resolved: None,
        digest: Digest::of(b"one"),
        size: 3,
        version_seen: Some("1.2.0".to_owned()),
        wit: "palisade:tool@0.1.0".to_owned(),
        describes: words.hash(),
        imports: vec!["wasi:cli/stdout@0.2.0".to_owned()],
        signer: None,
        approved: String::new(),
        revoked: None,
        earlier: Vec::new(),
        tools: words.tools.iter().map(ToolEntry::from).collect(),
    }
}

fn lines(before: &Words, kept: Option<&Words>, now: &Words) -> String {
    let imports = ["wasi:http/types@0.2.0".to_owned()];
    let present = Present {
        digest: Digest::of(b"two2"),
        size: 4,
        version: Some("1.1.0"),
        imports: &imports,
        signer: None,
        words: now,
    };
    Difference::new(&entry(before), kept, &present).lines().join("\n")
}

#[test]
fn every_part_is_named_and_dangers_are_marked() {
    let path = json!({"path": {"type": "string"}});
    let old = words("Looks.\nQuietly.", SideEffects::Read, &path, &[]);
    let new = words("Looks.\nSends all.", SideEffects::Write, &path, &["path"]);
    let text = lines(&old, Some(&old), &new);
    for said in [
        "size     3 → 4 bytes",
        "1.1.0, which is OLDER than 1.2.0",
        "imports  + wasi:http/types@0.2.0",
        "imports  - wasi:cli/stdout@0.2.0",
        "tool look",
        "class    read → write, which is WIDER: tool look",
        "    - Quietly.",
        "    + Sends all.",
        "callers of the approved tool do NOT fit any more",
        "`path` is required now",
    ] {
        assert!(text.contains(said), "{said}\n{text}");
    }
    assert!(!text.contains("- Looks."), "equal lines are left out:\n{text}");
    let without = lines(&old, None, &new);
    assert!(without.contains("were not kept") && without.contains("+ Sends all."), "{without}");
    assert!(without.contains("WIDER"), "the lock itself has the class: {without}");
}

#[test]
fn new_and_removed_tools_are_named() {
    let old = words("Looks.", SideEffects::Read, &json!({}), &[]);
    let send = Definition::new("send", "Sends.", SideEffects::Network, json!({"type": "object"}));
    let new = Words::new(&[send.unwrap()], &Offer::default());
    let text = lines(&old, Some(&old), &new);
    assert!(text.contains("tool send is new, of class network"), "{text}");
    assert!(text.starts_with("class    network: tool send, which is NEW"), "{text}");
    assert!(text.contains("tool look is gone") && text.contains("+ Sends."), "{text}");
}

#[test]
fn hostile_words_are_escaped_and_none_is_left_out() {
    let old = words("Looks.", SideEffects::Read, &json!({}), &[]);
    let mut new = old.clone();
    let end = "y".repeat(100_000);
    new.tools[0].description = "\u{1b}[2Jtool x is gone\n".repeat(2_000) + &end;
    let text = lines(&old, Some(&old), &new);
    assert!(!text.contains('\u{1b}'), "no control character reaches a terminal");
    assert!(text.contains(&end), "a long line is whole");
    let quoted = text.lines().filter(|line| line.contains("tool x is gone"));
    assert_eq!(quoted.clone().count(), 2_000);
    quoted.for_each(|line| assert!(line.starts_with("    + "), "{line}"));
}

#[test]
fn line_ends_alone_are_named() {
    let old = words("Looks.", SideEffects::Read, &json!({}), &[]);
    let mut new = old.clone();
    new.tools[0].description = "Looks.\n".to_owned();
    assert!(lines(&old, Some(&old), &new).contains("only its empty lines and line ends differ"));
}
