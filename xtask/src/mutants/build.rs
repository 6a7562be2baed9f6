//! One build of the copy with all its faults, without those that do not compile.

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

/// The module that the crates with faults get, and the files that it is added to.
const SWITCH: &str = include_str!("switch.rs");
const CRATES: [&str; 4] = [
    "host/palisade/src/lib.rs",
    "host/mcp/src/lib.rs",
    "host/schema/src/lib.rs",
    "host/wasi-fs/src/lib.rs",
];
/// Whose unit tests are run.
const UNITS: [&str; 4] = ["palisade", "palisade_mcp", "palisade_schema", "palisade_wasi_fs"];

/// Why a fault is in no build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lost {
    /// It does not compile.
    Unviable,
    /// No form takes it: it is in what is worked out while building, or its form does not compile.
    Unwoven,
}

/// A program of tests.
#[derive(Debug, Clone)]
pub(super) struct Binary {
    pub(super) name: String,
    pub(super) path: PathBuf,
    /// Where it is run.
    pub(super) directory: PathBuf,
}

/// What a build has come to.
pub(super) struct Built {
    pub(super) binaries: Vec<Binary>,
    /// Where the suites keep compiled code.
    pub(super) cache: PathBuf,
    pub(super) lost: BTreeMap<usize, Lost>,
}

/// What cargo said of one build.
#[derive(Default)]
struct Said {
    binaries: Vec<Binary>,
    cache: Option<PathBuf>,
    /// Each with its words, and the places it names: file and byte.
    errors: Vec<(String, Vec<(String, usize)>)>,
}

/// Where faults are woven, and built.
pub(super) struct Loom<'a> {
    pub(super) place: &'a Place,
    /// The copy of the sources.
    pub(super) tree: PathBuf,
    pub(super) target: PathBuf,
    /// Keeps what does not compile from one run to the next, by name.
    pub(super) known: PathBuf,
}

impl Loom<'_> {
    /// Weaves and builds until it compiles.
    pub(super) fn build(&self, faults: &[Fault]) -> anyhow::Result<Built> {
        let mut lost = self.known(faults);
        loop {
            let woven = self.weave(faults, &mut lost)?;
            let said = self.cargo()?;
            if said.errors.is_empty() {
                let cache = said.cache.context("cargo names no directory of the guests")?;
                return Ok(Built { binaries: said.binaries, cache, lost });
            }
            let before = lost.len();
            said.errors.iter().try_for_each(|error| blamed(error, &woven, &mut lost))?;
            println!("{} faults do not compile", lost.len());
            ensure!(lost.len() > before, "it does not build, whatever is left out");
            self.keep(faults, &lost)?;
        }
    }

    /// Writes the copy; returns the woven files.
    fn weave(
        &self,
        faults: &[Fault],
        lost: &mut BTreeMap<usize, Lost>,
    ) -> anyhow::Result<BTreeMap<String, String>> {
        let mut files: BTreeMap<&str, Vec<&Fault>> = CRATES.map(|file| (file, Vec::new())).into();
        for fault in faults {
            let of_file = files.entry(&fault.file).or_default();
            of_file.extend((!lost.contains_key(&fault.number)).then_some(fault));
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
            lost.extend(left.map(|fault| (fault.number, Lost::Unwoven)));
            lost.extend(woven.unviable.iter().map(|number| (*number, Lost::Unviable)));
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

    fn cargo(&self) -> anyhow::Result<Said> {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.args(["test", "--no-run", "--workspace", "--message-format=json", "--lib"]);
        let suites: BTreeSet<&str> = AREAS.iter().flat_map(|area| area.suites).copied().collect();
        command.args(suites.iter().map(|suite| format!("--test={suite}")));
        command
            .current_dir(&self.tree)
            .env("CARGO_TARGET_DIR", &self.target)
            .stderr(Stdio::inherit());
        let out = command.output().context("running cargo")?;
        let mut said = Said::default();
        for line in out.stdout.split(|byte| *byte == b'\n') {
            if let Ok(message) = serde_json::from_slice::<Value>(line) {
                said.hear(&message, &suites);
            }
        }
        ensure!(out.status.success() || !said.errors.is_empty(), "cargo ended with {}", out.status);
        Ok(said)
    }

    fn known(&self, faults: &[Fault]) -> BTreeMap<usize, Lost> {
        let text = fs::read_to_string(&self.known).unwrap_or_default();
        let known: BTreeSet<&str> = text.lines().collect();
        let line = |lost, fault: &Fault| {
            known.contains(line(lost, fault).as_str()).then_some((fault.number, lost))
        };
        let both = [Lost::Unviable, Lost::Unwoven];
        both.iter().flat_map(|lost| faults.iter().filter_map(|fault| line(*lost, fault))).collect()
    }

    fn keep(&self, faults: &[Fault], lost: &BTreeMap<usize, Lost>) -> anyhow::Result<()> {
        let lines = faults.iter().filter_map(|fault| Some(line(*lost.get(&fault.number)?, fault)));
        fs::write(&self.known, lines.collect::<Vec<_>>().join("\n"))
            .context("keeping what does not compile")
    }
}

fn line(lost: Lost, fault: &Fault) -> String {
    format!("{lost:?} {}", fault.name)
}

/// Notes what an error is about.
fn blamed(
    (words, places): &(String, Vec<(String, usize)>),
    woven: &BTreeMap<String, String>,
    lost: &mut BTreeMap<usize, Lost>,
) -> anyhow::Result<()> {
    let blame = places.iter().find_map(|(file, at)| weave::blame(woven.get(file)?, *at));
    match blame.with_context(|| format!("an error that is about no fault:\n{words}"))? {
        Blame::Fault(number) => {
            lost.insert(number, Lost::Unviable);
        }
        Blame::Form(numbers) => {
            println!("no form for the faults {numbers:?}:\n{words}");
            lost.extend(numbers.into_iter().map(|number| (number, Lost::Unwoven)));
        }
    }
    Ok(())
}

impl Said {
    fn hear(&mut self, message: &Value, suites: &BTreeSet<&str>) {
        let text = |path: &str| message.pointer(path).and_then(Value::as_str);
        match text("/reason") {
            Some("compiler-message") if text("/message/level") == Some("error") => {
                // The last one only counts the others.
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

/// The places of an error: the one it is at first, then those that it names as well.
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
