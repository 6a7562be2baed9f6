//! The files that a call has created lately. They are known by their inodes, since another file can
//! come to stand at the path of one.

use std::collections::VecDeque;

use rustix::fs::{RawMode, Stat};

use crate::protected_paths::Identity;

/// The number of files that are remembered: a guest that replaces a file renames the new one soon
/// after it has created it.
const REMEMBERED: usize = 64;

/// A file that a call has created.
#[derive(Debug)]
pub(super) struct NewFile {
    identity: Identity,
    /// The permissions of any new file in its directory.
    default: RawMode,
}

impl NewFile {
    pub(super) fn new(stat: &Stat, default: RawMode) -> Self {
        Self { identity: Identity::from_stat(stat), default }
    }
}

/// The last files that a call has created.
#[derive(Debug, Default)]
pub(super) struct NewFiles(VecDeque<NewFile>);

impl NewFiles {
    pub(super) fn add(&mut self, file: NewFile) {
        if self.0.len() >= REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back(file);
    }

    /// Returns the permissions of a new file, if the call has created this file lately.
    pub(super) fn default_of(&self, stat: &Stat) -> Option<RawMode> {
        let identity = Identity::from_stat(stat);
        let found = self.0.iter().rev().find(|file| file.identity == identity);
        found.map(|file| file.default)
    }
}
