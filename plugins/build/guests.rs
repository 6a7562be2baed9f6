//! Builds WebAssembly guests from a build script, as components for `wasm32-wasip2`.
//!
//! Shared by the build scripts that need guests, each with
//! `#[path = "…/plugins/build/guests.rs"] mod guests;`. A nested cargo builds them in a separate
//! target directory, `<target>/guests`, so that it never waits for the lock of the outer cargo, and
//! so that all outer profiles share the artefacts: `<target>/guests/wasm32-wasip2/guest/…wasm`.
//! Guests without link-time optimisation share no artefact with the others, and have a directory
//! beside it, so that both are built at once. A lock file serialises the builds of a directory.
#![allow(
    dead_code,
    reason = "each build script that includes these modules uses the part it needs"
)]

pub(crate) mod error;
pub(crate) mod script;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub(crate) use error::Error;
use palisade_wasip2::{TARGET, Target, Toolchain, command, lock};

/// The stack size of a guest, in bytes: an eighth of the linker's default, because each call
/// touches the stack's memory and no tool needs more. A guest that recurses deeper traps.
const STACK: u32 = 128 * 1024;

/// The profile of the workspace manifest for guests.
const PROFILE: &str = "guest";

/// A request to build guests.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    /// The directory of the workspace manifest.
    pub(crate) workspace: &'a Path,
    /// The target directory of the outer build; guests and sysroots get directories below it.
    pub(crate) target: &'a Path,
    /// The guests.
    pub(crate) guests: Selection<'a>,
}

/// The guests to build, each a library of crate type `cdylib`.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Selection<'a> {
    /// The libraries of these packages of the workspace.
    Packages(&'a [&'a str]),
    /// Examples of one package.
    Examples {
        /// The package.
        package: &'a str,
        /// The names of the examples.
        names: &'a [&'a str],
        /// Features of the package to enable.
        features: &'a [&'a str],
    },
}

/// One run of the nested cargo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Run {
    /// The guests that the run builds.
    pub(crate) names: Vec<String>,
    /// The subcommand and the selection; all other options are the same for all runs.
    pub(crate) arguments: Vec<String>,
    /// Whether guests are optimised when they are linked.
    pub(crate) lto: LinkTimeOptimization,
}

/// Whether guests are optimised when they are linked, which takes half of their build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinkTimeOptimization {
    /// The profile decides: they are.
    Full,
    /// They are not: neither their size nor their speed matters.
    Off,
}

/// A built guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Built {
    /// The name of the package or of the example, as in the request.
    pub(crate) name: String,
    /// The path of the component.
    pub(crate) path: PathBuf,
}

/// Builds the guests, and first the target if the toolchain lacks it. Does next to nothing if all
/// is up to date.
///
/// # Errors
/// [`Error::Target`] if the target is missing and cannot be built, [`Error::Guests`] if a guest
/// does not compile.
pub(crate) fn build(request: &Request<'_>) -> Result<Vec<Built>, Error> {
    let toolchain = Toolchain::of_this_build()?;
    let folder = request.target.join(request.guests.lto().folder());
    fs::create_dir_all(&folder).map_err(|source| Error::io("create", &folder, source))?;
    let _lock = lock(&folder.join("lock"))?;
    let target = find_target(&toolchain, request.target)?;
    target.forget_artefacts_of_another(&folder)?;
    for run in request.guests.runs() {
        let status = nested_cargo(&toolchain, &target, request.workspace, &folder, &run).status();
        if !status
            .map_err(|source| Error::io("run", Path::new(&toolchain.cargo), source))?
            .success()
        {
            return Err(Error::Guests { names: run.names });
        }
    }
    built(&request.guests, &folder.join(TARGET).join(PROFILE))
}

/// Finds the target, which one process at a time may build.
fn find_target(toolchain: &Toolchain, outer: &Path) -> Result<Target, Error> {
    let _lock = lock(&outer.join("wasm32-wasip2-sysroot.lock"))?;
    let home = outer.join("wasm32-wasip2-sysroot");
    Ok(Target::find(toolchain, &home, &mut |line| script::note(line))?)
}

impl Selection<'_> {
    /// Returns whether the guests are optimised when they are linked.
    fn lto(&self) -> LinkTimeOptimization {
        match self {
            Self::Packages(_) => LinkTimeOptimization::Full,
            Self::Examples { .. } => LinkTimeOptimization::of_outer_build(),
        }
    }

    /// Returns the names of all guests.
    pub(crate) fn names(&self) -> Vec<String> {
        let (Self::Packages(names) | Self::Examples { names, .. }) = self;
        words(names)
    }

    /// Returns the cargo runs that build the guests.
    ///
    /// A package needs a run of its own, because only `cargo rustc` can omit the `rlib` for native
    /// tests: cargo disables link-time optimisation if a library is also built as an `rlib`.
    /// Link-time optimisation reduces the size to an eighth.
    pub(crate) fn runs(&self) -> Vec<Run> {
        match self {
            Self::Packages(names) => {
                names.iter().map(|name| Run::of_package(name, self.lto())).collect()
            }
            Self::Examples { package, names, features } => {
                vec![Run::of_examples(package, names, features, self.lto())]
            }
        }
    }

    /// Returns the path of a guest relative to the directory of the profile.
    fn file(&self, name: &str) -> PathBuf {
        let file = format!("{}.wasm", name.replace('-', "_"));
        match self {
            Self::Packages(_) => file.into(),
            Self::Examples { .. } => Path::new("examples").join(file),
        }
    }
}

impl LinkTimeOptimization {
    /// Returns the name of the target directory of such guests.
    fn folder(self) -> &'static str {
        match self {
            Self::Full => "guests",
            Self::Off => "guests-without-lto",
        }
    }

    /// Returns the choice for guests of tests: only a release build measures them.
    fn of_outer_build() -> Self {
        if env::var_os("PROFILE").is_some_and(|profile| profile == "debug") {
            Self::Off
        } else {
            Self::Full
        }
    }
}

impl Run {
    fn of_package(name: &str, lto: LinkTimeOptimization) -> Self {
        Self {
            names: words(&[name]),
            arguments: words(&["rustc", "--package", name, "--lib", "--crate-type", "cdylib"]),
            lto,
        }
    }

    fn of_examples(
        package: &str,
        names: &[&str],
        features: &[&str],
        lto: LinkTimeOptimization,
    ) -> Self {
        let each = |flag: &str, names: &[&str]| {
            names.iter().flat_map(|name| words(&[flag, name])).collect()
        };
        let package = words(&["build", "--package", package]);
        Self {
            names: words(names),
            arguments: [package, each("--example", names), each("--features", features)].concat(),
            lto,
        }
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Returns the cargo command of `run`. It inherits stderr of the build script, which cargo shows if
/// the script fails.
fn nested_cargo(
    toolchain: &Toolchain,
    target: &Target,
    workspace: &Path,
    folder: &Path,
    run: &Run,
) -> Command {
    let mut flags = target.flags();
    flags.push(format!("-Clink-arg=-zstack-size={STACK}"));
    let mut cargo = command::scrubbed(&toolchain.cargo);
    cargo
        .current_dir(workspace)
        .args(&run.arguments)
        .args(["--profile", PROFILE, "--target", TARGET, "--target-dir"])
        .arg(folder);
    if workspace.join("Cargo.lock").is_file() {
        cargo.arg("--locked");
    }
    if let LinkTimeOptimization::Off = run.lto {
        cargo.env("CARGO_PROFILE_GUEST_LTO", "off");
    }
    // Encoded, because a path may contain a space. With `--target` they do not affect macros and
    // build scripts.
    cargo
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"))
        .env("RUSTC", &toolchain.rustc)
        .stdout(Stdio::null());
    cargo
}

fn built(guests: &Selection<'_>, folder: &Path) -> Result<Vec<Built>, Error> {
    let one = |name: String| {
        let path = folder.join(guests.file(&name));
        if path.is_file() { Ok(Built { name, path }) } else { Err(Error::Missing { path }) }
    };
    guests.names().into_iter().map(one).collect()
}
