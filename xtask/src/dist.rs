//! Makes the files of a release, and tries each of them in a place of its own: the program for
//! people without a compiler, and the SDKs for authors.
//!
//! The same sources make the same bytes. A file whose tool is missing is skipped with a message, or
//! refused with `--strict`.

mod checksums;
mod contents;
mod elf;
mod files;
mod inventory;
mod licences;
mod names;
mod npm;
mod pack;
mod platform;
mod sbom;
mod sdks;
mod trial;
mod wheel;
#[cfg(test)]
mod workflow;

use crate::documents::Profile;
use crate::packages::{self, Verification};
use crate::place::Place;
use anyhow::{Context as _, bail, ensure};
pub(crate) use contents::install_sdks;
use contents::{Built, Contents};
use inventory::Inventory;
use pack::Effort;
use palisade_wasip2::command::scrubbed;
use platform::Platform;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The program that writes the manual pages.
const MANUAL: &str = "xtask-man";

/// The directory of the debug program without symbols, below the target directory.
const STRIPPED: &str = "dist-stripped";

/// The options of the task.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Options {
    profile: Profile,
    extent: Extent,
    gaps: Gaps,
}

/// The part of a release that is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// All of it.
    Everything,
    /// The packages of the program, which differ between systems.
    Program,
}

/// The fate of a file that cannot be made or tried here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gaps {
    /// It is skipped with a message.
    Skipped,
    /// The task fails.
    Refused,
}

impl Options {
    /// Reads the options from the command line.
    pub(crate) fn from_arguments() -> anyhow::Result<Self> {
        let mut options =
            Self { profile: Profile::Release, extent: Extent::Everything, gaps: Gaps::Skipped };
        for word in std::env::args().skip(2) {
            match word.as_str() {
                "--debug" => options.profile = Profile::Debug,
                "--program" => options.extent = Extent::Program,
                "--strict" => options.gaps = Gaps::Refused,
                _ => bail!("`{word}` is no option: want --debug, --program or --strict"),
            }
        }
        Ok(options)
    }
}

/// A release in the making.
struct Release<'a> {
    place: &'a Place,
    options: Options,
    platform: Platform,
    directory: PathBuf,
}

/// Makes all files of a release and tries them.
pub(crate) fn run(place: &Place, options: Options) -> anyhow::Result<()> {
    let release = Release::begin(place, options)?;
    let built = release.built()?;
    let inventory = Inventory::read(place, release.platform.triple)?;
    let make = || release.programs(&Contents::collect(place, &built, &inventory)?, &inventory);
    let packages = make()?;
    ensure!(packages == make()?, "the same sources made other bytes");
    for (name, bytes) in &packages {
        release.write(name, bytes)?;
    }
    if options.extent == Extent::Everything {
        release.sdks()?;
    }
    checksums::write(&release.directory)?;
    trial::run(&release)?;
    println!("made and tried: {}", release.directory.display());
    Ok(())
}

impl<'a> Release<'a> {
    /// Empties the directory of the release.
    fn begin(place: &'a Place, options: Options) -> anyhow::Result<Self> {
        let directory = place.target.join(match options.profile {
            Profile::Release => "dist",
            Profile::Debug => "dist-debug",
        });
        if directory.exists() {
            fs::remove_dir_all(&directory)
                .with_context(|| format!("emptying {}", directory.display()))?;
        }
        fs::create_dir_all(&directory)
            .with_context(|| format!("creating {}", directory.display()))?;
        Ok(Self { place, options, platform: Platform::here()?, directory })
    }

    fn effort(&self) -> Effort {
        match self.options.profile {
            Profile::Release => Effort::High,
            Profile::Debug => Effort::Low,
        }
    }

    /// Builds the programs, except those of the debug build.
    fn built(&self) -> anyhow::Result<Built> {
        let program = self.options.profile.program(self.place);
        let manual = program.with_file_name(MANUAL);
        if self.options.profile == Profile::Release {
            let mut cargo = scrubbed(env!("CARGO"));
            cargo.args(["build", "--release", "--locked", "--package", names::PACKAGE]);
            cargo.args(["--package", MANUAL, "--target-dir"]).arg(&self.place.target);
            let status = cargo.current_dir(&self.place.root).status().context("running cargo")?;
            ensure!(status.success(), "the program does not build");
        }
        for file in [&program, &manual] {
            ensure!(
                file.is_file(),
                "{} is missing; make it with `cargo build --workspace --bins`",
                file.display()
            );
        }
        let program = match self.options.profile {
            Profile::Release => program,
            Profile::Debug => self.without_symbols(program)?,
        };
        Ok(Built { program, manual })
    }

    /// Returns a copy of the debug program without symbols, which are half of it; the program
    /// itself if this machine has no `strip`.
    fn without_symbols(&self, program: PathBuf) -> anyhow::Result<PathBuf> {
        let directory = self.place.target.join(STRIPPED);
        fs::create_dir_all(&directory)?;
        let copy = directory.join(names::PROGRAM);
        let status = scrubbed("strip").arg("-o").arg(&copy).arg(&program).status();
        Ok(if status.is_ok_and(|status| status.success()) { copy } else { program })
    }

    /// Makes the packages of the program and its bill of materials, by the names of their files.
    fn programs(
        &self,
        contents: &Contents,
        inventory: &Inventory,
    ) -> anyhow::Result<BTreeMap<String, Vec<u8>>> {
        let (platform, effort) = (self.platform, self.effort());
        let archive = names::archive(platform);
        let mut unpacked = contents.tree.clone();
        unpacked.add("", &contents.documents);
        let program = contents.tree.get(contents::PROGRAM).context("there is no program")?;
        let system = platform.wheel_tag(&program.bytes)?;
        let (_, component) = inventory.program()?;
        let summary = component.description.as_deref().unwrap_or_default();
        let npm_program = names::npm_file(&names::npm_program(platform));
        Ok(BTreeMap::from([
            (format!("{archive}.tar.gz"), pack::tar_gz(&unpacked, &archive, effort)?),
            (format!("{archive}.cdx.json"), sbom::document(inventory)?),
            (wheel::file(&system), wheel::pack(contents, summary, &system, effort)?),
            (npm_program, npm::program(contents, platform, effort)?),
            (names::npm_file(names::PACKAGE), npm::launcher(contents, summary, effort)?),
        ]))
    }

    fn write(&self, name: &str, bytes: &[u8]) -> anyhow::Result<()> {
        let path = self.directory.join(name);
        fs::write(&path, bytes).with_context(|| format!("writing {}", path.display()))
    }

    /// Makes the packages of the SDKs and of the published crates.
    fn sdks(&self) -> anyhow::Result<()> {
        let (place, directory) = (self.place, &self.directory);
        for (subject, skipped) in [
            ("the wheel of the SDK", sdks::python_wheel(place, directory)?),
            ("the npm package of the SDK", sdks::npm_package(place, directory)?),
        ] {
            skipped.map_or(Ok(()), |reason| self.skip(subject, &reason))?;
        }
        self.write(&format!("{}.tar.gz", names::c_sdk()), &sdks::c_archive(place, self.effort())?)?;
        let verification = match self.options.profile {
            Profile::Release => Verification::Built,
            Profile::Debug => Verification::Skipped,
        };
        for package in packages::crates(place, verification)? {
            let name = package.file_name().context("a crate without a name")?;
            fs::copy(&package, directory.join(name))
                .with_context(|| format!("copying {}", package.display()))?;
        }
        Ok(())
    }

    /// Reports that something was not made or not tried.
    fn skip(&self, subject: &str, reason: &str) -> anyhow::Result<()> {
        ensure!(self.options.gaps == Gaps::Skipped, "{subject} is missing: {reason}");
        println!("skipped: {subject}: {reason}");
        Ok(())
    }

    /// Returns the path of a file of the release, if it was made.
    fn file(&self, name: &str) -> Option<PathBuf> {
        Some(self.directory.join(name)).filter(|path: &PathBuf| path.is_file())
    }
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("reading {}", path.display()))
}
