//! The names of the shipped tools, which nobody else gets where somebody has switched those tools off who may only tighten.

use super::Shipped;
use crate::tool::Definition;

/// The tools of the shipped plugins, and `shell`.
const NAMES: [&str; 9] = [
    "calculate",
    "delete_file",
    "find_files",
    "list_dir",
    "patch_file",
    "read_file",
    "search_files",
    "shell",
    "write_file",
];

/// Refuses a plugin from a file that would take one of the names: the user's rules for it were made for another tool.
pub(super) fn check(shipped: Shipped, tools: &[Definition]) -> Result<(), String> {
    if shipped != Shipped::Reserved {
        return Ok(());
    }
    let is_reserved = |name: &&str| NAMES.contains(name);
    match tools.iter().map(|tool| tool.name().as_str()).find(is_reserved) {
        None => Ok(()),
        Some(name) => Err(format!(
            "the name `{name}` stays with the shipped tool, which the project's `plugins.builtin = false` has switched off; use another name, such \
             as `{name}_2`, or give the name away yourself, with --no-builtin or in your own file"
        )),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot build its host has failed")]
    use super::*;
    use crate::host::{CacheMode, Host};

    #[test]
    fn every_shipped_tool_is_named() {
        let host = Host::builder().cache(CacheMode::Off).build().unwrap();
        let mut names = host.registry().tool_names();
        names.sort_unstable();
        assert_eq!(names, NAMES);
    }
}
