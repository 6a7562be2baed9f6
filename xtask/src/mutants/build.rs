//! Builds the copy of the sources with all faults, except those that do not compile.

use super::areas::AREAS;
use super::fault::Fault;
use super::weave::{self, Blame};
use crate::place::Place;
use anyhow::{Context as _, ensure};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The module that switches the faults, and the root files of the crates that get it.
const SWITCH: &str = include_str!("switch.rs");
const CRATES: [&str; 4] = [
    "host/palisade/src/lib.rs",
    "host/mcp/src/lib.rs",
    "host/schema/src/lib.rs",
    "host/wasi-fs/src/lib.rs",
];
/// The crates whose unit tests are run.
const UNITS: [&str; 5] =
    ["palisade", "palisade_formats", "palisade_mcp", "palisade_schema", "palisade_wasi_fs"];

/// The reason why a fault is excluded from the build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Excluded {
    /// The fault does not compile.
    Unviable,
    /// The fault cannot be switched at run time: it is in code that is evaluated at compile time,
    /// or the switching code does not compile there.
    Unwoven,
}

/// A test executable.
#[derive(Debug, Clone)]
pub(super) struct Binary {
    pub(super) name: String,
    pub(super) path: PathBuf,
    /// The working directory of its tests.
    pub(super) directory: PathBuf,
}

/// The result of a build.
pub(super) struct Built {
    pub(super) binaries: Vec<Binary>,
    /// The suites' cache of compiled code.
    pub(super) cache: PathBuf,
    pub(super) excluded: BTreeMap<usize, Excluded>,
}

/// The messages of one run of cargo.
#[derive(Default)]
struct CargoOutput {
    binaries: Vec<Binary>,
    cache: Option<PathBuf>,
    /// The errors, each with its text and its places: file and byte.
    errors: Vec<(String, Vec<(String, usize)>)>,
}

/// Weaves the faults into a copy of the sources, and builds it.
pub(super) struct Builder<'a> {
    pub(super) place: &'a Place,
    /// The copy of the sources.
    pub(super) tree: PathBuf,
    pub(super) target: PathBuf,
    /// The file that keeps the excluded faults from one run to the next, by name.
    pub(super) known: PathBuf,
}

impl Builder<'_> {
    /// Weaves and builds, and excludes the faults that do not compile, until the build succeeds.
    pub(super) fn build(&self, faults: &[Fault]) -> anyhow::Result<Built> {
        let mut excluded = self.known(faults);
        loop {
            let woven = self.weave(faults, &mut excluded)?;
            let output = self.cargo()?;
            if output.errors.is_empty() {
                let cache = output.cache.context("cargo names no directory of the guests")?;
                return Ok(Built { binaries: output.binaries, cache, excluded });
            }
            let before = excluded.len();
            output.errors.iter().try_for_each(|error| exclude(error, &woven, &mut excluded))?;
            println!("{} faults do not compile", excluded.len());
            ensure!(
                excluded.len() > before,
                "the build fails although all its faults are excluded"
            );
            self.keep(faults, &excluded)?;
        }
    }

    /// Writes the copy, and returns the woven files.
    fn weave(
        &self,
        faults: &[Fault],
        excluded: &mut BTreeMap<usize, Excluded>,
    ) -> anyhow::Result<BTreeMap<String, String>> {
        let mut files: BTreeMap<&str, Vec<&Fault>> = CRATES.map(|file| (file, Vec::new())).into();
        for fault in faults {
            let of_file = files.entry(&fault.file).or_default();
            of_file.extend((!excluded.contains_key(&fault.number)).then_some(fault));
        }
        self.place
            .copy_sources_but(&self.tree, &files.keys().map(PathBuf::from).collect::<Vec<_>>())?;
        let mut all = BTreeMap::new();
        for (file, faults) in files {
            let source = fs::read_to_string(self.place.root.join(file))
                .with_context(|| format!("reading {file}"))?;
            let woven =
                weave::weave(&source, &faults).with_context(|| format!("weaving {file}"))?;
            let left = faults.iter().filter(|fault| !woven.faults.contains(&fault.number));
            excluded.extend(left.map(|fault| (fault.number, Excluded::Unwoven)));
            excluded.extend(woven.unviable.iter().map(|number| (*number, Excluded::Unviable)));
            let ending = if CRATES.contains(&file) {
                format!("\nmod switch {{\n{SWITCH}}}\npub(crate) use switch::fault;\n")
            } else {
                String::new()
            };
            let (text, copy) = (woven.text + &ending, self.tree.join(file));
            if fs::read_to_string(&copy).ok().as_ref() != Some(&text) {
                fs::write(&copy, &text).with_context(|| format!("writing {}", copy.display()))?;
            }
            all.insert(file.to_owned(), text);
        }
        Ok(all)
    }

    fn cargo(&self) -> anyhow::Result<CargoOutput> {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.args(["test", "--no-run", "--workspace", "--message-format=json", "--lib"]);
        let suites: BTreeSet<&str> = AREAS.iter().flat_map(|area| area.suites).copied().collect();
        command.args(suites.iter().map(|suite| format!("--test={suite}")));
        command
            .current_dir(&self.tree)
            .env("CARGO_TARGET_DIR", &self.target)
            .stderr(Stdio::inherit());
        let out = command.output().context("running cargo")?;
        let mut output = CargoOutput::default();
        for line in out.stdout.split(|byte| *byte == b'\n') {
            if let Ok(message) = serde_json::from_slice::<Value>(line) {
                output.read(&message, &suites);
            }
        }
        ensure!(
            out.status.success() || !output.errors.is_empty(),
            "cargo ended with {}",
            out.status
        );
        Ok(output)
    }

    fn known(&self, faults: &[Fault]) -> BTreeMap<usize, Excluded> {
        let text = fs::read_to_string(&self.known).unwrap_or_default();
        let known: BTreeSet<&str> = text.lines().collect();
        let line = |excluded, fault: &Fault| {
            known.contains(line(excluded, fault).as_str()).then_some((fault.number, excluded))
        };
        let both = [Excluded::Unviable, Excluded::Unwoven];
        both.iter()
            .flat_map(|excluded| faults.iter().filter_map(|fault| line(*excluded, fault)))
            .collect()
    }

    fn keep(&self, faults: &[Fault], excluded: &BTreeMap<usize, Excluded>) -> anyhow::Result<()> {
        let lines =
            faults.iter().filter_map(|fault| Some(line(*excluded.get(&fault.number)?, fault)));
        fs::write(&self.known, lines.collect::<Vec<_>>().join("\n"))
            .context("storing the excluded faults")
    }
}

fn line(excluded: Excluded, fault: &Fault) -> String {
    format!("{excluded:?} {}", fault.name)
}

/// Excludes the faults that cause an error.
fn exclude(
    (words, places): &(String, Vec<(String, usize)>),
    woven: &BTreeMap<String, String>,
    excluded: &mut BTreeMap<usize, Excluded>,
) -> anyhow::Result<()> {
    let blame = places.iter().find_map(|(file, at)| weave::blame(woven.get(file)?, *at));
    match blame.with_context(|| format!("an error that no fault causes:\n{words}"))? {
        Blame::Fault(number) => {
            excluded.insert(number, Excluded::Unviable);
        }
        Blame::Form(numbers) => {
            println!("the faults {numbers:?} cannot be switched:\n{words}");
            excluded.extend(numbers.into_iter().map(|number| (number, Excluded::Unwoven)));
        }
    }
    Ok(())
}

impl CargoOutput {
    fn read(&mut self, message: &Value, suites: &BTreeSet<&str>) {
        let text = |path: &str| message.pointer(path).and_then(Value::as_str);
        match text("/reason") {
            Some("compiler-message") if text("/message/level") == Some("error") => {
                // An error without a place is the summary of the others.
                let places = message.get("message").map(places).unwrap_or_default();
                let words = text("/message/rendered").unwrap_or_default().to_owned();
                self.errors.extend((!places.is_empty()).then_some((words, places)));
            }
            Some("compiler-artifact") => self.binaries.extend(binary(message, suites)),
            Some("build-script-executed")
                if text("/package_id").is_some_and(|id| id.contains("palisade-tests")) =>
            {
                self.cache = text("/out_dir").map(|out| Path::new(out).join("cache"));
            }
            _ => {}
        }
    }
}

/// Returns the places of an error, its primary place first.
fn places(message: &Value) -> Vec<(String, usize)> {
    let list =
        |of: &Value, key: &str| of.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let mut spans = list(message, "spans");
    spans.sort_by_key(|span| span.get("is_primary") != Some(&Value::Bool(true)));
    let own = spans.iter().filter_map(|span| {
        Some((
            span.get("file_name")?.as_str()?.to_owned(),
            usize::try_from(span.get("byte_start")?.as_u64()?).ok()?,
        ))
    });
    let children = list(message, "children");
    own.chain(children.iter().flat_map(places)).collect()
}

fn binary(message: &Value, suites: &BTreeSet<&str>) -> Option<Binary> {
    let name = message.pointer("/target/name")?.as_str()?;
    let kind = message.pointer("/target/kind/0")?.as_str()?;
    let path = PathBuf::from(message.get("executable")?.as_str()?);
    let manifest = Path::new(message.get("manifest_path")?.as_str()?);
    let is_wanted =
        if kind == "test" { suites.contains(name) } else { UNITS.contains(&name) && kind == "lib" };
    is_wanted.then_some(Binary {
        name: name.to_owned(),
        path,
        directory: manifest.parent()?.to_owned(),
    })
}
