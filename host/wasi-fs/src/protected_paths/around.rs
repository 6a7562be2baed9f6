//! The place of a mounted directory in another one, whose rules hold for it. Questions and results
//! name files by the path of the directory, and other programs can move it while guests have it
//! open: once it has left its path, nothing in it is permitted.

use super::ancestors::{Identity, PIN};
use super::filter::place_in;
use super::{Forbidden, ProtectedPaths};
use crate::path_rules::joined;
use rustix::fs::{Mode, openat};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// The place of a directory in another one.
#[derive(Debug)]
pub(super) struct Around {
    /// The directory, held open.
    dir: OwnedFd,
    /// The directory around it.
    whole: Identity,
    /// The path from one to the other.
    path: String,
}

impl Around {
    /// Holds a directory open that lies at this path beneath the directory of these rules.
    pub(super) fn new(rules: &ProtectedPaths, dir: impl AsFd, path: &str) -> io::Result<Self> {
        Ok(Self {
            dir: openat(dir, ".", PIN, Mode::empty())?,
            whole: rules.around.as_ref().map_or(rules.root, |around| around.whole),
            path: joined(rules.base(), path).into_owned(),
        })
    }
}

impl ProtectedPaths {
    /// Returns the path of the mounted directory in the one that path rules are relative to; empty
    /// for that one itself.
    pub(super) fn base(&self) -> &str {
        self.around.as_ref().map_or("", |around| &around.path)
    }

    /// Returns whether a path is judged by the place of its directory: there are path rules, or the
    /// mounted directory can leave the one around it.
    #[doc(hidden)]
    pub fn judge_places(&self) -> bool {
        self.paths.is_some() || self.around.is_some()
    }

    /// Refuses everything once the mounted directory has left its path in the one around it.
    ///
    /// # Errors
    ///
    /// [`Forbidden::Outside`]; [`Forbidden::Unknown`] as [`place`](Self::place).
    pub(super) fn check_around(&self) -> Result<(), Forbidden> {
        let Some(around) = &self.around else { return Ok(()) };
        match place_in(around.dir.as_fd(), around.whole)? {
            Some(path) if path == around.path => Ok(()),
            Some(_) | None => Err(Forbidden::Outside),
        }
    }
}
