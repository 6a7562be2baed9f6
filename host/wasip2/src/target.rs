//! Selects the standard library for `wasm32-wasip2`: that of the toolchain, or a sysroot built
//! here.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::Instant;

use crate::error::Error;
use crate::sysroot::Sysroot;
use crate::toolchain::Toolchain;

/// The target of guests.
pub const TARGET: &str = "wasm32-wasip2";

/// A usable target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
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
    /// a [`lock`]. `note` is told about a slow step.
    ///
    /// # Errors
    /// [`Error::NoTarget`] with the reason why it could not be built.
    pub fn find(
        toolchain: &Toolchain,
        home: &Path,
        note: &mut dyn FnMut(&str),
    ) -> Result<Self, Error> {
        if let Some(found) = Self::found(toolchain, home) {
            return Ok(found);
        }
        note(&format!(
            "making the standard library for {TARGET}, which the toolchain lacks: this takes some minutes, once; `rustup target add {TARGET}` is quicker where rustup reaches its server"
        ));
        let started = Instant::now();
        let made = Sysroot::make(toolchain, home);
        let sysroot = made.map_err(|error| Error::NoTarget { fallback: Box::new(error) })?;
        note(&format!("made {} in {} s", sysroot.path.display(), started.elapsed().as_secs()));
        Ok(Self::Made(sysroot))
    }

    /// Returns the target that the toolchain has, or that was built below `home` earlier.
    #[must_use]
    pub fn found(toolchain: &Toolchain, home: &Path) -> Option<Self> {
        if toolchain.libraries(TARGET).is_ok_and(|folder| has_standard_library(&folder)) {
            return Some(Self::Installed { key: toolchain.version.key.clone() });
        }
        Sysroot::made_earlier(toolchain, home).map(Self::Made)
    }

    /// Returns the compiler arguments that select the target.
    #[must_use]
    pub fn flags(&self) -> Vec<String> {
        match self {
            Self::Installed { .. } => Vec::new(),
            Self::Made(sysroot) => vec![format!("--sysroot={}", sysroot.path.display())],
        }
    }

    /// Removes the artefacts of another target from a target directory of cargo. Cargo does not
    /// notice that a standard library was replaced, and artefacts of different ones cannot be
    /// linked together.
    ///
    /// # Errors
    /// If the directory cannot be changed.
    pub fn forget_artefacts_of_another(&self, folder: &Path) -> Result<(), Error> {
        let (note, artefacts) = (folder.join("target-identity"), folder.join(TARGET));
        let identity = self.identity();
        if fs::read_to_string(&note).is_ok_and(|noted| noted == identity) {
            return Ok(());
        }
        if artefacts.exists() {
            fs::remove_dir_all(&artefacts)
                .map_err(|source| Error::io("remove", &artefacts, source))?;
        }
        fs::write(&note, identity).map_err(|source| Error::io("write", &note, source))
    }

    /// Returns a text that changes if artefacts of another target can no longer be used.
    #[must_use]
    pub fn identity(&self) -> String {
        match self {
            Self::Installed { key } => format!("installed {key}\n"),
            Self::Made(sysroot) => format!("made {}", sysroot.identity),
        }
    }
}

/// Waits until no other process holds the lock of this file, which is created. On a file system
/// without locks nothing is waited for.
///
/// # Errors
/// If the file cannot be opened or locked.
pub fn lock(path: &Path) -> Result<File, Error> {
    let opened = File::options().create(true).truncate(false).write(true).open(path);
    let file = opened.map_err(|source| Error::io("open", path, source))?;
    match file.lock() {
        Err(source) if source.kind() != io::ErrorKind::Unsupported => {
            Err(Error::io("lock", path, source))
        }
        _ => Ok(file),
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
