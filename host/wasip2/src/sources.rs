//! Finds the Debian mirrors of this machine in its apt sources, in both of their formats.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Maximum number of mirrors that are tried, so that failure is quick on a machine with many
/// sources.
const MIRRORS: usize = 4;

/// The configuration directory of apt.
const APT: &str = "/etc/apt";

/// Returns the URLs of the Debian mirrors among this machine's apt sources, the likeliest first.
pub fn mirrors_here() -> Vec<String> {
    let mut entries = Vec::new();
    for file in source_files(Path::new(APT)) {
        let Ok(text) = fs::read_to_string(&file) else { continue };
        entries.extend(match file.extension().and_then(|extension| extension.to_str()) {
            Some("sources") => parse_stanzas(&text),
            _ => parse_lines(&text),
        });
    }
    mirrors(&entries)
}

/// One package repository.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The URLs of the repository.
    pub uris: Vec<String>,
    /// The suites, such as `bookworm`.
    pub suites: Vec<String>,
    /// The components, such as `main`.
    pub components: Vec<String>,
    /// The keyring (or key) that signs the repository, if given.
    pub signed_by: Option<String>,
}

/// Parses the one-line format: `deb [option=value …] uri suite component …`.
pub fn parse_lines(text: &str) -> Vec<Entry> {
    text.lines().filter_map(parse_line).collect()
}

/// Parses the stanza format (deb822): `Types:`, `URIs:`, `Suites:`, `Components:`, `Signed-By:`,
/// `Enabled:`.
pub fn parse_stanzas(text: &str) -> Vec<Entry> {
    let uncommented: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    uncommented.split(|line| line.trim().is_empty()).filter_map(parse_stanza).collect()
}

/// Returns the mirrors among `entries`: binary packages of `main`, signed by Debian or by an
/// unspecified key, over HTTP or from a file. The archive of security updates is excluded, because
/// it has no backports.
pub fn mirrors(entries: &[Entry]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for uri in entries.iter().filter(|entry| entry.may_be_debian()).flat_map(|entry| &entry.uris) {
        let uri = uri.trim_end_matches('/').to_owned();
        if is_fetchable(&uri) && !uri.ends_with("-security") && !found.contains(&uri) {
            found.push(uri);
        }
    }
    // By convention the URL of a Debian mirror ends like this; those of similar archives rarely do.
    found.sort_by_key(|uri| !uri.ends_with("/debian"));
    found.truncate(MIRRORS);
    found
}

impl Entry {
    fn may_be_debian(&self) -> bool {
        let signed =
            self.signed_by.as_ref().is_none_or(|keyring| keyring.contains("debian-archive"));
        let security = |suite: &String| suite.ends_with("-security") || suite.ends_with("/updates");
        signed
            && self.components.iter().any(|name| name == "main")
            && !self.suites.iter().all(security)
    }
}

fn is_fetchable(uri: &str) -> bool {
    ["http://", "https://", "file:"].iter().any(|scheme| uri.starts_with(scheme))
}

fn parse_line(line: &str) -> Option<Entry> {
    let rest = line.split('#').next()?.trim().strip_prefix("deb")?;
    let rest = rest.strip_prefix(char::is_whitespace)?.trim_start();
    let (options, rest) = match rest.strip_prefix('[') {
        Some(inside) => inside.split_once(']')?,
        None => ("", rest),
    };
    let signed_by = options.split_whitespace().find_map(|option| option.strip_prefix("signed-by="));
    let mut words = rest.split_whitespace().map(str::to_owned);
    Some(Entry {
        uris: vec![words.next()?],
        suites: vec![words.next()?],
        components: words.collect(),
        signed_by: signed_by.map(str::to_owned),
    })
}

fn parse_stanza(lines: &[&str]) -> Option<Entry> {
    let fields = fields(lines);
    let words = |name: &str| -> Vec<String> {
        fields
            .get(name)
            .map(|value| value.split_whitespace().map(str::to_owned).collect())
            .unwrap_or_default()
    };
    let enabled = fields
        .get("enabled")
        .is_none_or(|value| !matches!(value.trim(), "no" | "false" | "0" | "off"));
    let binary = words("types").iter().any(|kind| kind == "deb");
    (enabled && binary).then(|| Entry {
        uris: words("uris"),
        suites: words("suites"),
        components: words("components"),
        signed_by: fields.get("signed-by").map(|value| value.trim().to_owned()),
    })
}

/// Parses the fields of a stanza, keyed by lower-case name. A line with leading blank continues the
/// field.
fn fields(lines: &[&str]) -> BTreeMap<String, String> {
    let mut fields: BTreeMap<String, String> = BTreeMap::new();
    let mut current = String::new();
    for line in lines {
        if line.starts_with([' ', '\t']) {
            let value = fields.entry(current.clone()).or_default();
            value.push(' ');
            value.push_str(line.trim());
        } else if let Some((name, value)) = line.split_once(':') {
            current = name.trim().to_ascii_lowercase();
            fields.insert(current.clone(), value.trim().to_owned());
        }
    }
    fields
}

/// Returns `sources.list` and the files of `sources.list.d`, in apt's order.
fn source_files(apt: &Path) -> Vec<PathBuf> {
    let listed = fs::read_dir(apt.join("sources.list.d"))
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    let mut parts: Vec<PathBuf> = listed
        .filter(|path| path.extension().is_some_and(|kind| kind == "list" || kind == "sources"))
        .collect();
    parts.sort();
    parts.insert(0, apt.join("sources.list"));
    parts
}
