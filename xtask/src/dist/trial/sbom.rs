//! The bill of materials, read by the library of CycloneDX for Python.

use super::super::{Release, names};
use super::wheel;
use crate::pip::{Packages, python_with};
use anyhow::{Context as _, ensure};
use palisade_wasip2::command::run as output;

pub(super) fn run(release: &Release<'_>) -> anyhow::Result<()> {
    let tools = match wheel::tools(release)? {
        Packages::At(tools) => tools,
        Packages::OutOfReach(reason) => return release.skip("the trial of the SBOM", &reason),
    };
    let name = format!("{}.cdx.json", names::archive(release.platform));
    let document = release.file(&name).context("there is no bill of materials")?;
    let mut python = python_with(&tools);
    python.arg(release.place.root.join("tests/dist/sbom.py")).arg(document);
    let components = output(&mut python, "reading the bill of materials")?;
    ensure!(components.trim().parse::<u32>()? > 100, "the bill lists {components} components");
    Ok(())
}
