//! The guests built by the build script.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::caches;

/// A guest in its own directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guest {
    name: &'static str,
}

impl Guest {
    const fn new(name: &'static str) -> Self {
        Self { name }
    }

    /// Returns the name of the guest, which is also the plugin's.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.name
    }

    /// Returns the directory that holds only this guest.
    #[must_use]
    pub fn directory(self) -> PathBuf {
        Path::new(env!("OUT_DIR")).join("guests").join(self.name)
    }

    /// Returns the path of the component.
    #[must_use]
    pub fn file(self) -> PathBuf {
        self.directory().join(format!("{}.wasm", self.name))
    }
}

/// Returns the cache directory for compiled code, shared by all suites of this run.
#[must_use]
pub fn cache() -> PathBuf {
    static HERE: OnceLock<PathBuf> = OnceLock::new();
    HERE.get_or_init(|| caches::of_this_run(&Path::new(env!("OUT_DIR")).join("cache"))).clone()
}

include!(concat!(env!("OUT_DIR"), "/guests.rs"));

/// Requires a test or a module with the guest's name: `foreach_contract!(is_tested)`.
#[macro_export]
macro_rules! is_tested {
    ($guest:ident) => {
        #[allow(unused_imports, reason = "that the name resolves is the check")]
        use self::$guest as _;
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_suite_with_guests_checks_their_tests() {
        // Guests for benchmarks belong to `host/cli/benches`, not to a suite.
        for suite in SUITES.iter().filter(|suite| **suite != "bench") {
            let file =
                Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(format!("{suite}.rs"));
            let source = std::fs::read_to_string(&file)
                .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            assert!(source.contains(&format!("foreach_{suite}!(is_tested)")), "{}", file.display());
        }
    }
}
