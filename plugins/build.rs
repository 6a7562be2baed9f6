//! Builds the shipped plugins as components and generates their list for the library to embed.
//!
//! In the repository the plugins are built from source. The published package includes them
//! prebuilt, in `prebuilt/`, and runs neither cargo nor the network.

#[path = "build/guests.rs"]
mod guests;
#[cfg(feature = "code")]
#[path = "build/snapshot.rs"]
mod snapshot;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use miniz_oxide::deflate::compress_to_vec;

use guests::{Error, Request, Selection, script};
use sha2::{Digest as _, Sha256};

/// The shipped plugins, sorted by file name.
const PLUGINS: [&str; 5] = ["calculate", CODE, "files", "search", "web"];

/// The plugin that is embedded with the feature of its name alone.
const CODE: &str = "code";

/// The plugins that are loaded only with a grant, with the interface that the grant provides.
const GRANTED: [(&str, &str); 2] =
    [(CODE, "palisade:tool/tools"), ("web", "wasi:http/outgoing-handler")];

/// The plugin of the demonstration: built and embedded like the others, but not in the list.
const HOSTILE: &str = "escape";

/// The DEFLATE level, of 10: higher ones take longer and save nothing.
const PACKING: u8 = 9;

/// The prefix of the package names of the plugins.
const PREFIX: &str = "palisade-plugin-";

fn main() -> ExitCode {
    script::conclude(embed(&directory("CARGO_MANIFEST_DIR"), &directory("OUT_DIR")))
}

fn embed(package: &Path, out: &Path) -> Result<(), Error> {
    script::watch(&["Cargo.toml", "build.rs", "build", "prebuilt"].map(|name| package.join(name)));
    // Sources take precedence over prebuilt plugins, so that leftovers of packaging in a checkout
    // cannot hide a change.
    let from_source = package.join(PLUGINS[0]).join("Cargo.toml").is_file();
    let files = if from_source { build(package, out)? } else { prebuilt(package)? };
    let entries = names()
        .zip(&files)
        .map(|(name, file)| entry(name, file, out))
        .collect::<Result<Vec<_>, _>>()?;
    let list = out.join("plugins.rs");
    fs::write(&list, listing(entries)).map_err(|source| Error::io("write", &list, source))
}

fn build(package: &Path, out: &Path) -> Result<Vec<PathBuf>, Error> {
    let workspace = package.parent().unwrap_or(package);
    script::watch(&script::ingredients(workspace));
    script::watch(&names().map(|name| package.join(name)).collect::<Vec<_>>());
    script::watch(&[package.join("declarations")]);
    let target = script::target_directory(out, &env::var("TARGET").unwrap_or_default());
    let packages: Vec<String> = names().map(|name| format!("{PREFIX}{name}")).collect();
    let packages: Vec<&str> = packages.iter().map(String::as_str).collect();
    let guests = Selection::Packages(&packages);
    let built = guests::build(&Request { workspace, target: &target, guests })?;
    let paths = built.into_iter().map(|guest| guest.path);
    names().zip(paths).map(|(name, path)| initialised(name, path, out)).collect()
}

/// Initialises the plugin in advance whose start is slow, and returns the file of the component.
#[cfg(feature = "code")]
fn initialised(name: &str, path: PathBuf, out: &Path) -> Result<PathBuf, Error> {
    if name != CODE {
        return Ok(path);
    }
    let component = fs::read(&path).map_err(|source| Error::io("read", &path, source))?;
    let initialised = snapshot::initialised(&component)
        .map_err(|reason| Error::Snapshot { name: CODE, reason })?;
    let file = out.join(format!("{CODE}.wasm"));
    fs::write(&file, initialised).map_err(|source| Error::io("write", &file, source))?;
    Ok(file)
}

#[cfg(not(feature = "code"))]
fn initialised(_name: &str, path: PathBuf, _out: &Path) -> Result<PathBuf, Error> {
    Ok(path)
}

fn prebuilt(package: &Path) -> Result<Vec<PathBuf>, Error> {
    let folder = package.join("prebuilt");
    let files: Vec<PathBuf> = names().map(|name| folder.join(format!("{name}.wasm"))).collect();
    if files.iter().all(|file| file.is_file()) {
        Ok(files)
    } else {
        Err(Error::NoPlugins { folder })
    }
}

/// Returns the names of all built plugins.
fn names() -> impl Iterator<Item = &'static str> {
    shipped().chain([HOSTILE])
}

/// Returns the names of the plugins in the list.
fn shipped() -> impl Iterator<Item = &'static str> {
    let with_code = env::var_os("CARGO_FEATURE_CODE").is_some();
    PLUGINS.into_iter().filter(move |name| with_code || *name != CODE)
}

/// Returns the Rust source of a plugin's entry and writes the compressed plugin to `out`. The
/// digest is computed here, so that the host need not hash megabytes at startup.
fn entry(name: &str, file: &Path, out: &Path) -> Result<String, Error> {
    let bytes = fs::read(file).map_err(|source| Error::io("read", file, source))?;
    let packed = out.join(format!("{name}.wasm.deflate"));
    fs::write(&packed, compress_to_vec(&bytes, PACKING))
        .map_err(|source| Error::io("write", &packed, source))?;
    let (size, digest) = (bytes.len(), <[u8; 32]>::from(Sha256::digest(&bytes)));
    let description = match name {
        HOSTILE => "\"\"".to_owned(),
        _ => format!(
            "include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/descriptions/{name}.json\"))"
        ),
    };
    let requires = GRANTED.into_iter().find(|(granted, _)| *granted == name).map(|(_, it)| it);
    Ok(format!(
        "Plugin {{ file: \"{name}.wasm\", name: \"{name}\", size: {size}, \
         packed: include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{name}.wasm.deflate\")), digest: {digest:?}, \
         description: {description}, requires: {requires:?} }}"
    ))
}

/// Returns the Rust source of the list.
fn listing(mut entries: Vec<String>) -> String {
    // The last entry is the hostile plugin.
    let hostile = entries.pop().unwrap_or_default();
    format!(
        "static PLUGINS: [Plugin; {}] = [\n    {},\n];\nstatic HOSTILE: Plugin = {hostile};\n",
        shipped().count(),
        entries.join(",\n    ")
    )
}

fn directory(variable: &str) -> PathBuf {
    env::var_os(variable).unwrap_or_default().into()
}
