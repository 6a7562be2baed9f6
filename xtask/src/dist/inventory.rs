//! The crates that are compiled into the program and into the plugins inside it, with their
//! licences, from cargo.

use super::names;
use crate::place::Place;
use anyhow::Context as _;
use palisade_wasip2::command::{run, scrubbed};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The name and the version of a crate.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Id {
    pub(super) name: String,
    pub(super) version: String,
}

/// A crate.
#[derive(Debug, Clone)]
pub(super) struct Component {
    pub(super) description: Option<String>,
    /// An SPDX expression.
    pub(super) license: Option<String>,
    pub(super) repository: Option<String>,
    /// The SHA-256 digest of its package; none for a crate of this repository.
    pub(super) digest: Option<String>,
    /// The directory of its sources.
    pub(super) directory: PathBuf,
    /// The crates of the inventory that it uses.
    pub(super) uses: BTreeSet<Id>,
}

impl Component {
    /// Returns true if it is of this repository.
    pub(super) fn is_own(&self) -> bool {
        self.digest.is_none()
    }
}

/// All crates in the program.
#[derive(Debug)]
pub(super) struct Inventory {
    pub(super) components: BTreeMap<Id, Component>,
}

impl Inventory {
    /// Lists the crates of the program on a system.
    pub(super) fn read(place: &Place, triple: &str) -> anyhow::Result<Self> {
        let mut used = tree(place, &[names::PACKAGE.to_owned()], triple)?;
        used.extend(tree(place, &plugins(), palisade_wasip2::TARGET)?);
        let metadata = metadata(place)?;
        let digests = digests(&place.root)?;
        let ids = ids(&metadata);
        let mut components = BTreeMap::new();
        for package in list(&metadata["packages"]) {
            let Some(id) = package["id"].as_str().and_then(|key| ids.get(key)) else { continue };
            if used.contains(id) {
                components.insert(id.clone(), component(package, digests.get(id).cloned()));
            }
        }
        for node in list(&metadata["resolve"]["nodes"]) {
            let id = node["id"].as_str().and_then(|key| ids.get(key));
            if let Some(component) = id.and_then(|id| components.get_mut(id)) {
                component.uses = uses(node, &ids).filter(|id| used.contains(id)).collect();
            }
        }
        Ok(Self { components })
    }

    /// Returns the crate of the program itself.
    pub(super) fn program(&self) -> anyhow::Result<(&Id, &Component)> {
        let mut components = self.components.iter();
        components
            .find(|(id, _)| id.name == names::PACKAGE)
            .context("cargo does not list the program")
    }
}

/// Returns the packages of the plugins inside the program.
fn plugins() -> Vec<String> {
    let files = palisade_plugins::all().iter().chain([palisade_plugins::hostile()]);
    files
        .map(|plugin| format!("palisade-plugin-{}", plugin.file.trim_end_matches(".wasm")))
        .collect()
}

/// Returns the crates that are compiled into packages: no procedural macros, and nothing that only
/// a build script or a test uses. Features are those of these packages alone.
fn tree(place: &Place, packages: &[String], triple: &str) -> anyhow::Result<BTreeSet<Id>> {
    let mut cargo = scrubbed(env!("CARGO"));
    cargo.args(["tree", "--locked", "--prefix", "none", "--format", "{p}"]);
    cargo.args(["--edges", "normal,no-proc-macro", "--target", triple]);
    cargo.args(packages.iter().flat_map(|package| ["--package", package]));
    let said = run(cargo.current_dir(&place.root), "cargo tree")?;
    let id = |line: &str| {
        let mut words = line.split(' ');
        let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
        Some(Id { name: name.to_owned(), version: version.to_owned() })
    };
    Ok(said.lines().filter_map(id).collect())
}

fn metadata(place: &Place) -> anyhow::Result<Value> {
    let mut cargo = scrubbed(env!("CARGO"));
    cargo.args(["metadata", "--locked", "--format-version", "1"]).current_dir(&place.root);
    serde_json::from_str(&run(&mut cargo, "cargo metadata")?)
        .context("the output of cargo metadata")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// Returns the crates by the ids that cargo gives them.
fn ids(metadata: &Value) -> BTreeMap<&str, Id> {
    let id = |package: &'_ Value| {
        Some(Id { name: text(&package["name"])?, version: text(&package["version"])? })
    };
    let packages = list(&metadata["packages"]).iter();
    packages.filter_map(|package| Some((package["id"].as_str()?, id(package)?))).collect()
}

/// Returns the crates that another one uses when it runs.
fn uses<'a>(node: &'a Value, ids: &'a BTreeMap<&str, Id>) -> impl Iterator<Item = Id> + 'a {
    let is_normal = |kinds: &Value| list(kinds).iter().any(|kind| kind["kind"].is_null());
    let uses = list(&node["deps"]).iter().filter(move |used| is_normal(&used["dep_kinds"]));
    uses.filter_map(|used| ids.get(used["pkg"].as_str()?).cloned())
}

fn component(package: &Value, digest: Option<String>) -> Component {
    let manifest = PathBuf::from(package["manifest_path"].as_str().unwrap_or_default());
    Component {
        description: text(&package["description"]).map(|text| one_line(&text)),
        license: text(&package["license"]).map(|license| expression(&license)),
        repository: text(&package["repository"]),
        digest,
        directory: manifest.parent().map(Path::to_owned).unwrap_or_default(),
        uses: BTreeSet::new(),
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns an SPDX expression: older packages separate their licences by a slash.
fn expression(license: &str) -> String {
    license.split('/').map(str::trim).collect::<Vec<_>>().join(" OR ")
}

/// Returns the digests of `Cargo.lock`.
fn digests(root: &Path) -> anyhow::Result<BTreeMap<Id, String>> {
    let lock = fs::read_to_string(root.join("Cargo.lock")).context("reading Cargo.lock")?;
    let lock: toml::Table = toml::from_str(&lock).context("Cargo.lock")?;
    let packages = lock.get("package").and_then(toml::Value::as_array);
    let text = |package: &toml::Value, key| Some(package.get(key)?.as_str()?.to_owned());
    let digest = |package: &toml::Value| {
        let id = Id { name: text(package, "name")?, version: text(package, "version")? };
        Some((id, text(package, "checksum")?))
    };
    Ok(packages.into_iter().flatten().filter_map(digest).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn licences_are_spdx_expressions() {
        assert_eq!(expression("MIT/Apache-2.0"), "MIT OR Apache-2.0");
        assert_eq!(expression("MIT OR Apache-2.0"), "MIT OR Apache-2.0");
    }
}
