//! The files that go with the program, the same ones in each of its packages.

use super::files::{Files, Mode};
use super::inventory::Inventory;
use super::{licences, names};
use crate::place::Place;
use anyhow::{Context as _, ensure};
use palisade_wasip2::command::{run, scrubbed};
use std::fs;
use std::path::{Path, PathBuf};

/// The place of the program in an installation.
pub(super) const PROGRAM: &str = "bin/palisade";
/// The place of the manual pages.
pub(super) const MANUAL: &str = "share/man/man1";
/// The file with the licences of the crates in the program.
pub(super) const THIRD_PARTY: &str = "THIRD-PARTY-LICENSES";
/// The licences of this repository.
pub(super) const LICENSES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];

/// The shells with a completion script, and the places where they look for it. Elvish and
/// PowerShell load it from a line in the user's settings.
pub(super) const COMPLETIONS: [(&str, &str); 5] = [
    ("bash", "share/bash-completion/completions/palisade"),
    ("elvish", "share/palisade/completions/palisade.elv"),
    ("fish", "share/fish/vendor_completions.d/palisade.fish"),
    ("powershell", "share/palisade/completions/palisade.ps1"),
    ("zsh", "share/zsh/site-functions/_palisade"),
];

/// The parts of the SDKs, below `guest-sdk`. `palisade new` looks for them beside the program.
const SDKS: [&str; 22] = [
    "Cargo.toml",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "c/LICENSE-APACHE",
    "c/LICENSE-MIT",
    "c/README.md",
    "c/include",
    "c/wit",
    "js/README.md",
    "js/bin",
    "js/package.json",
    "js/src",
    "js/types",
    "js/wit",
    "macros/Cargo.toml",
    "macros/src",
    "python/README.md",
    "python/pyproject.toml",
    "python/src",
    "src",
    "wit",
];

/// The contents of a package of the program.
pub(super) struct Contents {
    /// The files below the root of an installation.
    pub(super) tree: Files,
    /// The licences and the README, whose place differs between the kinds of packages.
    pub(super) documents: Files,
}

/// The built programs.
pub(super) struct Built {
    pub(super) program: PathBuf,
    pub(super) manual: PathBuf,
}

impl Contents {
    /// Collects the files of a built program.
    pub(super) fn collect(
        place: &Place,
        built: &Built,
        inventory: &Inventory,
    ) -> anyhow::Result<Self> {
        let mut tree = Files::default();
        let program = fs::read(&built.program)
            .with_context(|| format!("reading {}", built.program.display()))?;
        tree.insert(PROGRAM, Mode::Program, program);
        manual(&mut tree, built)?;
        for (shell, path) in COMPLETIONS {
            let mut completions = scrubbed(&built.program);
            tree.data(path, run(completions.args(["completions", shell]), "palisade completions")?);
        }
        let mut documents = Files::default();
        for name in LICENSES {
            documents.copy(name, &place.root.join(name))?;
        }
        documents.copy("README.md", &place.root.join("host/cli/README.md"))?;
        documents.data(THIRD_PARTY, licences::document(inventory)?);
        sdks(&mut tree, &place.root)?;
        Ok(Self { tree, documents })
    }
}

fn manual(tree: &mut Files, built: &Built) -> anyhow::Result<()> {
    let pages = tempfile::tempdir().context("creating a directory for the manual pages")?;
    run(scrubbed(&built.manual).arg(pages.path()), "writing the manual pages")?;
    tree.copy_tree(MANUAL, pages.path())
}

/// Writes the SDKs below the root of an installation, where `palisade new` finds them.
pub(crate) fn install_sdks(root: &Path, installation: &Path) -> anyhow::Result<()> {
    let mut tree = Files::default();
    sdks(&mut tree, root)?;
    tree.write_below(installation)
}

/// Copies the SDKs. The manifests for Rust take the versions of their workspace, so that they need
/// one here too.
fn sdks(tree: &mut Files, root: &Path) -> anyhow::Result<()> {
    for part in SDKS {
        tree.copy_tree(&format!("share/palisade/sdk/{part}"), &root.join("guest-sdk").join(part))?;
    }
    let manifest = fs::read_to_string(root.join("Cargo.toml")).context("reading Cargo.toml")?;
    tree.data("share/palisade/Cargo.toml", workspace(&manifest)?);
    Ok(())
}

/// Returns the manifest of a workspace of the SDK for Rust alone.
fn workspace(manifest: &str) -> anyhow::Result<String> {
    let mut manifest: toml::Table = toml::from_str(manifest).context("Cargo.toml")?;
    manifest.retain(|key, _| key == "workspace");
    let table = manifest.get_mut("workspace").and_then(toml::Value::as_table_mut);
    let table = table.context("Cargo.toml has no workspace")?;
    table.remove("default-members");
    table.insert("members".to_owned(), vec!["sdk", "sdk/macros"].into());
    let dependencies = table.get_mut("dependencies").and_then(toml::Value::as_table_mut);
    let dependencies = dependencies.context("the workspace has no dependencies")?;
    dependencies.retain(|name, _| !name.starts_with(names::PROGRAM));
    let mut macros = toml::Table::new();
    macros.insert("path".to_owned(), "sdk/macros".into());
    macros.insert("version".to_owned(), names::VERSION.into());
    let replaced = dependencies.insert(format!("{}-macros", names::SDK), macros.into());
    ensure!(replaced.is_none(), "the SDK's macros are listed twice");
    toml::to_string(&manifest).context("the workspace of the SDK")
}
