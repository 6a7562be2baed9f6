//! Looking at caches, each of which may lie on a file system that does not answer. A thread looks at one after the other; where one takes too long, the thread
//! is left to it, and another goes on with the rest.

use crate::workspace::{Reading, Tree, Workspace};
use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How long one cache is waited for.
const PATIENCE: Duration = Duration::from_millis(250);

/// The looks of one host.
#[derive(Default)]
pub(super) struct Looks {
    /// The caches that a thread was left to.
    stuck: Mutex<BTreeSet<PathBuf>>,
    /// Whether one of them has answered since, or another could not be looked at.
    news: AtomicBool,
}

/// What came of a look: the tree, where it lies in the workspace.
type Found = io::Result<Option<Arc<Tree>>>;

impl Looks {
    /// Whether there is something to look at again.
    pub(super) fn has_news(&self) -> bool {
        self.news.load(Ordering::Acquire)
    }

    /// From now on there is none.
    pub(super) fn take_news(&self) {
        self.news.store(false, Ordering::Release);
    }

    fn stuck(&self) -> MutexGuard<'_, BTreeSet<PathBuf>> {
        self.stuck.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds those of the caches open that lie in the workspace.
    ///
    /// # Errors
    ///
    /// Where one that lies in the workspace by its path cannot be looked at: a tool could reach it any moment. One elsewhere that does not answer is
    /// looked at again when it does.
    pub(super) fn at(self: &Arc<Self>, paths: Vec<PathBuf>, workspace: &Arc<Workspace>) -> io::Result<Vec<Arc<Tree>>> {
        let (stuck, mut left) = {
            let stuck = self.stuck();
            paths.into_iter().partition::<VecDeque<_>, _>(|path| stuck.contains(path))
        };
        stuck.iter().try_for_each(|path| elsewhere(path, &unanswered(), workspace))?;
        let (mut trees, mut looking) = (Vec::new(), None);
        while let Some(path) = left.front() {
            match self.answer(&left, workspace, &mut looking) {
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

    /// What the thread says of the first of these, started where there is none.
    fn answer(
        self: &Arc<Self>,
        left: &VecDeque<PathBuf>,
        workspace: &Arc<Workspace>,
        looking: &mut Option<Receiver<Found>>,
    ) -> Found {
        let answers = match looking {
            Some(answers) => answers,
            None => looking.insert(self.start(left.clone(), workspace.clone())?),
        };
        if let Ok(found) = answers.recv_timeout(PATIENCE) {
            return found;
        }
        let mut stuck = self.stuck();
        // It may have come in this moment.
        answers.try_recv().unwrap_or_else(|_| {
            stuck.extend(left.front().cloned());
            *looking = None;
            Err(unanswered())
        })
    }

    fn start(self: &Arc<Self>, left: VecDeque<PathBuf>, workspace: Arc<Workspace>) -> io::Result<Receiver<Found>> {
        let (tell, answers) = channel();
        let looks = self.clone();
        let work = move || left.iter().all(|path| looks.tell(path, &workspace, &tell));
        thread::Builder::new().name("palisade-caches".to_owned()).spawn(work)?;
        Ok(answers)
    }

    /// Looks at a cache, and says whether anybody still waits for the others.
    fn tell(&self, path: &Path, workspace: &Workspace, tell: &Sender<Found>) -> bool {
        let found = Tree::open(path, Reading::Refused);
        let found = found.map(|tree| workspace.holds(&tree).then(|| Arc::new(tree)));
        let mut stuck = self.stuck();
        if stuck.remove(path) {
            self.news.store(true, Ordering::Release);
            return false;
        }
        tell.send(found).is_ok()
    }
}

/// Refuses to go on without a cache that lies in the workspace by its path.
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
