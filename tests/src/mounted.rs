//! File systems that a test mounts.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// A mounted file system, unmounted on drop.
#[derive(Debug)]
pub struct Mounted(PathBuf);

impl Mounted {
    /// Mounts a file system; skips and returns `None` if the test may not mount.
    ///
    /// # Panics
    ///
    /// If the mount point cannot be created.
    #[must_use]
    pub fn at(place: PathBuf, arguments: &[&str]) -> Option<Self> {
        if !place.exists() {
            fs::create_dir_all(&place).expect("the mount point can be created");
        }
        let mount = Command::new("mount").args(arguments).arg(&place).output();
        if mount.is_ok_and(|ran| ran.status.success()) {
            return Some(Self(place));
        }
        crate::skip("only root mounts");
        None
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}
