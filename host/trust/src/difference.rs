//! The difference between a plugin and the one that was approved, in lines for a person.
//!
//! A plugin chooses its words, so that every line is escaped and cut, and their number is bounded.

use crate::fit::Fit;
use crate::lock::{Entry, is_older};
use crate::signature::Signer;
use crate::words::{ToolWords, Words};
use palisade::tool::Digest;
use palisade::tool::text::elided;
use std::collections::BTreeSet;
use std::fmt;

/// The most lines of one text that are quoted.
const TEXT_LINES: usize = 40;
/// The most lines in all.
const LINES: usize = 600;
/// The longest line, in characters.
const LINE: usize = 400;

/// A plugin as it is now, to be compared with its approval.
#[derive(Debug)]
#[non_exhaustive]
pub struct Present<'a> {
    /// The digest of the bytes.
    pub digest: Digest,
    /// The size of the bytes.
    pub size: u64,
    /// The version, if there is one.
    pub version: Option<&'a str>,
    /// The names of the imports.
    pub imports: &'a [String],
    /// The key that has signed the bytes, if a signature was verified.
    pub signer: Option<&'a Signer>,
    /// The words.
    pub words: &'a Words,
}

/// The difference between a plugin and the one that was approved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Difference {
    lines: Vec<String>,
    /// Set when a line was left out.
    is_cut: bool,
}

impl Difference {
    /// Compares a plugin with its approval. `words` are those that were approved, if they were
    /// kept; without them the lines say only which of them differ.
    #[must_use]
    pub fn new(entry: &Entry, words: Option<&Words>, now: &Present<'_>) -> Self {
        let mut difference = Self::default();
        difference.facts(entry, now);
        difference.imports(entry, now);
        for tool in &now.words.tools {
            let before = words.and_then(|words| words.tool(&tool.name));
            match entry.tools.iter().find(|known| known.name == tool.name) {
                None => difference.added(tool),
                Some(known) if known.describes == tool.hash() => {}
                Some(known) => difference.tool(&known.class, before, tool),
            }
        }
        for known in entry.tools.iter().filter(|known| now.words.tool(&known.name).is_none()) {
            difference.line(format_args!("tool {} is gone", known.name));
        }
        match words {
            Some(words) => difference.offers(words, now.words),
            None if entry.describes != now.words.hash() => difference.line(
                "the approved words were not kept, so that they cannot be shown beside the new ones",
            ),
            None => {}
        }
        difference
    }

    /// Returns the lines, each escaped and cut.
    #[must_use]
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    /// Adds a line, escaped and cut.
    fn line(&mut self, line: impl fmt::Display) {
        if self.lines.len() < LINES {
            self.lines.push(elided(&line.to_string(), LINE));
        } else if !std::mem::replace(&mut self.is_cut, true) {
            self.lines.push("… more lines are left out".to_owned());
        }
    }

    fn facts(&mut self, entry: &Entry, now: &Present<'_>) {
        if entry.digest == now.digest {
            self.line("the bytes are those that were approved");
        } else {
            self.line(format_args!("bytes    {} → {}", entry.digest, now.digest));
        }
        if entry.size != now.size {
            self.line(format_args!("size     {} → {} bytes", entry.size, now.size));
        }
        match (entry.version_seen.as_deref(), now.version) {
            (Some(highest), Some(version)) if is_older(version, highest) => self.line(format_args!(
                "version  {version}, which is OLDER than {highest}, the highest that was approved"
            )),
            (before, version) if before != version => self.line(format_args!(
                "version  {} → {}",
                before.unwrap_or("none"),
                version.unwrap_or("none")
            )),
            _ => {}
        }
        if entry.signer.as_ref() != now.signer {
            let shown = |signer: Option<&Signer>| {
                signer.map_or("none that was verified".to_owned(), ToString::to_string)
            };
            let (before, after) = (shown(entry.signer.as_ref()), shown(now.signer));
            self.line(format_args!("signer   {before} → {after}"));
        }
    }

    fn imports(&mut self, entry: &Entry, now: &Present<'_>) {
        let before: BTreeSet<&String> = entry.imports.iter().collect();
        let after: BTreeSet<&String> = now.imports.iter().collect();
        for import in after.difference(&before) {
            self.line(format_args!("imports  + {import}"));
        }
        for import in before.difference(&after) {
            self.line(format_args!("imports  - {import}"));
        }
    }

    fn added(&mut self, tool: &ToolWords) {
        self.line(format_args!("tool {} is new, of class {}", tool.name, tool.class));
        self.quote("+", &tool.description);
        let schema = format!("{:#}", tool.input_schema);
        self.line("  input");
        self.quote("+", &schema);
    }

    fn tool(&mut self, class: &str, before: Option<&ToolWords>, now: &ToolWords) {
        self.line(format_args!("tool {}", now.name));
        if class != now.class.as_str() {
            let was = palisade::SideEffects::ALL.iter().find(|known| known.as_str() == class);
            let wider = was.is_none_or(|was| *was < now.class).then_some(", which is WIDER");
            let wider = wider.unwrap_or_default();
            self.line(format_args!("  class    {class} → {}{wider}", now.class));
        }
        let Some(before) = before else { return self.line("  its words differ") };
        let title = |tool: &ToolWords| tool.title.clone().unwrap_or_default();
        self.text("title", &title(before), &title(now));
        self.text("description", &before.description, &now.description);
        self.schemas(before, now);
        if before.idempotent != now.idempotent {
            self.line(format_args!("  idempotent  {} → {}", before.idempotent, now.idempotent));
        }
        if before.timeout_ms != now.timeout_ms {
            let shown =
                |time: Option<u64>| time.map_or("default".to_owned(), |ms| format!("{ms} ms"));
            let (before, after) = (shown(before.timeout_ms), shown(now.timeout_ms));
            self.line(format_args!("  timeout  {before} → {after}"));
        }
        if before.metadata != now.metadata {
            let shown = |tool: &ToolWords| format!("{:#}", serde_json::json!(tool.metadata));
            self.text("metadata", &shown(before), &shown(now));
        }
    }

    fn schemas(&mut self, before: &ToolWords, now: &ToolWords) {
        if before.input_schema != now.input_schema {
            let (old, new) = (&before.input_schema, &now.input_schema);
            self.text("input", &format!("{old:#}"), &format!("{new:#}"));
            self.fit("callers of the approved tool", &Fit::of(old, new));
        }
        let shown = |schema: &Option<serde_json::Value>| {
            schema.as_ref().map_or(String::new(), |schema| format!("{schema:#}"))
        };
        if before.output_schema != now.output_schema {
            self.text("output", &shown(&before.output_schema), &shown(&now.output_schema));
            if let (Some(old), Some(new)) = (&before.output_schema, &now.output_schema) {
                self.fit("readers of its output", &Fit::of(new, old));
            }
        }
    }

    fn fit(&mut self, who: &str, fit: &Fit) {
        let (verdict, reasons) = match fit {
            Fit::Fits => ("still fit", &[][..]),
            Fit::Breaks(reasons) => ("do NOT fit any more", &reasons[..]),
            Fit::Unknown(reasons) => ("may not fit any more", &reasons[..]),
        };
        self.line(format_args!("  {who} {verdict}"));
        for reason in reasons {
            self.line(format_args!("    {reason}"));
        }
    }

    /// Compares the resources and prompts.
    fn offers(&mut self, before: &Words, now: &Words) {
        let items = |words: &Words| serde_json::json!(words.offer);
        if before.offer != now.offer {
            let (before, after) = (format!("{:#}", items(before)), format!("{:#}", items(now)));
            self.line("resources and prompts");
            self.changed_lines(&before, &after);
        }
    }

    fn text(&mut self, part: &str, before: &str, after: &str) {
        if before != after {
            self.line(format_args!("  {part}"));
            self.changed_lines(before, after);
        }
    }

    /// Quotes the lines between the first and the last that differ.
    fn changed_lines(&mut self, before: &str, after: &str) {
        let (old, new): (Vec<&str>, Vec<&str>) =
            (before.lines().collect(), after.lines().collect());
        let same = |(one, other): &(&&str, &&str)| one == other;
        let head = old.iter().zip(&new).take_while(same).count();
        let most = old.len().min(new.len()) - head;
        let tail = old.iter().rev().zip(new.iter().rev()).take(most).take_while(same).count();
        let middle =
            |lines: &[&str]| lines.get(head..lines.len() - tail).unwrap_or_default().join("\n");
        self.quote("-", &middle(&old));
        self.quote("+", &middle(&new));
    }

    fn quote(&mut self, sign: &str, text: &str) {
        for line in text.lines().take(TEXT_LINES) {
            self.line(format_args!("    {sign} {line}"));
        }
        let more = text.lines().count().saturating_sub(TEXT_LINES);
        if more > 0 {
            self.line(format_args!("    {sign} … {more} more lines"));
        }
    }
}

#[cfg(test)]
mod tests;
