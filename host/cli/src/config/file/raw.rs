//! The form of `palisade.toml`, before its values are checked.

use super::raw_plugins::RawPlugins;
use crate::config::adapted::RawAdapted;
use crate::config::paths::RawPaths;
use crate::config::servers::RawMcp;
use crate::config::time::Written;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawFile {
    pub(super) confirm: RawConfirm,
    pub(super) trusted: Vec<RawTrusted>,
    pub(super) adapt: Vec<RawAdapted>,
    pub(super) limits: RawLimits,
    pub(super) plugins: RawPlugins,
    pub(super) tools: RawTools,
    pub(super) shell: RawShell,
    pub(super) workspace: RawWorkspace,
    pub(super) journal: RawJournal,
    pub(super) network: RawNetwork,
    pub(super) paths: RawPaths,
    pub(super) mcp: RawMcp,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawConfirm {
    pub(super) none: Option<String>,
    pub(super) read: Option<String>,
    pub(super) write: Option<String>,
    pub(super) execute: Option<String>,
    pub(super) network: Option<String>,
    pub(super) timeout: Option<Written>,
    pub(super) tools: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawTrusted {
    pub(super) workspace: String,
    pub(super) none: Option<String>,
    pub(super) read: Option<String>,
    pub(super) write: Option<String>,
    pub(super) execute: Option<String>,
    pub(super) network: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawLimits {
    pub(super) memory: Option<String>,
    pub(super) timeout: Option<Written>,
    pub(super) compile_time: Option<Written>,
    pub(super) compile_memory: Option<String>,
    pub(super) total_memory: Option<String>,
    pub(super) concurrency: Option<u32>,
    pub(super) tool_concurrency: BTreeMap<String, u32>,
    pub(super) tool_timeout: BTreeMap<String, Written>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawShell {
    pub(super) unconfined: Option<bool>,
    pub(super) network: Option<bool>,
    pub(super) processes: Option<u64>,
    pub(super) memory: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawWorkspace {
    pub(super) may_hang: Option<bool>,
    pub(super) hard_links: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawTools {
    pub(super) hide: BTreeSet<String>,
    pub(super) only: Option<BTreeSet<String>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(in crate::config) struct RawJournal {
    pub(in crate::config) file: Option<String>,
    pub(in crate::config) inputs: Option<String>,
    pub(in crate::config) max_age: Option<Written>,
    pub(in crate::config) max_size: Option<String>,
    pub(in crate::config) calls: Option<bool>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(in crate::config) struct RawNetwork {
    pub(in crate::config) name_server: Option<String>,
}
