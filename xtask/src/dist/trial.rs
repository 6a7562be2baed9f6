//! Installs each file of a release into an empty directory, and uses it there: without this
//! repository, without the user's settings, and without the network where the tool allows it.

mod archive;
mod npm;
mod root;
mod sbom;
mod sdks;
mod signal;
mod wheel;

use super::{Extent, Release, checksums};
use anyhow::Context as _;
use palisade_wasip2::command::{run as output, scrubbed};

/// Tries every file of a release.
pub(super) fn run(release: &Release<'_>) -> anyhow::Result<()> {
    sums(release)?;
    archive::run(release)?;
    wheel::run(release)?;
    npm::run(release)?;
    sbom::run(release)?;
    if release.options.extent == Extent::Everything {
        sdks::run(release)?;
    }
    Ok(())
}

/// Checks the checksums with the program that a user has: Linux and macOS have different ones.
fn sums(release: &Release<'_>) -> anyhow::Result<()> {
    let program = match release.platform.npm_os {
        "darwin" => ["shasum", "--algorithm", "256"].as_slice(),
        _ => ["sha256sum", "--strict"].as_slice(),
    };
    let (name, options) = program.split_first().context("there is a program")?;
    let mut command = scrubbed(name);
    command.args(options).args(["--check", checksums::FILE]).current_dir(&release.directory);
    output(&mut command, "checking the checksums")?;
    Ok(())
}
