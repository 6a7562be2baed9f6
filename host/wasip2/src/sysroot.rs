//! Builds the target's standard library where rustup is not available: from Debian's source of this
//! exact compiler and Debian's C library for WASI, once per compiler, among the build artefacts.
//! The toolchain is not modified.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::apt::{self, Apt};
use crate::command;
use crate::error::Error;
use crate::sources;
use crate::target::TARGET;
use crate::toolchain::Toolchain;

/// The file that identifies a sysroot; a directory without it is incomplete.
const MADE: &str = "made";

/// An empty crate, whose build makes cargo build the standard library.
const SEED: &str = "palisade_seed";

/// A sysroot built here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sysroot {
    /// The directory for `rustc --sysroot`.
    pub path: PathBuf,
    /// A text that is unique to this build of a sysroot.
    pub identity: String,
}

impl Sysroot {
    /// Returns the sysroot that was built earlier for this exact compiler, if any.
    pub fn made_earlier(toolchain: &Toolchain, home: &Path) -> Option<Self> {
        let path = home.join(&toolchain.version.key);
        let identity = fs::read_to_string(path.join(MADE)).ok()?;
        // The symlinks in the sysroot point to the toolchain, which may have been moved or
        // replaced.
        path.join("lib/rustlib")
            .join(&toolchain.version.host)
            .join("bin")
            .is_dir()
            .then_some(Self { path, identity })
    }

    /// Builds a sysroot below `home`, in a temporary directory that is renamed when complete, so
    /// that an interrupted run leaves no partial sysroot. The caller must hold the lock.
    ///
    /// # Errors
    /// The reason why a step failed, in one line.
    pub fn make(toolchain: &Toolchain, home: &Path) -> Result<Self, Error> {
        let making = home.join("making");
        clear(&making)?;
        let made = make_in(&making, toolchain)
            .and_then(|identity| install(&making, toolchain, home, identity));
        clear(&making)?;
        made
    }
}

fn make_in(making: &Path, toolchain: &Toolchain) -> Result<String, Error> {
    let debian = making.join("debian");
    let version = unpack(making, &toolchain.version.release, &debian)?;
    let libraries = making.join("sysroot/lib/rustlib").join(TARGET).join("lib");
    let contained = libraries.join("self-contained");
    create(&contained)?;
    copy(&debian.join("usr/lib").join(TARGET), &contained, &["a", "o"])?;
    let source =
        debian.join("usr/src").join(format!("rustc-{}", toolchain.version.release)).join("library");
    require(&source, "standard library of this compiler")?;
    require(&contained.join("libc.a"), "C library for wasm32-wasip2")?;
    let built = build_library(toolchain, &making.join("seed"), &source)?;
    copy(&built, &libraries, &["rlib"])?;
    link_tools(toolchain, &making.join("sysroot/lib/rustlib"))?;
    Ok(format!("{} {version} {}\n", toolchain.version.key, now()))
}

/// Downloads and unpacks both packages from the first mirror that has them, and returns the version
/// of `rust-src`.
fn unpack(making: &Path, release: &str, into: &Path) -> Result<String, Error> {
    let mut last = Error::NoMirror;
    for (number, mirror) in sources::mirrors_here().iter().enumerate() {
        match unpack_from(&making.join(format!("apt-{number}")), mirror, release, into) {
            Ok(version) => return Ok(version),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn unpack_from(home: &Path, mirror: &str, release: &str, into: &Path) -> Result<String, Error> {
    let apt = Apt::open(home, mirror)?;
    let offered = apt.versions("rust-src")?;
    let Some(version) = apt::matching(&offered, release).map(str::to_owned) else {
        return Err(Error::NoSource { release: release.to_owned(), offered });
    };
    apt.unpack(&[&format!("rust-src={version}"), "wasi-libc"], into)?;
    Ok(version)
}

/// Builds an empty crate with the standard library from `source` and returns the directory of the
/// libraries. They include bitcode for link-time optimisation of the guests.
fn build_library(toolchain: &Toolchain, seed: &Path, source: &Path) -> Result<PathBuf, Error> {
    create(&seed.join("src"))?;
    let manifest = format!(
        "[package]\nname = \"{SEED}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n"
    );
    for (name, text) in [("Cargo.toml", manifest.as_str()), ("src/lib.rs", "")] {
        let path = seed.join(name);
        fs::write(&path, text).map_err(|source| Error::io("write", &path, source))?;
    }
    // In a directory of its own, so that a project's configuration of cargo does not apply. Its
    // compiler does: the variable overrides the choice that rustup makes by the directory.
    let mut cargo = command::scrubbed(&toolchain.cargo);
    cargo.current_dir(seed).args([
        "build",
        "--release",
        "-Zbuild-std=std,panic_abort",
        "--target",
        TARGET,
        "--target-dir",
    ]);
    cargo
        .arg(seed.join("target"))
        .env("RUSTC", toolchain.sysroot()?.join("bin/rustc"))
        .env("CARGO_ENCODED_RUSTFLAGS", library_flags(source));
    // Both variables are internal to cargo's tests, but the only way to build a standard library
    // that is not part of the toolchain.
    cargo.env("RUSTC_BOOTSTRAP", "1").env("__CARGO_TESTS_ONLY_SRC_ROOT", source);
    command::run(&mut cargo, "building the standard library")?;
    let built = seed.join("target").join(TARGET).join("release/deps");
    remove_seed(&built)?;
    Ok(built)
}

/// Returns the flags of the standard library. Its paths end up in guests, in the texts of panics:
/// they are the same on every machine.
fn library_flags(source: &Path) -> OsString {
    let mut flags = OsString::from("-Cembed-bitcode=yes\u{1f}--remap-path-prefix=");
    flags.push(source);
    flags.push("=/rust");
    flags
}

fn remove_seed(built: &Path) -> Result<(), Error> {
    let prefix = format!("lib{SEED}-");
    for path in files(built)? {
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&prefix)) {
            fs::remove_file(&path).map_err(|source| Error::io("remove", &path, source))?;
        }
    }
    Ok(())
}

/// Links the toolchain's `rust-lld` and `wasm-component-ld` into the sysroot, where the compiler
/// looks for them.
fn link_tools(toolchain: &Toolchain, rustlib: &Path) -> Result<(), Error> {
    let tools = toolchain.sysroot()?.join("lib/rustlib").join(&toolchain.version.host);
    let link = rustlib.join(&toolchain.version.host);
    symlink(&tools, &link).map_err(|source| Error::io("link", &link, source))
}

#[cfg(unix)]
fn symlink(original: &Path, link: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(original, link)
}

/// Unreachable in practice: without apt an earlier step has failed.
#[cfg(not(unix))]
fn symlink(_original: &Path, _link: &Path) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

fn install(
    making: &Path,
    toolchain: &Toolchain,
    home: &Path,
    identity: String,
) -> Result<Sysroot, Error> {
    let (from, path) = (making.join("sysroot"), home.join(&toolchain.version.key));
    let made = from.join(MADE);
    fs::write(&made, &identity).map_err(|source| Error::io("write", &made, source))?;
    clear(&path)?;
    fs::rename(&from, &path).map_err(|source| Error::io("move to its place", &path, source))?;
    Ok(Sysroot { path, identity })
}

fn copy(from: &Path, to: &Path, extensions: &[&str]) -> Result<(), Error> {
    for path in files(from)? {
        let wanted = path
            .extension()
            .is_some_and(|kind| extensions.iter().any(|extension| kind == *extension));
        if let (true, Some(name)) = (wanted, path.file_name()) {
            fs::copy(&path, to.join(name)).map_err(|source| Error::io("copy", &path, source))?;
        }
    }
    Ok(())
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let listed = fs::read_dir(folder).map_err(|source| Error::io("list", folder, source))?;
    Ok(listed.flatten().map(|entry| entry.path()).collect())
}

fn require(path: &Path, what: &str) -> Result<(), Error> {
    if path.exists() { Ok(()) } else { Err(Error::Incomplete { what: what.to_owned() }) }
}

fn create(folder: &Path) -> Result<(), Error> {
    fs::create_dir_all(folder).map_err(|source| Error::io("create", folder, source))
}

fn clear(folder: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(folder) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::io("remove", folder, source))
        }
        _ => Ok(()),
    }
}

fn now() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos())
}
