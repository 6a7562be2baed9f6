//! The packages of the SDKs for other languages, made by the tools of each language, so that they
//! are the packages that these tools publish.

use super::files::Files;
use super::names;
use super::pack::{self, Effort};
use crate::pip::{self, python};
use crate::place::Place;
use anyhow::ensure;
use palisade_wasip2::command::scrubbed;
use std::path::Path;

/// The time in the files of a wheel, in seconds since 1970: the one of the other packages.
const TIME: &str = "499162500";

/// The parts of the SDK for C.
const C_PARTS: [&str; 5] = ["LICENSE-APACHE", "LICENSE-MIT", "README.md", "include", "wit"];

/// Makes the wheel of the SDK for Python with its own build system, flit, which pip fetches.
/// Returns the reason if that is not possible here.
pub(super) fn python_wheel(place: &Place, directory: &Path) -> anyhow::Result<Option<String>> {
    let mut pip = python();
    pip.args(["-m", "pip", "wheel", "--quiet", "--no-deps", "--no-input"])
        .args(["--disable-pip-version-check", "--wheel-dir"])
        .arg(directory)
        .arg(place.root.join("guest-sdk/python"))
        .env("SOURCE_DATE_EPOCH", TIME);
    let output = match pip.output() {
        Ok(output) => output,
        Err(error) => return Ok(Some(format!("python3 cannot be started: {error}"))),
    };
    if !output.status.success() {
        return pip::out_of_reach(&String::from_utf8_lossy(&output.stderr)).map(Some);
    }
    check_name(directory, &format!("{}-py3-none-any.whl", names::wheel_stem(names::SDK)))?;
    Ok(None)
}

/// Makes the npm package of the SDK for JavaScript. Returns the reason if that is not possible
/// here.
pub(super) fn npm_package(place: &Place, directory: &Path) -> anyhow::Result<Option<String>> {
    let mut npm = scrubbed("npm");
    npm.args(["pack", "--ignore-scripts", "--loglevel=error", "--pack-destination"])
        .arg(directory)
        .current_dir(place.root.join("guest-sdk/js"));
    let output = match npm.output() {
        Ok(output) => output,
        Err(error) => return Ok(Some(format!("npm cannot be started: {error}"))),
    };
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "npm cannot pack the SDK:\n{said}");
    check_name(directory, &names::npm_file(names::SDK))?;
    Ok(None)
}

/// Packs the SDK for C, which is a header.
pub(super) fn c_archive(place: &Place, effort: Effort) -> anyhow::Result<Vec<u8>> {
    let mut files = Files::default();
    for part in C_PARTS {
        files.copy_tree(part, &place.root.join("guest-sdk/c").join(part))?;
    }
    pack::tar_gz(&files, &names::c_sdk(), effort)
}

/// Checks the name of a file that another tool has made: it has the version of the SDK's manifest.
fn check_name(directory: &Path, name: &str) -> anyhow::Result<()> {
    ensure!(
        directory.join(name).is_file(),
        "`{name}` was not made: does the SDK's manifest have the version {}?",
        names::VERSION
    );
    Ok(())
}
