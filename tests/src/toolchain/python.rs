//! Python with the SDK of this checkout, and with packages from PyPI.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use super::{has, install, packages, path_with, repository};

const REQUIREMENTS: &str = "tests/sdks/python/requirements.txt";

/// Python with the SDK of this checkout, and with the packages of the requirements.
#[derive(Debug)]
pub struct Python {
    packages: PathBuf,
}

impl Python {
    /// Installs the packages at most once at a time: the tests share them. Returns nothing, with a
    /// message, if Python or its packages cannot be had.
    ///
    /// # Panics
    ///
    /// If the packages cannot be installed for another reason.
    #[must_use]
    pub fn find() -> Option<Self> {
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        if !has("python3", (3, 10)) {
            return None;
        }
        // The build looks for packages in directories of this name.
        let packages = packages("python").join("site-packages");
        fs::create_dir_all(&packages).expect("the directory of the packages can be created");
        let list = repository(REQUIREMENTS);
        let mut pip = Command::new("python3");
        // Wheels only, so that the installation runs no third-party code, and only those of the
        // list.
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]);
        pip.args(["--only-binary=:all:", "--no-deps", "--upgrade", "--target"]).arg(&packages);
        pip.arg("--requirement").arg(&list);
        let wanted = fs::read_to_string(list).expect("the requirements can be read");
        install(&packages, &wanted, &mut pip).then_some(Self { packages })
    }

    /// Returns the variables under which `python3` has the SDK and the packages.
    ///
    /// # Panics
    ///
    /// If a path cannot be part of a variable.
    #[must_use]
    pub fn variables(&self) -> [(&'static str, OsString); 3] {
        let sources = repository("guest-sdk/python/src");
        let paths = std::env::join_paths([sources.as_path(), &self.packages]);
        [
            ("PYTHONPATH", paths.expect("the paths have no colon")),
            ("PYTHONDONTWRITEBYTECODE", "1".into()),
            ("PATH", path_with(&self.packages.join("bin"))),
        ]
    }

    /// Returns `python3` under these variables.
    #[must_use]
    pub fn command(&self) -> Command {
        let mut python = Command::new("python3");
        python.envs(self.variables());
        python
    }
}
