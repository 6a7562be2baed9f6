//! The licences of the crates in the program, which their copies must carry.

use super::inventory::{Component, Id, Inventory};
use anyhow::Context as _;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// The beginnings of the names of files with a licence, or with words that have to be passed on.
const BEGINNINGS: [&str; 5] = ["licen", "copying", "copyright", "notice", "unlicense"];

/// How deep the files are looked for: C sources are one directory below the crate that builds them.
const DEPTH: u32 = 2;

const HEAD: &str = "\
The program palisade contains these works of others: the standard library of Rust
(https://github.com/rust-lang/rust, MIT OR Apache-2.0, among others), and the crates below. Each
crate is under the named licence. The texts of the crates' own files follow, each with the crates
that have it.
";

/// Returns the document.
pub(super) fn document(inventory: &Inventory) -> anyhow::Result<String> {
    let mut document = HEAD.to_owned();
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (id, component) in inventory.components.iter().filter(|(_, it)| !it.is_own()) {
        document += &line(id, component);
        let mut found = Vec::new();
        collect(&component.directory, DEPTH, &mut found)?;
        found.sort();
        found.dedup();
        for text in found {
            texts.entry(text).or_default().push(format!("{} {}", id.name, id.version));
        }
    }
    // In the order of the crates, which is the order of a reader.
    let mut texts: Vec<_> = texts.into_iter().map(|(text, crates)| (crates, text)).collect();
    texts.sort();
    for (crates, text) in texts {
        write!(document, "\n{}\n{}\n\n{text}\n", "-".repeat(100), crates.join(", "))?;
    }
    Ok(document)
}

fn line(id: &Id, component: &Component) -> String {
    let license = component.license.as_deref().unwrap_or("see its text");
    let place = component.repository.as_deref().unwrap_or_default();
    format!("\n{} {} | {license} | {place}", id.name, id.version)
}

/// Collects the texts of the files with licences.
fn collect(directory: &Path, depth: u32, texts: &mut Vec<String>) -> anyhow::Result<()> {
    let listing = || format!("listing {}", directory.display());
    for entry in fs::read_dir(directory).with_context(listing)? {
        let entry = entry.with_context(listing)?;
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().to_lowercase());
        if path.is_dir() && depth > 1 {
            collect(&path, depth - 1, texts)?;
        } else if path.is_file() && is_licence(&name) {
            let bytes = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
            texts.push(normal(&String::from_utf8_lossy(&bytes)));
        }
    }
    Ok(())
}

fn is_licence(name: &str) -> bool {
    BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
        && Path::new(name).extension().is_none_or(|extension| extension != "rs")
}

/// Returns a text without spaces at the ends of lines, which differ between copies.
fn normal(text: &str) -> String {
    text.trim().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}
