//! The public items of the published libraries, kept in `docs/surface/`, so that a change of the
//! surface is seen in a diff.
//!
//! rustdoc describes a crate as JSON, which the crate `public-api` lists, one item a line. That
//! output is not stable: each compiler has its own format, and `public-api` is pinned to the
//! compiler of `rust-toolchain.toml`.

use crate::place::Place;
use anyhow::{Context as _, ensure};
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

/// The published libraries.
const LIBRARIES: [&str; 16] = [
    "palisade",
    "palisade_author",
    "palisade_declarations",
    "palisade_formats",
    "palisade_guest",
    "palisade_guest_macros",
    "palisade_mcp",
    "palisade_mcp_client",
    "palisade_net",
    "palisade_schema",
    "palisade_server",
    "palisade_shell",
    "palisade_store",
    "palisade_trust",
    "palisade_wasi_fs",
    "palisade_wasip2",
];

/// Set when this program runs as cargo's rustdoc.
const DESCRIBER: &str = "PALISADE_SURFACE";

/// A run of the task: it compares the stored lists with the sources, or stores new ones.
#[derive(Clone, Copy)]
pub(crate) enum Task {
    Compare,
    Keep,
}

/// Lists the public items of each library.
pub(crate) fn run(place: &Place, task: Task) -> anyhow::Result<()> {
    describe(place)?;
    let mut changed = Vec::new();
    for library in LIBRARIES {
        let listed = list(&place.target.join("doc").join(format!("{library}.json")))?;
        let file = place.root.join("docs/surface").join(format!("{library}.txt"));
        match task {
            Task::Keep => {
                fs::write(&file, listed).with_context(|| format!("writing {}", file.display()))?;
            }
            Task::Compare => {
                if fs::read_to_string(&file).unwrap_or_default() != listed {
                    changed.push(library);
                }
            }
        }
    }
    ensure!(
        changed.is_empty(),
        "the public items of {} differ from docs/surface; if that is intended, run \
         `cargo xtask surface --keep` and commit the files",
        changed.join(", ")
    );
    Ok(())
}

/// Lets rustdoc write its JSON for the whole workspace, which reuses the artefacts of `cargo doc`.
fn describe(place: &Place) -> anyhow::Result<()> {
    let describer = std::env::current_exe().context("finding the path of this program")?;
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .current_dir(&place.root)
        .args(["doc", "--workspace", "--no-deps", "--lib", "--quiet", "--target-dir"])
        .arg(&place.target)
        .env("RUSTDOC", describer)
        .env(DESCRIBER, "1");
    ensure!(cargo.status().context("running cargo doc")?.success(), "cargo doc failed");
    Ok(())
}

/// Runs rustdoc with its unstable output if cargo has invoked this program as its rustdoc.
///
/// Only rustdoc is told that unstable options are allowed. If cargo's own environment said so, the
/// build scripts of the dependencies would run again, and all of them would be compiled anew.
pub(crate) fn as_rustdoc() -> Option<anyhow::Result<ExitCode>> {
    std::env::var_os(DESCRIBER)?;
    let status = Command::new("rustdoc")
        .args(std::env::args_os().skip(1))
        .args(["-Zunstable-options", "--output-format=json"])
        .env("RUSTC_BOOTSTRAP", "1")
        .status()
        .context("running rustdoc");
    Some(status.map(|status| if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE }))
}

fn list(json: &Path) -> anyhow::Result<String> {
    let described = public_api::Builder::from_rustdoc_json(json)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build()
        .with_context(|| format!("reading {}", json.display()))?;
    Ok(described.items().map(|item| format!("{item}\n")).collect())
}
