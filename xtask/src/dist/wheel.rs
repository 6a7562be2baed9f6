//! The wheel with the program: pip puts the program where it puts the scripts of a package, so that
//! `uvx` and `pipx` run it, too.

use super::contents::{self, Contents};
use super::files::{Files, Mode};
use super::names;
use super::pack::{self, Effort};
use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;

/// The tag of a wheel that any Python 3 can install: only the system matters.
fn tag(system: &str) -> String {
    format!("py3-none-{system}")
}

/// Returns the name of the wheel's file.
pub(super) fn file(system: &str) -> String {
    format!("{}-{}.whl", names::wheel_stem(names::PACKAGE), tag(system))
}

/// Packs the wheel for the systems of a tag, such as `manylinux_2_34_x86_64`.
pub(super) fn pack(
    contents: &Contents,
    summary: &str,
    system: &str,
    effort: Effort,
) -> anyhow::Result<Vec<u8>> {
    let stem = names::wheel_stem(names::PACKAGE);
    let information = format!("{stem}.dist-info");
    let mut files = Files::default();
    for (path, file) in contents.tree.iter() {
        let path = match path {
            contents::PROGRAM => format!("{stem}.data/scripts/{}", names::PROGRAM),
            _ => format!("{stem}.data/data/{path}"),
        };
        files.insert(path, file.mode, file.bytes.clone());
    }
    for name in contents::LICENSES.into_iter().chain([contents::THIRD_PARTY]) {
        let file = contents.documents.get(name).with_context(|| format!("{name} is missing"))?;
        files.insert(format!("{information}/licenses/{name}"), Mode::Data, file.bytes.clone());
    }
    files.data(format!("{information}/METADATA"), metadata(contents, summary)?);
    files.data(format!("{information}/WHEEL"), about_the_wheel(system));
    let record = record(&files, &format!("{information}/RECORD"))?;
    files.data(format!("{information}/RECORD"), record);
    pack::zip(&files, effort)
}

/// Returns the core metadata, version 2.4.
fn metadata(contents: &Contents, summary: &str) -> anyhow::Result<String> {
    let readme = contents.documents.get("README.md").context("README.md is missing")?;
    let mut text = format!(
        "Metadata-Version: 2.4\n\
         Name: {}\n\
         Version: {}\n\
         Summary: {summary}\n\
         License-Expression: MIT OR Apache-2.0\n",
        names::PACKAGE,
        names::VERSION
    );
    for name in contents::LICENSES.into_iter().chain([contents::THIRD_PARTY]) {
        writeln!(text, "License-File: {name}")?;
    }
    text += "Keywords: wasm,sandbox,plugin,tool,agent\n\
             Requires-Python: >=3.8\n\
             Description-Content-Type: text/markdown\n\n";
    text += &String::from_utf8_lossy(&readme.bytes);
    Ok(text)
}

fn about_the_wheel(system: &str) -> String {
    format!(
        "Wheel-Version: 1.0\nGenerator: palisade xtask {}\nRoot-Is-Purelib: false\nTag: {}\n",
        names::VERSION,
        tag(system)
    )
}

/// Returns the list of all files with their digests, which has no digest of itself.
fn record(files: &Files, own: &str) -> anyhow::Result<String> {
    let mut lines = String::new();
    for (path, file) in files.iter() {
        let digest = URL_SAFE_NO_PAD.encode(Sha256::digest(&file.bytes));
        writeln!(lines, "{path},sha256={digest},{}", file.bytes.len())?;
    }
    writeln!(lines, "{own},,")?;
    Ok(lines)
}
