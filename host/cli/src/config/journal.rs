//! The settings of the journal, which only the user's own file may contain: a project could
//! otherwise turn off the record of its own calls.

use super::file::RawJournal;
use super::resolve::{Origin, Value};
use super::size::journal_size;
use super::time::journal_age;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// The age at which records are removed.
const MAX_AGE: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// The size of the file, in bytes.
const MAX_SIZE: u64 = 256 << 20;

/// How the inputs of calls are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordedInputs {
    /// Whole, up to a bound.
    Whole,
    /// As their digest.
    Digest,
}

impl RecordedInputs {
    const ALL: [Self; 2] = [Self::Whole, Self::Digest];

    /// Returns the name used in palisade.toml.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Digest => "digest",
        }
    }
}

impl fmt::Display for RecordedInputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for RecordedInputs {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|known| known.as_str() == text);
        known.ok_or_else(|| format!("`journal.inputs` is `{text}`; want \"whole\" or \"digest\""))
    }
}

/// The settings of the journal in a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JournalConfig {
    /// The file of the journal.
    pub file: Option<PathBuf>,
    /// How inputs are recorded.
    pub inputs: Option<RecordedInputs>,
    /// The age at which records are removed.
    pub max_age: Option<Duration>,
    /// The size of the file, in bytes.
    pub max_size: Option<u64>,
    /// Whether `call` and `dispatch` write the journal as well.
    pub calls: Option<bool>,
}

impl JournalConfig {
    /// Checks the values of a file.
    pub(super) fn checked(raw: &RawJournal) -> Result<Self, String> {
        let file = raw.file.as_deref().map(super::file::expand);
        if let Some(file) = file.as_deref().filter(|file| !file.is_absolute()) {
            let file = file.display();
            return Err(format!(
                "`journal.file` is `{file}`; write the whole path, from `/` or `~/` on"
            ));
        }
        Ok(Self {
            file,
            inputs: raw.inputs.as_deref().map(str::parse).transpose()?,
            max_age: raw.max_age.as_ref().map(|age| journal_age(&age.0)).transpose()?,
            max_size: raw.max_size.as_deref().map(journal_size).transpose()?,
            calls: raw.calls,
        })
    }
}

/// The effective settings of the journal.
#[derive(Debug, Clone)]
pub struct JournalSettings {
    /// The file of the journal; the one in the user's state directory if `None`.
    pub file: Value<Option<PathBuf>>,
    /// How inputs are recorded.
    pub inputs: Value<RecordedInputs>,
    /// The age at which records are removed.
    pub max_age: Value<Duration>,
    /// The size of the file, in bytes.
    pub max_size: Value<u64>,
    /// Whether `call` and `dispatch` write the journal as well.
    pub calls: Value<bool>,
}

impl Default for JournalSettings {
    fn default() -> Self {
        Self {
            file: Value::default(None),
            inputs: Value::default(RecordedInputs::Whole),
            max_age: Value::default(MAX_AGE),
            max_size: Value::default(MAX_SIZE),
            calls: Value::default(false),
        }
    }
}

impl JournalSettings {
    pub(super) fn apply(&mut self, config: JournalConfig, origin: impl Fn() -> Origin) {
        self.file.set(config.file.map(Some), &origin);
        self.inputs.set(config.inputs, &origin);
        self.max_age.set(config.max_age, &origin);
        self.max_size.set(config.max_size, &origin);
        self.calls.set(config.calls, &origin);
    }
}
