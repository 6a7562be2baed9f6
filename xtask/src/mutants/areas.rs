//! The critical code in areas: its files, and the test suites that are run besides the unit tests.
//! Few suites, because each mutant is tested against all of them.

/// One area.
pub(super) struct Area {
    /// The name on the command line.
    pub(super) name: &'static str,
    /// The files, as globs relative to the workspace.
    pub(super) files: &'static [&'static str],
    /// The suites of `tests/tests/` that are run for it.
    pub(super) suites: &'static [&'static str],
}

/// All areas.
pub(super) const AREAS: [Area; 11] = [
    Area {
        name: "wasi-fs",
        files: &[
            "host/wasi-fs/src/**/*.rs",
            "host/palisade/src/workspace/resolve.rs",
            "host/palisade/src/workspace/subdirectory.rs",
        ],
        suites: &["containment", "limits"],
    },
    Area {
        name: "limiter",
        files: &["host/palisade/src/sandbox/run/limiter.rs"],
        suites: &["limits"],
    },
    Area {
        name: "cache",
        files: &[
            "host/palisade/src/sandbox/cache.rs",
            "host/palisade/src/sandbox/cache/**/*.rs",
            "host/palisade/src/sandbox/deserialize.rs",
            "host/palisade/src/workspace/private.rs",
            "host/palisade/src/workspace/private/**/*.rs",
        ],
        suites: &["loader"],
    },
    Area {
        name: "compile",
        files: &[
            "host/palisade/src/sandbox/compile.rs",
            "host/palisade/src/sandbox/compile/**/*.rs",
        ],
        suites: &["loader"],
    },
    Area {
        name: "trust",
        files: &[
            "host/trust/src/fit.rs",
            "host/trust/src/lock.rs",
            "host/trust/src/lock/**/*.rs",
            "host/trust/src/locked.rs",
            "host/trust/src/review.rs",
            "host/trust/src/signature.rs",
            "host/trust/src/words.rs",
        ],
        suites: &["trust"],
    },
    Area {
        name: "store",
        files: &[
            "host/net/src/exchange.rs",
            "host/store/src/fetch.rs",
            "host/store/src/install_folder.rs",
            "host/store/src/layout.rs",
            "host/store/src/redirects.rs",
            "host/store/src/registry.rs",
        ],
        suites: &["store"],
    },
    Area {
        name: "policy",
        files: &[
            "host/palisade/src/policy.rs",
            "host/palisade/src/policy/rule.rs",
            "host/palisade/src/session/floor.rs",
            "host/palisade/src/session/tool_lists.rs",
            "host/palisade/src/dispatch/approve.rs",
        ],
        suites: &["dispatcher"],
    },
    Area {
        name: "confirmation",
        files: &[
            "host/palisade/src/confirm.rs",
            "host/palisade/src/confirm/**/*.rs",
            "host/palisade/src/dispatch/approve/question.rs",
            "host/palisade/src/dispatch/question_order.rs",
        ],
        suites: &["dispatcher", "mcp"],
    },
    Area {
        name: "signed_state",
        files: &[
            "host/mcp/src/questions/signed_state.rs",
            "host/mcp/src/questions/input_required.rs",
        ],
        suites: &["mcp"],
    },
    Area {
        name: "meter",
        files: &[
            "host/schema/src/schema/meter.rs",
            "host/schema/src/schema/meter/**/*.rs",
            "host/schema/src/schema/multiple.rs",
            "host/schema/src/schema/cost.rs",
        ],
        suites: &["schema", "json_schema_suite"],
    },
    Area {
        name: "conversion",
        files: &[
            "host/palisade/src/sandbox/output/breach.rs",
            "host/palisade/src/sandbox/output/content.rs",
            "host/palisade/src/sandbox/output/convert.rs",
            "host/palisade/src/sandbox/load/definition.rs",
            "host/palisade/src/sandbox/call/compact_json.rs",
            "host/palisade/src/sandbox/refusal.rs",
        ],
        suites: &["contract", "limits"],
    },
];

impl Area {
    /// Whether a program of tests is run for it: those with the unit tests, and its suites.
    pub(super) fn is_tested_by(&self, program: &str) -> bool {
        self.suites.contains(&program) || !AREAS.iter().any(|area| area.suites.contains(&program))
    }

    /// Returns true if the area contains this file.
    pub(super) fn has(&self, file: &str) -> bool {
        self.files.iter().any(|glob| match glob.split_once("**/*") {
            Some((folder, ending)) => file.starts_with(folder) && file.ends_with(ending),
            None => file == *glob,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn every_file_and_suite_of_an_area_exists() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for area in AREAS {
            for file in area.files {
                let path = root.join(file.split("**").next().unwrap_or(file));
                assert!(path.exists(), "{}: {file}", area.name);
            }
            for suite in area.suites {
                assert!(
                    root.join("tests/tests").join(format!("{suite}.rs")).is_file(),
                    "{}: {suite}",
                    area.name
                );
            }
        }
    }

    #[test]
    fn file_is_in_the_area_with_its_glob() {
        let area = |file: &str| AREAS.iter().find(|area| area.has(file)).map(|area| area.name);
        assert_eq!(area("host/palisade/src/policy.rs"), Some("policy"));
        assert_eq!(area("host/wasi-fs/src/direct/open.rs"), Some("wasi-fs"));
        assert_eq!(area("host/palisade/src/sandbox/cache/entry.rs"), Some("cache"));
        for file in ["meter.rs", "meter/account.rs", "meter/equal.rs", "multiple.rs", "cost.rs"] {
            assert_eq!(area(&format!("host/schema/src/schema/{file}")), Some("meter"), "{file}");
        }
        assert_eq!(area("host/palisade/src/cli.rs"), None);
    }
}
