//! Builds the guests of all suites, and generates a list of them.
//!
//! The list has a constant for each guest, and for each suite a macro `foreach_<suite>!` that
//! passes the suite's guests to another macro. A suite passes a macro that requires a test or a
//! module of the guest's name, so that the suite does not compile if no test runs a guest.

#[path = "../plugins/build/guests.rs"]
mod guests;

use std::collections::BTreeMap;
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use guests::{Built, Error, Request, Selection, script};

/// The package that the guests are examples of.
const PACKAGE: &str = "palisade-test-guests";

fn main() -> ExitCode {
    script::conclude(prepare(&directory("CARGO_MANIFEST_DIR"), &directory("OUT_DIR")))
}

fn prepare(package: &Path, out: &Path) -> Result<(), Error> {
    let workspace = package.parent().unwrap_or(package);
    script::watch(&script::ingredients(workspace));
    script::watch(
        &[
            "build.rs",
            "guests/Cargo.toml",
            "guests/examples",
            "guests/mcp_conformance",
            "guests/wit",
        ]
        .map(|name| package.join(name)),
    );
    let names = names(&package.join("guests/examples"))?;
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let target = script::target_directory(out, &env::var("TARGET").unwrap_or_default());
    let guests = Selection::Examples { package: PACKAGE, names: &names, features: &["guests"] };
    let built = guests::build(&Request { workspace, target: &target, guests })?;
    let home = out.join("guests");
    remade(&home)?;
    remade(&out.join("cache"))?;
    built.iter().try_for_each(|guest| place(guest, &home))?;
    let list = out.join("guests.rs");
    fs::write(&list, listing(&names)).map_err(|source| Error::io("write", &list, source))
}

/// Returns the names of the guests, sorted: those of their source files.
fn names(folder: &Path) -> Result<Vec<String>, Error> {
    let fail = |source| Error::io("list", folder, source);
    let entries =
        fs::read_dir(folder).map_err(fail)?.collect::<Result<Vec<_>, _>>().map_err(fail)?;
    let stem = |entry: fs::DirEntry| Some(entry.path().file_stem()?.to_str()?.to_owned());
    let mut names: Vec<String> = entries.into_iter().filter_map(stem).collect();
    names.sort();
    Ok(names)
}

/// Creates an empty private directory in place of an existing one.
fn remade(folder: &Path) -> Result<(), Error> {
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(|source| Error::io("remove", folder, source))?;
    }
    let mut builder = fs::DirBuilder::new();
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).map_err(|source| Error::io("create", folder, source))
}

/// Copies a guest to its own directory, so that a host can load it alone.
fn place(guest: &Built, home: &Path) -> Result<(), Error> {
    let folder = home.join(&guest.name);
    fs::create_dir_all(&folder).map_err(|source| Error::io("create", &folder, source))?;
    let copy = folder.join(format!("{}.wasm", guest.name));
    fs::copy(&guest.path, &copy).map(drop).map_err(|source| Error::io("copy", &guest.path, source))
}

/// Returns the Rust source that the library includes.
fn listing(names: &[&str]) -> String {
    let mut source = String::new();
    let mut suites: BTreeMap<&str, String> = BTreeMap::new();
    for name in names {
        let suite = name.split('_').next().unwrap_or(name);
        let _ = writeln!(suites.entry(suite).or_default(), "        $check!({name});");
        let _ = writeln!(
            source,
            "/// The guest `{name}`.\npub const {}: Guest = Guest::new({name:?});",
            name.to_uppercase()
        );
    }
    for (suite, checks) in &suites {
        let _ = writeln!(source, "/// Passes each guest of the suite to a macro.");
        let _ = writeln!(
            source,
            "#[macro_export]\nmacro_rules! foreach_{suite} {{\n    ($check:ident) => {{\n{checks}    }};\n}}"
        );
    }
    let _ = writeln!(
        source,
        "/// The suites that have guests.\npub const SUITES: &[&str] = &{:?};",
        suites.keys().collect::<Vec<_>>()
    );
    source
}

fn directory(variable: &str) -> PathBuf {
    env::var_os(variable).unwrap_or_default().into()
}
