//! The locks that decide together: that of the user, and those that only tighten it.

use crate::lock::lock_file;
use crate::lock::{Change, Entry, Locator, Lock, LockError, LockOf, State};
use palisade::tool::Digest;
use std::path::Path;

/// The locks as they were read last.
#[derive(Debug, Default)]
pub(super) struct Locks {
    pub(super) user: Lock,
    pub(super) project: Option<Lock>,
    pub(super) distrusted: Option<Lock>,
    /// Set while the lock cannot be used: nothing is approved then.
    pub(super) fault: Option<String>,
}

impl Locks {
    /// Returns the user's approvals of a name, without the revoked ones.
    pub(super) fn approved(&self, name: &str) -> impl Iterator<Item = &Entry> {
        let entries = self.user.entries().iter();
        entries.filter(move |entry| entry.name == name && entry.revoked.is_none())
    }

    pub(super) fn read(
        user: Option<&Path>,
        project: Option<&Path>,
        distrusted: Option<&Path>,
    ) -> Result<Self, LockError> {
        let read = |path: Option<&Path>, of| path.map(|path| lock_file(path, of)).transpose();
        let project = read(project, LockOf::Project)?.flatten();
        let distrusted = read(distrusted, LockOf::User)?.flatten();
        let user = user.map(Lock::read).transpose()?.unwrap_or_default();
        Ok(Self { user, project, distrusted, fault: None })
    }

    /// Returns the state according to the user's lock, tightened by that of the project.
    pub(super) fn judge(
        &self,
        of: Locator<'_>,
        digest: Digest,
        judge: impl Fn(&Lock) -> State,
    ) -> State {
        let distrusted = self.distrusted.as_ref().map(|lock| lock.judge_bytes(of, digest));
        if let Some(revoked) = distrusted.filter(State::is_revoked) {
            return revoked;
        }
        match judge(&self.user) {
            State::Approved if self.project_refuses(of.name, digest) => {
                State::Changed(vec![Change::Project])
            }
            state => state,
        }
    }

    /// Returns true if the lock of the project has another digest for this name, or has revoked
    /// these bytes.
    pub(super) fn project_refuses(&self, name: &str, digest: Digest) -> bool {
        let Some(project) = &self.project else { return false };
        let mut pinned = project.entries().iter().filter(|entry| entry.name == name).peekable();
        let is_pinned = pinned.peek().is_some();
        let has = pinned.any(|entry| entry.digest == digest && entry.revoked.is_none());
        let is_revoked = |entry: &Entry| entry.digest == digest && entry.revoked.is_some();
        (is_pinned && !has)
            || project.revoked().iter().any(|it| it.digest == digest)
            || project.entries().iter().any(is_revoked)
    }
}
