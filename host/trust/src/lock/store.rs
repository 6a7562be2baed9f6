//! The words of approved plugins, kept beside the lock so that a later difference can quote them.
//! Each file is named after the hash of its words, which is checked when it is read: the lock
//! decides what was approved, and these files only show it.

use super::Lock;
use crate::words::{Words, WordsHash};
use palisade::internal::{PRIVATE_PREFIX, open_regular};
use palisade::workspace::LastLink;
use std::collections::HashSet;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// The largest file that is read, in bytes. A plugin's words are bounded when it is loaded.
const MAX_FILE: u64 = 64 << 20;

/// Returns the folder of the words beside a lock: `palisade.words` for `palisade.lock`.
fn folder(lock: &Path) -> PathBuf {
    lock.with_extension("words")
}

fn file(lock: &Path, hash: WordsHash) -> PathBuf {
    let name = hash.to_string().replace(':', "-");
    folder(lock).join(name).with_extension("json")
}

/// Keeps the words of an approved plugin, and removes those that no entry of the lock names.
pub(crate) fn keep_words(path: &Path, lock: &Lock, words: &Words) -> io::Result<()> {
    let folder = folder(path);
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
    let mut fresh = tempfile::Builder::new().prefix(PRIVATE_PREFIX).tempfile_in(&folder)?;
    fresh.write_all(serde_json::to_string(words)?.as_bytes())?;
    fresh.persist(file(path, words.hash())).map_err(|error| error.error)?;
    let named: HashSet<PathBuf> =
        lock.entries().iter().map(|entry| file(path, entry.describes)).collect();
    for entry in fs::read_dir(&folder)?.flatten() {
        let other = entry.path();
        if other.extension().is_some_and(|it| it == "json") && !named.contains(&other) {
            fs::remove_file(other)?;
        }
    }
    Ok(())
}

/// Returns the words with this hash, if they were kept and are unchanged.
pub(crate) fn kept_words(path: &Path, hash: WordsHash) -> Option<Words> {
    let file = open_regular(&file(path, hash), LastLink::Keep).ok()?;
    let mut text = String::new();
    file.take(MAX_FILE).read_to_string(&mut text).ok()?;
    let words: Words = serde_json::from_str(&text).ok()?;
    (words.hash() == hash).then_some(words)
}
