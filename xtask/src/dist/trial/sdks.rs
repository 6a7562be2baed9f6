//! The packages of the SDKs: each installed, and used as its authors test a tool. The published
//! crates are built by `cargo package`; here they show that they have their documents.

use super::super::contents::LICENSES;
use super::super::{Release, names};
use super::root::Root;
use super::wheel;
use crate::packages;
use anyhow::{Context as _, ensure};
use palisade_wasip2::command::run as output;
use std::fs;
use std::path::Path;

const PYTHON: &str = r#"
from palisade_guest import tool
from palisade_guest.testing import call


@tool(side_effects="none")
def greet(name: str) -> str:
    """Greets somebody by name."""
    return f"Hello, {name}!"


print(call(greet, {"name": "Ada"}).text)
"#;

const JAVASCRIPT: &str = "
import { t, tool } from 'palisade-guest';
import { call } from 'palisade-guest/testing';

const greet = tool({
  name: 'greet',
  description: 'Greets somebody by name.',
  sideEffects: 'none',
  input: { name: t.string('The name.') },
  run: ({ name }) => `Hello, ${name}!`,
});
console.log(call(greet, { name: 'Ada' }).text);
";

const C: &str = r#"
#define PALISADE_IMPLEMENTATION
#include "palisade.h"

static void greet(const palisade_call *call, palisade_output *out) {
    palisade_text(out, "Hello, %s!", palisade_string(call, "name", "stranger"));
}

PALISADE_TOOLS({
    .name = "greet",
    .description = "Greets somebody by name.",
    .side_effects = PALISADE_NONE,
    .input_schema = "{\"type\":\"object\"}",
    .run = greet,
})
"#;

const GREETING: &str = "Hello, Ada!";

pub(super) fn run(release: &Release<'_>) -> anyhow::Result<()> {
    python(release)?;
    javascript(release)?;
    c(release)?;
    crates(release)
}

fn python(release: &Release<'_>) -> anyhow::Result<()> {
    let name = format!("{}-py3-none-any.whl", names::wheel_stem(names::SDK));
    let Some(package) = release.file(&name) else { return Ok(()) };
    let root = Root::new()?;
    let Some(environment) = wheel::environment(release, &root)? else { return Ok(()) };
    wheel::install(&root, &environment, &package)?;
    let script = root.join("greet.py");
    fs::write(&script, PYTHON)?;
    let mut python = root.command(environment.join("bin/python"));
    greets(&output(python.arg(script), "calling a tool in Python")?)
}

fn javascript(release: &Release<'_>) -> anyhow::Result<()> {
    // Without npm there is no package, and no Node.
    let Some(package) = release.file(&names::npm_file(names::SDK)) else { return Ok(()) };
    let root = Root::new()?;
    // Without the builder, which is of the registry: a tool is tested without it.
    let directory = root.join("node_modules").join(names::SDK);
    unpack(&root, &package, &directory)?;
    let script = root.join("greet.mjs");
    fs::write(&script, JAVASCRIPT)?;
    greets(&output(root.command("node").arg(script), "calling a tool in JavaScript")?)
}

/// Compiles the example of the SDK's README.
fn c(release: &Release<'_>) -> anyhow::Result<()> {
    let package = release.file(&format!("{}.tar.gz", names::c_sdk()));
    let root = Root::new()?;
    let directory = root.join("sdk");
    unpack(&root, &package.context("there is no SDK for C")?, &directory)?;
    let source = root.join("greet.c");
    fs::write(&source, C)?;
    let mut cc = root.command("cc");
    cc.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-c", "-o", "greet.o", "-I"]);
    cc.arg(directory.join("include")).arg(source);
    output(&mut cc, "compiling a tool in C")?;
    Ok(())
}

fn crates(release: &Release<'_>) -> anyhow::Result<()> {
    for name in packages::names() {
        let package = format!("{name}-{}", names::VERSION);
        let file = release.file(&format!("{package}.crate")).context(package.clone())?;
        let root = Root::new()?;
        let listed = output(root.installer("tar").arg("-tzf").arg(file), "listing a crate")?;
        for document in LICENSES.into_iter().chain(["README.md", "Cargo.toml"]) {
            let path = format!("{package}/{document}");
            ensure!(listed.lines().any(|line| line == path), "{path} is missing");
        }
    }
    Ok(())
}

/// Unpacks an archive without its top directory.
fn unpack(root: &Root, package: &Path, directory: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(directory)?;
    let mut tar = root.installer("tar");
    tar.args(["--strip-components", "1", "-C"]).arg(directory).arg("-xzf").arg(package);
    output(&mut tar, "unpacking a package")?;
    Ok(())
}

fn greets(said: &str) -> anyhow::Result<()> {
    ensure!(said.trim() == GREETING, "the tool says {said}");
    Ok(())
}
