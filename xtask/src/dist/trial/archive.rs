//! The archive: unpacked, the program runs, the shell completes its subcommands, and authors find
//! their SDKs and the manual.

use super::super::contents::{self, LICENSES, MANUAL, THIRD_PARTY};
use super::super::{Release, elf, names, read};
use super::root::Root;
use crate::documents::Profile;
use anyhow::{Context as _, ensure};
use palisade_wasip2::command::{run as output, scrubbed};
use std::path::Path;

/// Some of the manual's pages: that of the program, of a subcommand, and of one below that.
const PAGES: [&str; 3] = ["palisade", "palisade-call", "palisade-mcp-config"];

/// Asks bash for the completions of `palisade conf`.
const COMPLETE: &str = r#"
source "$1"
COMP_WORDS=(palisade conf) COMP_CWORD=1
_palisade palisade conf palisade
printf '%s\n' "${COMPREPLY[@]}"
"#;

pub(super) fn run(release: &Release<'_>) -> anyhow::Result<()> {
    let name = names::archive(release.platform);
    let archive = release.file(&format!("{name}.tar.gz")).context("there is no archive")?;
    let root = Root::new()?;
    output(root.installer("tar").arg("-xzf").arg(archive), "unpacking the archive")?;
    let unpacked = root.join(name);
    for document in LICENSES.into_iter().chain([THIRD_PARTY, "README.md"]) {
        ensure!(unpacked.join(document).is_file(), "{document} is missing");
    }
    let program = unpacked.join(contents::PROGRAM);
    stripped(release, &program)?;
    root.check(|| root.command(&program))?;
    root.check_sdks(|| root.command(&program))?;
    rust_sdk(&root)?;
    manual(&unpacked)?;
    completions(&root, &unpacked)
}

/// Checks that the program of a release has no symbols for debuggers.
fn stripped(release: &Release<'_>, program: &Path) -> anyhow::Result<()> {
    if release.options.profile == Profile::Debug || release.platform.npm_os != "linux" {
        return Ok(());
    }
    let bytes = read(program)?;
    ensure!(elf::Program::parse(&bytes)?.is_stripped(), "the program has symbols for debuggers");
    Ok(())
}

/// Checks that cargo can read the SDK's manifests outside their repository. A build would compile
/// its dependencies for a minute; the tests of the SDK do that in the repository.
fn rust_sdk(root: &Root) -> anyhow::Result<()> {
    let mut cargo = scrubbed(env!("CARGO"));
    cargo.args(["metadata", "--offline", "--format-version", "1"]);
    cargo.current_dir(root.join("words-rust"));
    let packages = output(&mut cargo, "reading the manifests of the SDK for Rust")?;
    ensure!(packages.contains("sdk/macros"), "the SDK's macros are not those of the archive");
    Ok(())
}

fn manual(unpacked: &Path) -> anyhow::Result<()> {
    for page in PAGES {
        let path = unpacked.join(MANUAL).join(format!("{page}.1"));
        let text = String::from_utf8(read(&path)?)?;
        ensure!(text.contains(&format!(".TH {page} 1")), "{page}.1 is no page of a manual");
    }
    let hidden = unpacked.join(MANUAL).join("palisade-compile-child.1");
    ensure!(!hidden.exists(), "the manual describes a hidden subcommand");
    Ok(())
}

fn completions(root: &Root, unpacked: &Path) -> anyhow::Result<()> {
    for (shell, path) in contents::COMPLETIONS {
        let script = read(&unpacked.join(path))?;
        ensure!(!script.is_empty(), "the completions for {shell} are empty");
        if shell == "bash" {
            let mut bash = root.command("bash");
            bash.args(["--norc", "-c", COMPLETE, "bash"]).arg(unpacked.join(path));
            let words = output(&mut bash, "completing a subcommand")?;
            ensure!(words.trim() == "config", "bash completes `palisade conf` with {words}");
        }
    }
    Ok(())
}
