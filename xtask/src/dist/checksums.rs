//! The list of SHA-256 checksums, as `sha256sum` writes and checks it.

use anyhow::Context as _;
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// The file's name.
pub(super) const FILE: &str = "SHA256SUMS";

/// Writes the list of all files in a directory, sorted by name.
pub(super) fn write(directory: &Path) -> anyhow::Result<()> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory)? {
        names.push(entry?.file_name().into_string().ok().context("a file's name is not UTF-8")?);
    }
    names.sort();
    let mut list = String::new();
    for name in names.iter().filter(|name| *name != FILE) {
        let bytes = fs::read(directory.join(name)).with_context(|| format!("reading {name}"))?;
        for byte in Sha256::digest(&bytes) {
            write!(list, "{byte:02x}")?;
        }
        writeln!(list, "  {name}")?;
    }
    fs::write(directory.join(FILE), list).context("writing the checksums")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot prepare its files has failed")]
    use super::*;

    #[test]
    fn checksums_are_those_of_the_files() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["b", "a"] {
            fs::write(directory.path().join(name), "abc").unwrap();
        }
        write(directory.path()).unwrap();
        write(directory.path()).unwrap();
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let list = fs::read_to_string(directory.path().join(FILE)).unwrap();
        assert_eq!(list, format!("{abc}  a\n{abc}  b\n"));
    }
}
