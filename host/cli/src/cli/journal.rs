//! The journal of a run: its file, and who may read it.

use super::exit::{Exit, Failure};
use crate::config::{JournalSettings, RecordedInputs};
use palisade::HostBuilder;
use palisade::internal::{
    Missing, Recorded, open_private_directory, remember, state_directories, usual_state_directory,
};
use palisade_server::journal::{self, Journal, JournalError};
use palisade_server::recorder::Recorder;
use palisade_server::{InputRecording, RecorderSettings};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Where the journal of a run is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// In this file.
    File(PathBuf),
    /// Nowhere: it ends with the run.
    Temporary,
}

impl Place {
    /// Returns the place that the command line or the settings name, or the usual one.
    pub(super) fn of(given: Option<&str>, settings: &JournalSettings) -> Self {
        match given {
            Some("none") => Self::Temporary,
            Some(file) => Self::File(file.into()),
            None => {
                let file = settings.file.value.clone().or_else(default_file);
                file.map_or(Self::Temporary, Self::File)
            }
        }
    }

    /// Returns the place of the calls of `call` and `dispatch`: beside the server's journal.
    pub(super) fn of_calls(settings: &JournalSettings) -> Self {
        match Self::of(None, settings) {
            Self::File(file) => Self::File(file.with_file_name("calls.db")),
            Self::Temporary => Self::Temporary,
        }
    }

    /// Opens the journal, whose directory is made if it is missing and the usual one. A journal has
    /// one writer, so that another server of this user at the same time gets a file of its own.
    pub(super) fn open(self, settings: &JournalSettings) -> Result<(Journal, Self), Failure> {
        /// The most servers with a journal in the usual place.
        const MOST: usize = 32;
        let usual = default_file();
        let mut place = self;
        for number in 2..=MOST {
            match place.open_once(settings) {
                Err(Refused::Journal(JournalError::InUse { .. })) if place.is_usual(&usual) => {
                    let other = usual.as_deref().unwrap_or(Path::new(""));
                    place = Self::File(other.with_file_name(format!("journal-{number}.db")));
                }
                opened => return Ok((opened?, place)),
            }
        }
        Ok((place.open_once(settings)?, place))
    }

    /// Returns true for a file beside the usual one.
    fn is_usual(&self, usual: &Option<PathBuf>) -> bool {
        let folder = |file: &PathBuf| file.parent().map(Path::to_owned);
        match self {
            Self::File(file) => usual.as_ref().and_then(folder) == folder(file),
            Self::Temporary => false,
        }
    }

    /// Returns the file if it is not the usual one.
    pub(super) fn unusual(&self) -> Option<&Path> {
        match self {
            Self::File(file) if default_file().as_ref() != Some(file) => Some(file),
            Self::File(_) | Self::Temporary => None,
        }
    }

    fn open_once(&self, settings: &JournalSettings) -> Result<Journal, Refused> {
        let bounds = journal::JournalSettings {
            max_age: settings.max_age.value,
            max_bytes: settings.max_size.value,
        };
        let opened = match self {
            Self::Temporary => Journal::temporary(bounds),
            Self::File(file) => {
                if let Some(folder) = folders().iter().find(|folder| file.parent() == Some(folder))
                {
                    open_private_directory(folder, Missing::Made).map_err(|why| {
                        let folder = folder.display();
                        Refused::Directory(Failure::usage(format!(
                            "the journal in `{folder}`: {why}"
                        )))
                    })?;
                }
                let opened = Journal::open(file, bounds);
                if opened.is_ok() {
                    remember_for_other_runs(file);
                }
                opened
            }
        };
        opened.map_err(Refused::Journal)
    }

    /// Returns the files that no tool may read.
    pub(super) fn hidden(&self) -> Vec<PathBuf> {
        match self {
            Self::Temporary => Vec::new(),
            Self::File(file) => files(file),
        }
    }
}

/// The journal of a run of `call` or `dispatch`.
pub(super) struct CallJournal {
    journal: Journal,
    recorder: Arc<Recorder>,
    hidden: Vec<PathBuf>,
}

impl CallJournal {
    /// Opens the journal of calls, if the settings want one. A journal has one writer, so that runs
    /// at the same time wait for each other.
    pub(super) fn open(settings: &JournalSettings) -> Result<Option<Self>, Failure> {
        /// The longest wait for other runs.
        const PATIENCE: Duration = Duration::from_secs(10);
        const PAUSE: Duration = Duration::from_millis(20);
        if !settings.calls.value {
            return Ok(None);
        }
        let place = Place::of_calls(settings);
        let begun = Instant::now();
        let journal = loop {
            match place.open_once(settings) {
                Err(Refused::Journal(JournalError::InUse { .. })) if begun.elapsed() < PATIENCE => {
                    std::thread::sleep(PAUSE);
                }
                opened => break opened?,
            }
        };
        let recorder = Recorder::new(journal.clone(), recording(settings));
        Ok(Some(Self { journal, recorder, hidden: place.hidden() }))
    }

    /// Lets a host record its calls, and hides the journal from its tools.
    pub(super) fn wire(&self, host: HostBuilder) -> HostBuilder {
        let host = self.hidden.iter().fold(host, HostBuilder::deny_read);
        host.subscriber(self.recorder.clone()).recorder(self.recorder.clone())
    }

    /// Writes what is still in memory.
    pub(super) fn close(&self) {
        self.journal.clone().close();
    }
}

/// The reason why a journal cannot be opened.
enum Refused {
    Journal(JournalError),
    Directory(Failure),
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Directory(failure) => failure,
            Refused::Journal(error) => Self::new(
                Exit::Usage,
                format!("{error}; --journal FILE names another, and --journal none keeps none"),
            ),
        }
    }
}

/// Returns what the recorder keeps.
pub(super) fn recording(settings: &JournalSettings) -> RecorderSettings {
    RecorderSettings {
        inputs: match settings.inputs.value {
            RecordedInputs::Whole => InputRecording::Whole,
            RecordedInputs::Digest => InputRecording::Digest,
        },
    }
}

/// Returns the usual file of the journal. `None` if there is no home directory.
pub(super) fn default_file() -> Option<PathBuf> {
    folders().first().map(|folder| folder.join("journal.db"))
}

/// Returns the directories that contain journals, of this run or of one with another environment.
/// No tool may read them, so that each is hidden whether or not it exists.
pub(super) fn folders() -> Vec<PathBuf> {
    state_directories().iter().map(|state| folder(state)).collect()
}

fn folder(state: &Path) -> PathBuf {
    state.join("palisade").join("journal")
}

/// Records a journal that is not in the usual place, so that the tools of other runs cannot reach
/// it: they may have another state directory.
fn remember_for_other_runs(file: &Path) {
    let usual = usual_state_directory().map(|state| folder(&state));
    let paths = match file.parent() {
        place if place == usual.as_deref() => return,
        Some(place) if folders().iter().any(|it| it == place) => vec![place.to_owned()],
        _ => files(file),
    };
    for path in paths {
        if let Err(error) = remember(Recorded::Journal, &path) {
            tracing::warn!("{} is not remembered: {error}", path.display());
        }
    }
}

/// Returns the files of a journal: its own, those that SQLite keeps beside it, one that SQLite
/// would play back into it, and the lock of its writer.
fn files(file: &Path) -> Vec<PathBuf> {
    let beside = ["", "-wal", "-shm", "-journal", ".lock"];
    let named = |suffix: &str| {
        let mut name = file.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    };
    beside.map(named).into()
}
