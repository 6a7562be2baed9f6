//! Opens recorded paths, each of which may lie on a file system that hangs. One thread opens them in
//! sequence; if it hangs, it is abandoned and another thread continues with the rest.

use crate::workspace::{Mounts, ProtectedTree, Reading, Workspace};
use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// The time limit for opening one path.
const PATIENCE: Duration = Duration::from_millis(250);

/// The scans of one host.
#[derive(Default)]
pub(super) struct PathProbe {
    /// The paths on which a thread hangs.
    stuck: Mutex<BTreeSet<PathBuf>>,
    /// True if a hanging path has answered since, or if another path could not be opened.
    news: AtomicBool,
}

/// A path, and whether tools may read it.
type Wanted = (PathBuf, Reading);

/// The result for one path: its tree, if it lies in the workspace.
type Found = io::Result<Option<Arc<ProtectedTree>>>;

impl PathProbe {
    /// Returns true if a path must be opened again.
    pub(super) fn has_news(&self) -> bool {
        self.news.load(Ordering::Acquire)
    }

    /// Resets the flag of [`has_news`](Self::has_news).
    pub(super) fn take_news(&self) {
        self.news.store(false, Ordering::Release);
    }

    fn stuck(&self) -> MutexGuard<'_, BTreeSet<PathBuf>> {
        self.stuck.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the paths and returns those that lie in the workspace.
    ///
    /// # Errors
    ///
    /// An error if a path in the workspace cannot be opened, because a tool could reach it at any
    /// time. A path elsewhere that hangs is opened again once it answers.
    pub(super) fn open_all(
        self: &Arc<Self>,
        paths: Vec<Wanted>,
        workspace: &Arc<Workspace>,
    ) -> io::Result<Vec<Arc<ProtectedTree>>> {
        let (stuck, mut left) = {
            let stuck = self.stuck();
            paths.into_iter().partition::<VecDeque<_>, _>(|(path, _)| stuck.contains(path))
        };
        stuck.iter().try_for_each(|(path, _)| elsewhere(path, &unanswered(), workspace))?;
        let mut trees = Vec::new();
        let mut running = None;
        while let Some((path, _)) = left.front() {
            match self.answer(&left, workspace, &mut running) {
                Ok(tree) => trees.extend(tree),
                Err(error) => {
                    if !self.stuck().contains(path) {
                        self.news.store(true, Ordering::Release);
                    }
                    elsewhere(path, &error, workspace)?;
                }
            }
            left.pop_front();
        }
        Ok(trees)
    }

    /// Waits for the result of the first of these caches, and starts a thread if there is none.
    fn answer(
        self: &Arc<Self>,
        left: &VecDeque<Wanted>,
        workspace: &Arc<Workspace>,
        running: &mut Option<Receiver<Found>>,
    ) -> Found {
        let answers = match running {
            Some(answers) => answers,
            None => running.insert(self.start(left.clone(), workspace.clone())?),
        };
        if let Ok(found) = answers.recv_timeout(PATIENCE) {
            return found;
        }
        let mut stuck = self.stuck();
        // The result may have arrived between the timeout and the lock.
        answers.try_recv().unwrap_or_else(|_| {
            stuck.extend(left.front().map(|(path, _)| path.clone()));
            *running = None;
            Err(unanswered())
        })
    }

    fn start(
        self: &Arc<Self>,
        left: VecDeque<Wanted>,
        workspace: Arc<Workspace>,
    ) -> io::Result<Receiver<Found>> {
        let (send, answers) = channel();
        let probe = self.clone();
        let work = move || {
            let mounts = workspace.mounts();
            left.iter().all(|wanted| probe.open_and_send(wanted, &workspace, &mounts, &send))
        };
        thread::Builder::new().name("palisade-paths".to_owned()).spawn(work)?;
        Ok(answers)
    }

    /// Opens a path and sends the result. Returns false if the receiver is gone.
    fn open_and_send(
        &self,
        (path, reading): &Wanted,
        workspace: &Workspace,
        mounts: &Mounts<'_>,
        send: &Sender<Found>,
    ) -> bool {
        let found = ProtectedTree::open(path, *reading);
        let found = found.map(|tree| is_wanted(&tree, workspace, mounts).then(|| Arc::new(tree)));
        // `answer` takes the same lock before it gives up, so a late result is received or counted.
        let mut stuck = self.stuck();
        if stuck.remove(path) {
            self.news.store(true, Ordering::Release);
            return false;
        }
        send.send(found).is_ok()
    }
}

/// Returns whether tools may reach a tree. A workspace that another run has used as a plugin
/// directory is no such tree, since no tool could ever change anything in it.
fn is_wanted(tree: &ProtectedTree, workspace: &Workspace, mounts: &Mounts<'_>) -> bool {
    let is_usable = match tree.reading() {
        Reading::Allowed => !tree.is(workspace.identity()),
        Reading::Refused => true,
    };
    is_usable && workspace.reaches(tree, mounts)
}

/// Returns an error if a path lies in the workspace, and ignores other failures.
fn elsewhere(path: &Path, error: &io::Error, workspace: &Workspace) -> io::Result<()> {
    if path.starts_with(workspace.root()) {
        return Err(io::Error::new(error.kind(), format!("`{}`: {error}", path.display())));
    }
    tracing::debug!("the path {} cannot be looked at: {error}", path.display());
    Ok(())
}

fn unanswered() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "its file system does not answer")
}
