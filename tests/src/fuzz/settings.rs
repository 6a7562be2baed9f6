//! The fuzz target of configuration: any text as a user's `palisade.toml`, and as that of an
//! untrusted project.

use std::fs;
use std::path::Path;

use palisade::SideEffects;
use palisade_cli::config::{FileConfig, Settings};

use super::check_message;

/// Reads the bytes as a user's file, and as a project's.
///
/// # Panics
///
/// If a message is invalid, or a project's file has loosened a default.
pub fn settings(bytes: &[u8]) {
    if let Ok(text) = str::from_utf8(bytes) {
        // Not checked with `check_message`: the message quotes lines of the file, whose length is
        // not bounded.
        assert!(FileConfig::parse(text).err().is_none_or(|refused| !refused.is_empty()));
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let [written, missing] =
        ["written.toml", "missing.toml"].map(|name| directory.path().join(name));
    fs::write(&written, bytes).expect("a file can be written");
    if let Err(refused) = Settings::from_files(&written, &missing) {
        check_message(&refused.to_string());
    }
    match Settings::from_files(&missing, &written) {
        Err(refused) => check_message(&refused.to_string()),
        Ok(with) => tightened(&with, directory.path()),
    }
}

/// Checks that a project's file can only tighten the settings.
fn tightened(with: &Settings, workspace: &Path) {
    let without = Settings::default();
    let (policy, usual) = (with.policy(workspace), without.policy(workspace));
    for class in SideEffects::ALL {
        assert!(
            policy.class(class).is_at_least_as_strict_as(usual.class(class)),
            "a project has loosened `{class}`"
        );
    }
    assert!(
        with.limits().memory <= without.limits().memory
            && with.concurrency.value <= without.concurrency.value
    );
    assert!(!with.shell_unconfined.value && !with.shell_network.value && with.trusted.is_empty());
    assert!(with.shell_processes.value <= without.shell_processes.value);
    assert!(with.shell_memory.value <= without.shell_memory.value);
}
