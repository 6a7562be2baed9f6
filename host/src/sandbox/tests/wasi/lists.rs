//! The lists: what each program gets, and what comes of it.

use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::Path;

/// Which list a run is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum List {
    /// It does what it does under wasmtime's own harness.
    Pass,
    /// It wants what no plugin gets.
    Denied,
    /// It wants more of something than a plugin gets.
    Limited,
    /// It is in no list, which is wrong.
    None,
}

impl fmt::Display for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Pass => "pass",
            Self::Denied => "denied",
            Self::Limited => "limited",
            Self::None => "no list",
        })
    }
}

/// The file. Each key is the name of a program, or that with `/` and a word where one program has several runs.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Lists {
    pass: BTreeMap<String, Run>,
    denied: BTreeMap<String, Run>,
    limited: BTreeMap<String, Run>,
}

/// One run of a program.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Run {
    /// Why it does not pass, in a sentence.
    pub(super) reason: Option<String>,
    /// It fails, and these words occur in what is said of it.
    pub(super) fails: Option<String>,
    /// The arguments after its name: the workspace, unless told otherwise.
    pub(super) args: Option<Vec<String>>,
    /// The environment: what programs of wasmtime's are told on Unix, unless told otherwise.
    pub(super) env: Option<BTreeMap<String, String>>,
    /// So many variables of a kibibyte each, in addition.
    pub(super) more_env: usize,
    /// Files that are there before, with their text. A name that ends with `/` is a directory.
    pub(super) files: BTreeMap<String, String>,
    /// Files of zeroes that are there before, with their size in bytes.
    pub(super) zeroes: BTreeMap<String, usize>,
    /// Files that were changed so many seconds after 1970, or before.
    pub(super) changed: BTreeMap<String, i64>,
    /// It has no `main` of its own: the functions of `p2_api_reactor` are called.
    pub(super) reactor: bool,
    /// The name of the workspace, where that is not `/`.
    pub(super) preopen: Option<String>,
    /// The tool may only read.
    pub(super) read_only: bool,
    /// Both clocks show what `p2_api_time` expects.
    pub(super) set_clocks: bool,
    /// The time of the call in seconds, less than what a tool gets.
    pub(super) seconds: Option<u64>,
    /// What a host call may copy out of the program in bytes, less than what a plugin gets.
    pub(super) fuel: Option<usize>,
    /// What it prints, to the last byte.
    pub(super) prints: Option<String>,
    /// How much it prints, in bytes.
    pub(super) prints_bytes: Option<usize>,
    /// Files as they are afterwards.
    pub(super) leaves: BTreeMap<String, String>,
}

impl Lists {
    pub(super) fn read() -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/wasi/expected.toml");
        toml::from_str(&fs::read_to_string(&path).unwrap()).unwrap()
    }

    /// Every run with its list and its key.
    pub(super) fn all(&self) -> impl Iterator<Item = (List, &str, &Run)> {
        let lists = [(List::Pass, &self.pass), (List::Denied, &self.denied), (List::Limited, &self.limited)];
        lists.into_iter().flat_map(|(list, runs)| runs.iter().map(move |(key, run)| (list, key.as_str(), run)))
    }

    /// The programs that are in a list.
    pub(super) fn programs(&self) -> BTreeSet<&str> {
        self.all().map(|(_, key, _)| program(key)).collect()
    }

    /// The runs of one program.
    pub(super) fn runs_of(&self, name: &str) -> Vec<(List, &str, &Run)> {
        self.all().filter(|(_, key, _)| program(key) == name).collect()
    }
}

fn program(key: &str) -> &str {
    key.split('/').next().unwrap_or(key)
}
