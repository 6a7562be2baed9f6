//! Opens caches, each of which may lie on a file system that hangs. One thread opens them in
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

/// The time limit for opening one cache.
const PATIENCE: Duration = Duration::from_millis(250);

/// The scans of one host.
#[derive(Default)]
pub(super) struct CacheProbe {
    /// The caches on which a thread hangs.
    stuck: Mutex<BTreeSet<PathBuf>>,
    /// True if a hanging cache has answered since, or if another cache could not be opened.
    news: AtomicBool,
}

/// The result for one cache: its tree, if it lies in the workspace.
type Found = io::Result<Option<Arc<ProtectedTree>>>;

impl CacheProbe {
    /// Returns true if a cache must be opened again.
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

    /// Opens the caches and returns those that lie in the workspace.
    ///
    /// # Errors
    ///
    /// An error if a cache whose path is in the workspace cannot be opened, because a tool could
    /// reach it at any time. A cache elsewhere that hangs is opened again once it answers.
    pub(super) fn open_all(
        self: &Arc<Self>,
        paths: Vec<PathBuf>,
        workspace: &Arc<Workspace>,
    ) -> io::Result<Vec<Arc<ProtectedTree>>> {
        let (stuck, mut left) = {
            let stuck = self.stuck();
            paths.into_iter().partition::<VecDeque<_>, _>(|path| stuck.contains(path))
        };
        stuck.iter().try_for_each(|path| elsewhere(path, &unanswered(), workspace))?;
        let mut trees = Vec::new();
        let mut running = None;
        while let Some(path) = left.front() {
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
        left: &VecDeque<PathBuf>,
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
            stuck.extend(left.front().cloned());
            *running = None;
            Err(unanswered())
        })
    }

    fn start(
        self: &Arc<Self>,
        left: VecDeque<PathBuf>,
        workspace: Arc<Workspace>,
    ) -> io::Result<Receiver<Found>> {
        let (send, answers) = channel();
        let probe = self.clone();
        let work = move || {
            let mounts = workspace.mounts();
            left.iter().all(|path| probe.open_and_send(path, &workspace, &mounts, &send))
        };
        thread::Builder::new().name("palisade-caches".to_owned()).spawn(work)?;
        Ok(answers)
    }

    /// Opens a cache and sends the result. Returns false if the receiver is gone.
    fn open_and_send(
        &self,
        path: &Path,
        workspace: &Workspace,
        mounts: &Mounts<'_>,
        send: &Sender<Found>,
    ) -> bool {
        let found = ProtectedTree::open(path, Reading::Refused);
        let found = found.map(|tree| workspace.reaches(&tree, mounts).then(|| Arc::new(tree)));
        // `answer` takes the same lock before it gives up, so a late result is received or counted.
        let mut stuck = self.stuck();
        if stuck.remove(path) {
            self.news.store(true, Ordering::Release);
            return false;
        }
        send.send(found).is_ok()
    }
}

/// Returns an error if a cache's path lies in the workspace, and ignores other failures.
fn elsewhere(path: &Path, error: &io::Error, workspace: &Workspace) -> io::Result<()> {
    if path.starts_with(workspace.root()) {
        return Err(io::Error::new(error.kind(), format!("`{}`: {error}", path.display())));
    }
    tracing::debug!("the cache {} cannot be looked at: {error}", path.display());
    Ok(())
}

fn unanswered() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "its file system does not answer")
}
