//! Watches the plugin locations on a separate thread. A notification only triggers a scan; the scan
//! decides what has changed.

mod eyes;

use super::loading::Loading;
use super::{Rescan, Sources, scan};
use eyes::{Eyes, Lid, Seen};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread::Builder;
use std::time::{Duration, Instant, SystemTime};

/// The quiet period before a scan, because files are often written in several steps.
const QUIET: Duration = Duration::from_millis(100);
/// The longest delay of a scan while changes continue.
const AT_MOST: Duration = Duration::from_secs(1);
/// The polling interval for changes without a notification, such as behind a symlink or on a
/// network mount.
const IDLE: Duration = Duration::from_secs(2);
/// The age below which a file may change without a change of its timestamps, because of their
/// granularity.
const SETTLED: Duration = Duration::from_secs(2);

/// A watch of the plugin locations. It ends when it or its host is dropped; a scan in progress is
/// cancelled only by the host.
#[derive(Debug)]
pub struct Watch(#[allow(dead_code, reason = "held, and nothing else")] Lid);

/// The reason why plugins cannot be watched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WatchError {
    /// The system provides no thread or no file descriptors.
    #[error("cannot watch the plugin directories: {0}")]
    System(#[from] io::Error),
}

/// A callback for each scan that has found changes.
pub(crate) type Heard = Box<dyn Fn(&Rescan) + Send>;

impl Watch {
    /// Watches the plugin locations of this host.
    pub(crate) fn begin(loading: &Loading, heard: Heard) -> Result<Self, WatchError> {
        let (eyes, lid) = Eyes::open()?;
        let (again, sources) = (loading.again(), loading.sources().clone());
        let watch = move || {
            let look = || {
                again().map(
                    |rescan| if rescan.is_empty() { Found::Nothing } else { tell(&heard, &rescan) },
                )
            };
            watch(&eyes, &sources, look);
        };
        Builder::new().name("palisade-watch".to_owned()).spawn(watch)?;
        Ok(Self(lid))
    }
}

/// The result of a scan.
enum Found {
    Nothing,
    Something,
}

/// Calls the callback. A panic in it costs only this notification.
fn tell(heard: &Heard, rescan: &Rescan) -> Found {
    if std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| heard(rescan))).is_err() {
        tracing::error!("whoever was told of changed plugins panicked");
    }
    Found::Something
}

/// Scans after every change, and once at the start, because changes may have occurred since
/// loading. Ends when the host is gone.
fn watch(eyes: &Eyes, sources: &Sources, look: impl Fn() -> Option<Found>) {
    let mut last: Option<View> = None;
    loop {
        // Before the scan, so that a change during the scan triggers the next one.
        eyes.look_at(sources);
        let now = View::of(sources);
        if last.as_ref().is_none_or(|last| last.may_differ(&now)) && look().is_none() {
            return;
        }
        last = Some(now);
        match eyes.wait(IDLE) {
            Seen::Nothing => {}
            Seen::Something if is_quiet(|time| eyes.wait(time), Instant::now) => {}
            _ => return,
        }
    }
}

/// Waits for a quiet period, up to a limit. Returns false if the watch is closed.
fn is_quiet(mut wait: impl FnMut(Duration) -> Seen, now: impl Fn() -> Instant) -> bool {
    let begun = now();
    loop {
        match wait(QUIET) {
            Seen::Closed => return false,
            Seen::Something if now() - begun < AT_MOST => {}
            _ => return true,
        }
    }
}

/// A snapshot of the plugin locations, taken without opening any file.
#[derive(Debug, PartialEq, Eq)]
struct View {
    files: Vec<(PathBuf, Option<Marks>)>,
    /// True if a file is so young that it may change without a change of its marks.
    is_fresh: bool,
}

/// A file's length, modification time and other attributes.
type Marks = (u64, Option<SystemTime>, [u64; 4]);

impl View {
    fn of(sources: &Sources) -> Self {
        let now = SystemTime::now();
        let found = scan::directories(sources)
            .flat_map(|directory| scan::files(directory).unwrap_or_default());
        let files: Vec<_> =
            found.chain(sources.files.iter().cloned()).map(|path| (marks(&path), path)).collect();
        let is_young = |time: SystemTime| now.duration_since(time).is_ok_and(|age| age < SETTLED);
        let is_fresh =
            files.iter().any(|(marks, _)| marks.and_then(|marks| marks.1).is_some_and(is_young));
        Self { files: files.into_iter().map(|(marks, path)| (path, marks)).collect(), is_fresh }
    }

    fn may_differ(&self, later: &Self) -> bool {
        self.is_fresh || self.files != later.files
    }
}

fn marks(path: &Path) -> Option<Marks> {
    let meta = fs::metadata(path).ok()?;
    Some((meta.len(), meta.modified().ok(), numbers(&meta)))
}

fn numbers(meta: &fs::Metadata) -> [u64; 4] {
    use std::os::unix::fs::MetadataExt as _;
    [meta.dev(), meta.ino(), meta.ctime().cast_unsigned(), meta.ctime_nsec().cast_unsigned()]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]
    use super::*;
    use std::cell::Cell;
    use std::sync::mpsc::{Sender, channel};
    use tempfile::TempDir;

    fn watched(looks: &Sender<()>) -> (TempDir, Lid) {
        let directory = tempfile::tempdir().unwrap();
        let sources =
            Sources { directories: vec![directory.path().to_owned()], ..Sources::default() };
        let (eyes, lid) = Eyes::open().unwrap();
        let looks = looks.clone();
        std::thread::spawn(move || {
            watch(&eyes, &sources, || looks.send(()).ok().map(|()| Found::Nothing));
        });
        (directory, lid)
    }

    #[test]
    fn it_is_looked_at_once_and_whenever_a_plugin_comes() {
        let (send, looks) = channel();
        let (directory, _lid) = watched(&send);
        looks.recv().unwrap();
        fs::write(directory.path().join("a.wasm"), "a").unwrap();
        looks.recv_timeout(Duration::from_secs(30)).unwrap();
    }

    /// Returns the number of events, 50 ms apart and at most `times`, before the next scan.
    fn waited(times: u32) -> (u32, bool) {
        let (begun, seen) = (Instant::now(), Cell::new(0));
        let wait = |time: Duration| {
            assert_eq!(time, QUIET);
            if seen.get() == times {
                return Seen::Nothing;
            }
            seen.set(seen.get() + 1);
            Seen::Something
        };
        let is_quiet = is_quiet(wait, || begun + Duration::from_millis(50) * seen.get());
        (seen.get(), is_quiet)
    }

    #[test]
    fn many_changes_are_one_look_and_constant_ones_are_looked_at_every_second() {
        assert_eq!(waited(0), (0, true));
        assert_eq!(waited(7), (7, true));
        assert_eq!(waited(u32::MAX), (20, true));
        assert!(!is_quiet(|_| Seen::Closed, Instant::now));
    }

    #[test]
    fn the_thread_ends_when_nobody_watches_any_more() {
        let (send, looks) = channel();
        let (_directory, lid) = watched(&send);
        looks.recv().unwrap();
        drop((lid, send));
        assert_eq!(
            looks.recv_timeout(Duration::from_secs(30)),
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected)
        );
    }

    #[test]
    fn a_file_that_is_young_may_differ_although_it_looks_the_same() {
        let view = |is_fresh| View { files: Vec::new(), is_fresh };
        assert!(view(true).may_differ(&view(false)) && !view(false).may_differ(&view(true)));
    }
}
