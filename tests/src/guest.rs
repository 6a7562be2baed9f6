//! The guests that the build script has built.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::caches;

/// A guest in a directory of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guest {
    name: &'static str,
}

impl Guest {
    const fn new(name: &'static str) -> Self {
        Self { name }
    }

    /// Its name, which is also the plugin's.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.name
    }

    /// The directory that holds it and nothing else.
    #[must_use]
    pub fn directory(self) -> PathBuf {
        Path::new(env!("OUT_DIR")).join("guests").join(self.name)
    }

    /// The component itself.
    #[must_use]
    pub fn file(self) -> PathBuf {
        self.directory().join(format!("{}.wasm", self.name))
    }
}

/// Where compiled code is kept for all suites of this run.
#[must_use]
pub fn cache() -> PathBuf {
    static HERE: OnceLock<PathBuf> = OnceLock::new();
    HERE.get_or_init(|| caches::of_this_run(&Path::new(env!("OUT_DIR")).join("cache"))).clone()
}

include!(concat!(env!("OUT_DIR"), "/guests.rs"));

/// Looks for a test or a module of the name that it is given: `foreach_contract!(is_tested)`.
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
    fn every_suite_that_has_guests_looks_for_their_tests() {
        // What is measured is no promise of a suite: `host/benches` uses it.
        for suite in SUITES.iter().filter(|suite| **suite != "bench") {
            let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(format!("{suite}.rs"));
            let source = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            assert!(source.contains(&format!("foreach_{suite}!(is_tested)")), "{}", file.display());
        }
    }
}
