//! A host's approvals, according to the lock of its user and, to tighten it, that of a project.

mod locks;

use crate::lock::{Change, Entry, Locator, Lock, LockError, State};
use crate::lock::{installed_file, installed_folder};
use crate::shell_word::shell_name;
use crate::signature::Signer;
use crate::words::Words;
use locks::Locks;
use palisade::plugins::{Approvals, NotApproved, Plugin, PluginApproval, PluginBytes};
use palisade::tool::Digest;
use palisade::tool::text::elided;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// The part of a plugin that runs without an approval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Strictness {
    /// It describes itself, in an empty sandbox, so that a person can look at it.
    #[default]
    Describe,
    /// Nothing: bytes that are not approved are not compiled.
    Locked,
}

/// The approvals of a host.
#[derive(Debug)]
pub struct LockedPlugins {
    /// The user's lock; without one nothing is approved.
    path: Option<PathBuf>,
    project: Option<PathBuf>,
    distrusted: Option<Distrusted>,
    explicit: Vec<PathBuf>,
    incoming: Option<Incoming>,
    strictness: Strictness,
    /// The command that approves, without the name of the plugin.
    command: String,
    /// The command that fetches an installed plugin again, without the name of the plugin.
    update_command: String,
    locks: RwLock<Locks>,
    /// Held while the locks are read, so that an older state never takes the place of a newer one.
    reading: Mutex<()>,
}

/// A folder with a plugin that is about to be installed.
#[derive(Debug)]
struct Incoming {
    folder: PathBuf,
    source: String,
    /// The source that the plugin was installed from before, if it follows one of another source.
    former: Option<String>,
}

/// A lock of the user that tools of the host could change.
#[derive(Debug)]
struct Distrusted {
    path: PathBuf,
    /// The advice for a plugin without an approval.
    remedy: String,
}

impl LockedPlugins {
    /// Reads the lock of a user. A missing file approves nothing.
    ///
    /// # Errors
    ///
    /// [`LockError`] if the file exists and cannot be used.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, LockError> {
        Self::open_with(Some(path.into()), None)
    }

    /// Does the same, with the lock of a project, which only tightens: a plugin whose name it has
    /// must have the digest that it has there. A missing file says nothing. A user without a lock
    /// has approved nothing.
    ///
    /// # Errors
    ///
    /// [`LockError`] if one of the files exists and cannot be used.
    pub fn open_with(path: Option<PathBuf>, project: Option<PathBuf>) -> Result<Self, LockError> {
        let locks = Locks::read(path.as_deref(), project.as_deref(), None)?;
        Ok(Self {
            path,
            project,
            distrusted: None,
            explicit: Vec::new(),
            incoming: None,
            strictness: Strictness::Describe,
            command: "palisade approve".to_owned(),
            update_command: "palisade update".to_owned(),
            locks: RwLock::new(locks),
            reading: Mutex::default(),
        })
    }

    /// Reads a lock that tools of the host could change, such as one in the workspace. It approves
    /// nothing, and the bytes that it revokes are revoked. A missing file says nothing. `remedy` is
    /// the advice for a plugin that is not approved, in place of the command that approves.
    ///
    /// # Errors
    ///
    /// [`LockError`] if the file exists and cannot be used.
    pub fn distrusting(mut self, path: PathBuf, remedy: String) -> Result<Self, LockError> {
        let locks = Locks::read(self.path.as_deref(), self.project.as_deref(), Some(&path))?;
        self.locks = RwLock::new(locks);
        self.distrusted = Some(Distrusted { path, remedy });
        Ok(self)
    }

    /// Names files, and directories of files, that a person has named for this run.
    #[must_use]
    pub fn explicit(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        self.explicit.extend(paths.into_iter().map(|path| real(&path)));
        self
    }

    /// Says that the plugin in a folder is about to be installed from a source.
    #[must_use]
    pub fn incoming(mut self, folder: impl Into<PathBuf>, source: impl Into<String>) -> Self {
        let (folder, source) = (folder.into(), source.into());
        self.incoming = Some(Incoming { folder, source, former: None });
        self
    }

    /// Says that the incoming plugin follows the one of its name from another source, such as an
    /// earlier tag. It is compared with that, and its approval replaces that of the other.
    #[must_use]
    pub fn following(mut self, former: impl Into<String>) -> Self {
        if let Some(incoming) = &mut self.incoming {
            incoming.former = Some(former.into());
        }
        self
    }

    /// Sets what runs of a plugin that is not approved. With [`Strictness::Locked`], plugins that
    /// were named for this run have to be approved as well.
    #[must_use]
    pub fn strictness(mut self, strictness: Strictness) -> Self {
        self.strictness = strictness;
        self
    }

    /// Sets the command that approves a plugin, to which its name is added. Default: `palisade
    /// approve`.
    #[must_use]
    pub fn command(mut self, command: impl Into<String>) -> Self {
        self.command = command.into();
        self
    }

    /// Sets the command that fetches an installed plugin again, to which its name is added.
    /// Default: `palisade update`.
    #[must_use]
    pub fn update_command(mut self, command: impl Into<String>) -> Self {
        self.update_command = command.into();
        self
    }

    /// Returns the path of the user's lock, if there is one.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Returns the names of the installed plugins whose files are missing.
    #[must_use]
    pub fn missing(&self) -> Vec<String> {
        let Some(folder) = self.path.as_deref().map(installed_folder) else { return Vec::new() };
        let is_missing = |entry: &&Entry| {
            let file = folder.join(installed_file(&entry.name, entry.digest));
            entry.revoked.is_none() && !file.is_file()
        };
        let named = |entry: &Entry| elided(&entry.name, 128);
        self.read(|locks| locks.user.installed().filter(is_missing).map(named).collect())
    }

    /// Returns the user's approval of a plugin.
    #[must_use]
    pub fn entry(&self, of: Locator<'_>) -> Option<Entry> {
        self.read(|locks| locks.user.entry(of).cloned())
    }

    /// Returns the signer of an approved file of this name.
    #[must_use]
    pub fn signer(&self, name: &str, digest: Digest) -> Option<Signer> {
        self.read(|locks| {
            let mut approved = locks.approved(name);
            approved.find(|entry| entry.digest == digest).and_then(|entry| entry.signer.clone())
        })
    }

    /// Returns the digests of the approved files of this name that a key has signed.
    #[must_use]
    pub fn signed_by(&self, name: &str, key: &str) -> Vec<Digest> {
        let is_signed =
            |entry: &&Entry| entry.signer.as_ref().is_some_and(|signer| signer.to_string() == key);
        self.read(|locks| {
            locks.approved(name).filter(is_signed).map(|entry| entry.digest).collect()
        })
    }

    /// Returns the state of a loaded plugin.
    #[must_use]
    pub fn state(&self, plugin: &Plugin) -> State {
        let Some(path) = plugin.path() else { return State::Shipped };
        let (definitions, offer) = (plugin.definitions(), plugin.offer());
        let hash = Words::hash_of(definitions, offer);
        let source = self.source_of(plugin.name(), path);
        let of = Locator { name: plugin.name(), source: &source };
        let digest = plugin.digest();
        let judge = |lock: &Lock| match lock.is_as_approved(of, digest, hash) {
            true => State::Approved,
            false => lock.judge(of, digest, &Words::new(definitions, offer)),
        };
        self.read(|locks| locks.judge(of, digest, judge))
    }

    /// Returns the source that the lock has for a plugin's file: that of the installed plugin of
    /// this name in the folder of installed plugins, and else the directory, as an absolute path.
    pub(crate) fn source_of(&self, name: &str, file: &Path) -> String {
        if let Some(incoming) = self.incoming_of(file) {
            return incoming.former.as_ref().unwrap_or(&incoming.source).clone();
        }
        let source_of = |entry: &Entry| entry.source.clone();
        let installed = match self.is_installed(file) {
            true => self.read(|locks| locks.user.installed_as(name).map(source_of)),
            false => None,
        };
        installed.unwrap_or_else(|| folder_of(file).to_string_lossy().into_owned())
    }

    /// Returns true if a file is in the folder of installed plugins.
    fn is_installed(&self, file: &Path) -> bool {
        self.path.as_ref().is_some_and(|lock| installed_folder(lock) == folder_of(file))
    }

    /// Returns the source that a file is about to be installed from.
    pub(crate) fn incoming_source(&self, file: &Path) -> Option<&str> {
        self.incoming_of(file).map(|incoming| incoming.source.as_str())
    }

    fn incoming_of(&self, file: &Path) -> Option<&Incoming> {
        self.incoming.as_ref().filter(|incoming| incoming.folder == folder_of(file))
    }

    fn read<T>(&self, look: impl FnOnce(&Locks) -> T) -> T {
        look(&self.locks.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the lock of the project if that refuses a plugin, whatever the user has approved.
    #[must_use]
    pub fn refused_by_project(&self, plugin: &Plugin) -> Option<&Path> {
        let path = self.project.as_deref()?;
        let is_refused = self.read(|locks| locks.project_refuses(plugin.name(), plugin.digest()));
        Some(path).filter(|_| is_refused && plugin.path().is_some())
    }

    /// Returns the refusal of a plugin in this state.
    fn refusal(&self, name: &str, file: &Path, state: &State) -> NotApproved {
        let fault = self.read(|locks| locks.fault.clone());
        let reason = fault.unwrap_or_else(|| state.in_words());
        let advice = match (state, &self.project, &self.distrusted) {
            (State::Changed(changes), Some(lock), _) if changes[..] == [Change::Project] => {
                format!(
                    "install the file that `{}` names, or change that lock: an approval of your own \
                 does not",
                    elided(&lock.to_string_lossy(), 512)
                )
            }
            (_, _, Some(distrusted)) => distrusted.remedy.clone(),
            (State::Changed(_), _, _) if self.is_installed(file) => self.fetch_advice(name),
            (State::Revoked { .. }, _, _) if self.is_installed(file) => {
                let name = shell_name(&elided(name, 128));
                format!(
                    "`palisade remove {name}` removes its file; `{} {name}` at a terminal approves \
                     it again",
                    self.command
                )
            }
            (State::Revoked { .. }, _, _) => {
                let name = shell_name(&elided(name, 128));
                format!(
                    "delete the file, or approve it again at a terminal: `{} {name}`",
                    self.command
                )
            }
            _ => {
                let name = shell_name(&elided(name, 128));
                format!("`{} {name}` shows it and asks", self.command)
            }
        };
        NotApproved::new(reason, advice)
    }

    /// Returns the advice for an installed file that is not the approved one.
    fn fetch_advice(&self, name: &str) -> String {
        let name = shell_name(&elided(name, 128));
        format!("`{} {name}` fetches the approved file again", self.update_command)
    }

    /// Returns true if a person has named a file for this run. That stands in for a missing
    /// approval, not for a refusal.
    fn is_named_for_this_run(&self, file: &Path, state: &State) -> bool {
        let folder = file.parent().unwrap_or(Path::new("."));
        matches!(state, State::New { .. } | State::Changed(_))
            && self.strictness == Strictness::Describe
            && !self.explicit.is_empty()
            && [file, folder].into_iter().any(|path| self.explicit.contains(&real(path)))
    }
}

impl Approvals for LockedPlugins {
    fn scan_begins(&self) {
        let _reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let distrusted = self.distrusted.as_ref().map(|it| it.path.as_path());
        let read = Locks::read(self.path.as_deref(), self.project.as_deref(), distrusted);
        let read = read.unwrap_or_else(|error| Locks {
            fault: Some(format!("the approvals cannot be read: {error}")),
            ..Locks::default()
        });
        *self.locks.write().unwrap_or_else(PoisonError::into_inner) = read;
    }

    fn check_bytes(&self, bytes: &PluginBytes<'_>) -> Result<(), NotApproved> {
        if self.strictness == Strictness::Describe {
            return Ok(());
        }
        self.refusal_of_bytes(bytes).map_or(Ok(()), Err)
    }

    fn refusal_of_bytes(&self, bytes: &PluginBytes<'_>) -> Option<NotApproved> {
        let source = self.source_of(bytes.name, bytes.path);
        let of = Locator { name: bytes.name, source: &source };
        let judge = |lock: &Lock| lock.judge_bytes(of, bytes.digest);
        match self.read(|locks| locks.judge(of, bytes.digest, judge)) {
            State::Shipped | State::Approved => None,
            state if self.is_named_for_this_run(bytes.path, &state) => None,
            state => Some(self.refusal(bytes.name, bytes.path, &state)),
        }
    }

    fn of(&self, plugin: &Plugin) -> PluginApproval {
        let Some(file) = plugin.path() else { return PluginApproval::Approved };
        let missing = |state: &State| {
            PluginApproval::Missing(Arc::new(self.refusal(plugin.name(), file, state)))
        };
        match self.state(plugin) {
            State::Shipped | State::Approved => PluginApproval::Approved,
            state if self.is_named_for_this_run(file, &state) => {
                // Naming a plugin stands in for an approval, and overrides no refusal.
                match self.refused_by_project(plugin) {
                    None => PluginApproval::ThisRun,
                    Some(_) => missing(&State::Changed(vec![Change::Project])),
                }
            }
            state => missing(&state),
        }
    }

    fn files(&self) -> Vec<PathBuf> {
        let distrusted = self.distrusted.iter().map(|it| &it.path);
        self.path.iter().chain(&self.project).chain(distrusted).cloned().collect()
    }

    fn change_of(&self, name: &str, path: &Path, digest: Option<Digest>) -> Option<String> {
        let entry = self.entry(Locator { name, source: &self.source_of(name, path) })?;
        if entry.revoked.is_some() || digest == Some(entry.digest) {
            return None;
        }
        Some(match self.is_installed(path) {
            true => format!("it has changed since it was installed ({})", self.fetch_advice(name)),
            false => "it has changed since it was approved".to_owned(),
        })
    }
}

/// Returns the folder of a file, as an absolute path.
fn folder_of(file: &Path) -> PathBuf {
    let folder = file.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned())
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}
