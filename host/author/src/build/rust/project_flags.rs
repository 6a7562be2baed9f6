//! The compiler flags of cargo's configuration that are for all targets (`build.rustflags`). Cargo
//! ignores them as soon as there are flags for the target.

use crate::bounded;
use palisade_wasip2::TARGET;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// Maximum size of a configuration file, in bytes.
const LARGEST: u64 = 1 << 20;

/// Returns the flags for all targets, in the order in which cargo joins them, and none if the
/// configuration has flags for the target of plugins as well. Cargo reports a file that is not
/// valid.
pub(super) fn for_all_targets(
    directory: &Path,
    variable: impl Fn(&str) -> Option<String>,
) -> Vec<String> {
    let tables: Vec<Table> = files(directory, &variable).iter().filter_map(|it| read(it)).collect();
    let has_own = |table: &Table| at(table, &["target", TARGET, "rustflags"]).is_some();
    if tables.iter().any(has_own) {
        return Vec::new();
    }
    let found = tables.iter().filter_map(|table| at(table, &["build", "rustflags"]));
    let mut flags: Vec<String> = found.flat_map(listed).collect();
    let more = variable("CARGO_BUILD_RUSTFLAGS").unwrap_or_default();
    flags.extend(more.split_whitespace().map(str::to_owned));
    flags
}

/// Returns the configuration files for a project, the one that counts least first.
fn files(directory: &Path, variable: &impl Fn(&str) -> Option<String>) -> Vec<PathBuf> {
    let home = variable("HOME").map(|home| Path::new(&home).join(".cargo"));
    let home = variable("CARGO_HOME").map(PathBuf::from).or(home);
    let project = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    let mut folders: Vec<PathBuf> = project.ancestors().map(|it| it.join(".cargo")).collect();
    folders.extend(home.filter(|home| !folders.contains(home)));
    folders.reverse();
    folders.iter().flat_map(|it| ["config.toml", "config"].map(|name| it.join(name))).collect()
}

fn read(file: &Path) -> Option<Table> {
    bounded::read_text(file, LARGEST).ok()?.parse().ok()
}

fn at<'t>(table: &'t Table, path: &[&str]) -> Option<&'t Value> {
    let (last, before) = path.split_last()?;
    before.iter().try_fold(table, |table, name| table.get(*name)?.as_table())?.get(*last)
}

/// Returns the flags of a value, which is a list or a text.
fn listed(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => text.split_whitespace().map(str::to_owned).collect(),
        Value::Array(list) => list.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot prepare its directory has failed")]
    use super::*;
    use std::fs;

    #[test]
    fn flags_for_all_targets_are_kept_unless_the_target_has_its_own() {
        let root = tempfile::tempdir().unwrap();
        let (home, project) = (root.path().join("home"), root.path().join("work/project"));
        let write = |folder: &Path, text: &str| {
            fs::create_dir_all(folder.join(".cargo")).unwrap();
            fs::write(folder.join(".cargo/config.toml"), text).unwrap();
        };
        let flags = |more: Option<&str>| {
            for_all_targets(&project, |name| match name {
                "HOME" => Some(home.to_str().unwrap().to_owned()),
                "CARGO_BUILD_RUSTFLAGS" => more.map(str::to_owned),
                _ => None,
            })
        };
        fs::create_dir_all(&project).unwrap();
        assert!(flags(None).is_empty());
        write(&home, "[build]\nrustflags = \"--cfg  home\"");
        write(&project, "[build]\nrustflags = [\"--cfg=own\"]");
        assert_eq!(flags(Some("-Cx")), ["--cfg", "home", "--cfg=own", "-Cx"]);
        write(root.path().join("work").as_path(), &format!("[target.{TARGET}]\nrustflags = \"\""));
        assert!(flags(Some("-Cx")).is_empty());
    }
}
