//! Selects the standard library for `wasm32-wasip2`: that of the toolchain, or a sysroot built
//! here.

use std::fs;
use std::path::Path;
use std::time::Instant;

use super::error::Error;
use super::script;
use super::sysroot::Sysroot;
use super::toolchain::Toolchain;

/// The target of guests.
pub(crate) const TARGET: &str = "wasm32-wasip2";

/// A usable target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// The toolchain provides the target.
    Installed {
        /// The key of the compiler.
        key: String,
    },
    /// The target was built here.
    Made(Sysroot),
}

impl Target {
    /// Finds the target, or builds it below `home`, which takes half a minute. The caller must hold
    /// the lock.
    ///
    /// # Errors
    /// [`Error::NoTarget`] with the reason why it could not be built.
    pub(crate) fn find(toolchain: &Toolchain, home: &Path) -> Result<Self, Error> {
        let key = toolchain.version.key.clone();
        if toolchain.libraries(TARGET).is_ok_and(|folder| has_standard_library(&folder)) {
            return Ok(Self::Installed { key });
        }
        if let Some(sysroot) = Sysroot::made_earlier(toolchain, home) {
            return Ok(Self::Made(sysroot));
        }
        script::note(&format!(
            "making the standard library for {TARGET}, which the toolchain lacks"
        ));
        let started = Instant::now();
        let made = Sysroot::make(toolchain, home);
        let sysroot = made.map_err(|error| Error::NoTarget { fallback: Box::new(error) })?;
        script::note(&format!(
            "made {} in {} s",
            sysroot.path.display(),
            started.elapsed().as_secs()
        ));
        Ok(Self::Made(sysroot))
    }

    /// Returns the compiler arguments that select the target.
    pub(crate) fn flags(&self) -> Vec<String> {
        match self {
            Self::Installed { .. } => Vec::new(),
            Self::Made(sysroot) => vec![format!("--sysroot={}", sysroot.path.display())],
        }
    }

    /// Returns a text that changes if artefacts of another target can no longer be used.
    pub(crate) fn identity(&self) -> String {
        match self {
            Self::Installed { key } => format!("installed {key}\n"),
            Self::Made(sysroot) => format!("made {}", sysroot.identity),
        }
    }
}

fn has_standard_library(folder: &Path) -> bool {
    let named_so = |name: &str| name.starts_with("libstd-") && name.ends_with(".rlib");
    fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .any(|entry| entry.file_name().to_str().is_some_and(named_so))
}
