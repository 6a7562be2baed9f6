//! The lists: the setup and the expected outcome of each program.

use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::Path;

/// The list that has a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum List {
    /// The program does the same as under wasmtime's own harness.
    Pass,
    /// The program needs something that no plugin gets.
    Denied,
    /// The program needs more of something than a plugin gets.
    Limited,
    /// The program is in no list, which is an error.
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

/// The file of lists. Each key is the name of a program, followed by `/` and a word where one
/// program has several runs.
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
    /// The reason why the run does not pass, in a sentence.
    pub(super) reason: Option<String>,
    /// Text of the expected error. The run must fail if this is set.
    pub(super) fails: Option<String>,
    /// The arguments after the program's name. The default is the workspace.
    pub(super) args: Option<Vec<String>>,
    /// The environment. The default is what wasmtime's harness sets on Unix.
    pub(super) env: Option<BTreeMap<String, String>>,
    /// The number of additional variables, of a kibibyte each.
    pub(super) more_env: usize,
    /// Files created before the run, with their text. A name that ends with `/` is a directory.
    pub(super) files: BTreeMap<String, String>,
    /// Files of zeros created before the run, with their size in bytes.
    pub(super) zeroes: BTreeMap<String, usize>,
    /// Modification times of files, in seconds since 1970. They may be negative.
    pub(super) changed: BTreeMap<String, i64>,
    /// The program has no `main`: the functions of `p2_api_reactor` are called.
    pub(super) reactor: bool,
    /// The name of the workspace, if it is not `/`.
    pub(super) preopen: Option<String>,
    /// The tool has read access only.
    pub(super) read_only: bool,
    /// Both clocks show the times that `p2_api_time` expects.
    pub(super) set_clocks: bool,
    /// The timeout of the call in seconds, below that of a tool.
    pub(super) seconds: Option<u64>,
    /// The size of the data that a host call may copy out of the program in bytes, below that of a
    /// plugin.
    pub(super) fuel: Option<usize>,
    /// The exact standard output.
    pub(super) prints: Option<String>,
    /// The length of the standard output, in bytes.
    pub(super) prints_bytes: Option<usize>,
    /// Files expected after the run, with their text.
    pub(super) leaves: BTreeMap<String, String>,
}

impl Lists {
    pub(super) fn read() -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/wasi/expected.toml");
        toml::from_str(&fs::read_to_string(&path).unwrap()).unwrap()
    }

    /// Returns every run, with its list and its key.
    pub(super) fn all(&self) -> impl Iterator<Item = (List, &str, &Run)> {
        let lists = [
            (List::Pass, &self.pass),
            (List::Denied, &self.denied),
            (List::Limited, &self.limited),
        ];
        lists
            .into_iter()
            .flat_map(|(list, runs)| runs.iter().map(move |(key, run)| (list, key.as_str(), run)))
    }

    /// Returns the names of the programs that are in a list.
    pub(super) fn programs(&self) -> BTreeSet<&str> {
        self.all().map(|(_, key, _)| program(key)).collect()
    }

    /// Returns the runs of one program.
    pub(super) fn runs_of(&self, name: &str) -> Vec<(List, &str, &Run)> {
        self.all().filter(|(_, key, _)| program(key) == name).collect()
    }
}

fn program(key: &str) -> &str {
    key.split('/').next().unwrap_or(key)
}
