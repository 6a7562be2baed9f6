//! Tells whether this machine has what the commands of a block need.

use super::Profile;
use std::path::Path;
use std::process::{Command, Stdio};

/// The registries of packages, each with a command that fetches one small package of it and
/// installs nothing.
const REGISTRIES: [(&str, &str); 2] = [
    ("npm-registry", "npm view --fetch-retries=0 --fetch-timeout=10000 esbuild version"),
    (
        "pypi",
        "python3 -m pip install --dry-run --ignore-installed --quiet --no-deps --retries 0 --timeout 10 iniconfig",
    ),
];

/// The name for commands that take too long for every change: they run with the release build only.
const RELEASE: &str = "release";

/// Returns the reason why commands that need these names are not run.
pub(super) fn missing(names: &[String], profile: Profile) -> Option<String> {
    names.iter().find_map(|name| match name.as_str() {
        RELEASE if profile == Profile::Release => None,
        RELEASE => Some("they take long, and run with the release build".to_owned()),
        _ => (!is_here(name)).then(|| format!("{name} is missing")),
    })
}

/// Returns whether a program starts, a file with an absolute path exists, or a registry answers.
fn is_here(needed: &str) -> bool {
    if needed.starts_with('/') {
        return Path::new(needed).exists();
    }
    let registry = REGISTRIES.iter().find(|(name, _)| *name == needed);
    let version = format!("{needed} --version");
    let command = registry.map_or(version.as_str(), |(_, command)| command);
    let mut words = command.split(' ');
    let Some(program) = words.next() else { return false };
    let asked = Command::new(program).args(words).stdin(Stdio::null()).output();
    asked.is_ok_and(|output| output.status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(name: &str, profile: Profile) -> Option<String> {
        super::missing(&[name.to_owned()], profile)
    }

    #[test]
    fn program_or_file_that_is_not_there_is_named() {
        for name in ["cargo", "/"] {
            assert_eq!(missing(name, Profile::Debug), None);
        }
        for name in ["no-such-program", "/no/such/file"] {
            assert_eq!(missing(name, Profile::Debug), Some(format!("{name} is missing")));
        }
    }

    #[test]
    fn long_commands_run_with_the_release_build_only() {
        assert_eq!(missing(RELEASE, Profile::Release), None);
        assert!(missing(RELEASE, Profile::Debug).is_some_and(|it| it.contains("release build")));
    }
}
