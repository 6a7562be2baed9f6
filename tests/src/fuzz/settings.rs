//! The border of configuration: any text as a `palisade.toml`, the user's own or that of a project, which may come from anybody.

use std::fs;
use std::path::Path;

use palisade::SideEffects;
use palisade::config::{FileConfig, Settings};

use super::check_message;

/// The bytes as a file of the user, and as one of a project.
///
/// # Panics
///
/// Where a message is none, or where a project's file has loosened what holds without one.
pub fn settings(bytes: &[u8]) {
    if let Ok(text) = str::from_utf8(bytes) {
        // What is wrong is quoted with the lines around it; the length of that is the file's own.
        assert!(FileConfig::parse(text).err().is_none_or(|refused| !refused.is_empty()));
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let [written, missing] = ["written.toml", "missing.toml"].map(|name| directory.path().join(name));
    fs::write(&written, bytes).expect("a file can be written");
    if let Err(refused) = Settings::from_files(&written, &missing) {
        check_message(&refused.to_string());
    }
    match Settings::from_files(&missing, &written) {
        Err(refused) => check_message(&refused.to_string()),
        Ok(with) => tightened(&with, directory.path()),
    }
}

/// A project's file only ever asks for more caution.
fn tightened(with: &Settings, workspace: &Path) {
    let without = Settings::default();
    let (policy, usual) = (with.policy(workspace), without.policy(workspace));
    for class in SideEffects::ALL {
        assert!(policy.class(class).is_at_least_as_strict_as(usual.class(class)), "a project has loosened `{class}`");
    }
    assert!(with.limits().memory <= without.limits().memory && with.concurrency.value <= without.concurrency.value);
    assert!(!with.shell_unconfined.value && !with.shell_network.value && with.trusted.is_empty());
    assert!(with.shell_processes.value <= without.shell_processes.value);
    assert!(with.shell_memory.value <= without.shell_memory.value);
}
