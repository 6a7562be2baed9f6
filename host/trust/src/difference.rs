//! The difference between a plugin and the one that was approved, in lines for a person.
//!
//! A plugin chooses its words, so that every line is escaped. No line is cut or left out: what a
//! person approves is what was shown. The words are bounded when a plugin is loaded.

use crate::fit::Fit;
use crate::lock::{Entry, falls_below, is_older};
use crate::signature::Signer;
use crate::words::{ToolWords, Words};
use palisade::SideEffects;
use palisade::tool::Digest;
use palisade::tool::offer::Offer;
use palisade::tool::text::elided;
use serde_json::json;
use std::collections::BTreeSet;
use std::fmt;

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
}

impl Difference {
    /// Compares a plugin with its approval. `words` are those that were approved, if they were
    /// kept; without them all words of each tool that differs are shown.
    #[must_use]
    pub fn new(entry: &Entry, words: Option<&Words>, now: &Present<'_>) -> Self {
        let mut difference = Self::default();
        difference.classes(entry, now.words);
        difference.facts(entry, now);
        difference.imports(entry, now);
        if words.is_none() && entry.describes != now.words.hash() {
            difference.line(
                "the approved words were not kept, so that all words of the tools that differ are here",
            );
        }
        for tool in &now.words.tools {
            let before = words.and_then(|words| words.tool(&tool.name));
            match entry.tools.iter().find(|known| known.name == tool.name) {
                None => difference.added(tool),
                Some(known) if known.describes == tool.hash() => {}
                Some(_) => difference.tool(before, tool),
            }
        }
        for known in entry.tools.iter().filter(|known| now.words.tool(&known.name).is_none()) {
            difference.line(format_args!("tool {} is gone", known.name));
        }
        match words {
            Some(words) => difference.offers(words, now.words),
            None if entry.describes != now.words.hash() => difference.all_offers(now.words),
            None => {}
        }
        difference
    }

    /// Returns the lines, each escaped.
    #[must_use]
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    /// Adds a line, escaped.
    fn line(&mut self, line: impl fmt::Display) {
        self.lines.push(elided(&line.to_string(), usize::MAX));
    }

    /// Names the classes that differ: first the wider ones, then those of new tools.
    fn classes(&mut self, entry: &Entry, now: &Words) {
        let mut narrower = Vec::new();
        let mut new = Vec::new();
        for tool in &now.tools {
            let name = &tool.name;
            let Some(known) = entry.tools.iter().find(|known| known.name == *name) else {
                new.push(format!("class    {}: tool {name}, which is NEW", tool.class));
                continue;
            };
            let change = format!("class    {} → {}", known.class, tool.class);
            let was = SideEffects::ALL.iter().find(|class| class.as_str() == known.class);
            match was {
                Some(was) if *was == tool.class => {}
                Some(was) if *was > tool.class => narrower.push(format!("{change}: tool {name}")),
                _ => self.line(format_args!("{change}, which is WIDER: tool {name}")),
            }
        }
        new.into_iter().chain(narrower).for_each(|line| self.line(line));
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
            (Some(highest), version) if falls_below(version, highest) => self.line(format_args!(
                "version  {}, which does NOT follow {highest}, the highest that was approved",
                version.unwrap_or("none")
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
        self.whole(tool);
    }

    /// Quotes all words of a tool but its name and class.
    fn whole(&mut self, tool: &ToolWords) {
        let metadata = (!tool.metadata.is_empty()).then(|| format!("{:#}", json!(tool.metadata)));
        for (part, text) in [
            ("title", tool.title.clone()),
            ("description", Some(tool.description.clone())),
            ("input", Some(format!("{:#}", tool.input_schema))),
            ("output", tool.output_schema.as_ref().map(|schema| format!("{schema:#}"))),
            ("metadata", metadata),
        ] {
            let Some(text) = text else { continue };
            self.line(format_args!("  {part}"));
            self.quote("+", &text);
        }
        self.line(format_args!("  idempotent  {}", tool.idempotent));
        self.line(format_args!("  timeout  {}", shown_time(tool.timeout_ms)));
    }

    fn tool(&mut self, before: Option<&ToolWords>, now: &ToolWords) {
        let Some(before) = before else {
            self.line(format_args!("tool {} differs", now.name));
            return self.whole(now);
        };
        // The class is named at the top.
        if (ToolWords { class: now.class, ..before.clone() }) == *now {
            return;
        }
        self.line(format_args!("tool {}", now.name));
        let title = |tool: &ToolWords| tool.title.clone().unwrap_or_default();
        self.text("title", &title(before), &title(now));
        self.text("description", &before.description, &now.description);
        self.schemas(before, now);
        if before.idempotent != now.idempotent {
            self.line(format_args!("  idempotent  {} → {}", before.idempotent, now.idempotent));
        }
        if before.timeout_ms != now.timeout_ms {
            let (before, after) = (shown_time(before.timeout_ms), shown_time(now.timeout_ms));
            self.line(format_args!("  timeout  {before} → {after}"));
        }
        if before.metadata != now.metadata {
            let shown = |tool: &ToolWords| format!("{:#}", json!(tool.metadata));
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
        let items = |words: &Words| json!(words.offer);
        if before.offer != now.offer {
            if before.offer == Offer::default() {
                self.line("class    read: documents or prompts, which are NEW");
            }
            let (before, after) = (format!("{:#}", items(before)), format!("{:#}", items(now)));
            self.line("resources and prompts");
            self.changed_lines(&before, &after);
        }
    }

    /// Quotes all resources and prompts.
    fn all_offers(&mut self, now: &Words) {
        if now.offer != Offer::default() {
            self.line("resources and prompts");
            self.quote("+", &format!("{:#}", json!(now.offer)));
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
        let (old, new) = (middle(&old), middle(&new));
        if old.is_empty() && new.is_empty() {
            self.line("    only its empty lines and line ends differ");
        }
        self.quote("-", &old);
        self.quote("+", &new);
    }

    fn quote(&mut self, sign: &str, text: &str) {
        for line in text.lines() {
            self.line(format_args!("    {sign} {line}"));
        }
    }
}

fn shown_time(time: Option<u64>) -> String {
    time.map_or("default".to_owned(), |ms| format!("{ms} ms"))
}

#[cfg(test)]
mod tests;
