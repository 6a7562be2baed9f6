//! The installation of a plugin: fetched, looked at, asked about, put in its place, and approved.

use super::approve::{Asking, ask_for, review};
use super::args::Common;
use super::exit::{Exit, Failure};
use super::{grants, output, setup, trust};
use crate::config::Settings;
use palisade::plugins::Plugin;
use palisade::tool::text::{elided, visible};
use palisade_net::{ExchangeError, Holder, Network, PluginEntry};
use palisade_store::{
    CredentialsOf, Fetched, InstallError, InstallFolder, PluginName, Source, SourceError, Staged,
    TransferError, fetch,
};
use palisade_trust::{Entry, Locator, Lock, LockedPlugins, Review, State};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// The folder of installed plugins and its lock, held for one change.
pub(super) struct Installing<'a> {
    common: &'a Common,
    settings: Settings,
    network: Network,
    credentials: CredentialsOf,
    lock_path: PathBuf,
    folder: InstallFolder,
}

/// A plugin of a source, as it describes itself.
pub(super) struct Looked {
    pub(super) plugin: Plugin,
    pub(super) review: Review,
    staged: Staged,
}

/// Returns the network and the credentials of this run.
pub(super) fn transfer() -> (Network, CredentialsOf) {
    (Network::default(), CredentialsOf::environment(&|name| std::env::var(name).ok()))
}

impl<'a> Installing<'a> {
    /// Opens the folder, and removes what an interrupted change has left.
    pub(super) fn open(common: &'a Common) -> Result<Self, Failure> {
        let settings = setup::settings(common)?;
        let lock_path = trust::writable_lock(common)?;
        // A lock that cannot be used is an error before anything is fetched.
        let lock = Lock::read(&lock_path)?;
        let folder = InstallFolder::open(&lock_path)?;
        folder.clean(&lock)?;
        let (network, credentials) = transfer();
        Ok(Self { common, settings, network, credentials, lock_path, folder })
    }

    /// Returns the user's lock.
    pub(super) fn lock(&self) -> Result<Lock, Failure> {
        Ok(Lock::read(&self.lock_path)?)
    }

    /// Returns true if the file of an installed plugin is there.
    pub(super) fn has_file(&self, entry: &Entry) -> bool {
        self.folder.has(&entry.name, entry.digest)
    }

    /// Returns true if there is a file in the place of an installed plugin, whatever its bytes.
    pub(super) fn has_any_file(&self, entry: &Entry) -> bool {
        self.folder.has_any(&entry.name, entry.digest)
    }

    pub(super) fn fetch(&self, source: &Source) -> Result<Fetched, Failure> {
        Ok(fetch(&self.network, source, &self.credentials)?)
    }

    /// Lets a fetched plugin describe itself, in an empty sandbox.
    pub(super) fn look(
        &self,
        name: &PluginName,
        source: &Source,
        fetched: &Fetched,
    ) -> Result<Looked, Failure> {
        let staged = self.folder.stage(name, fetched)?;
        let locked = LockedPlugins::open(&self.lock_path)?;
        let locked = Arc::new(locked.incoming(staged.folder(), source.to_string()));
        let builder = setup::to_look(self.common, &self.settings)?;
        let host = builder.plugins(staged.folder()).approvals(locked.clone()).build()?;
        let found = host.unapproved().into_iter().chain(host.plugins()).next();
        let Some(plugin) = found else {
            let reason = host.rejected().into_iter().next().map(|rejected| rejected.reason);
            let reason = reason.unwrap_or_else(|| "it was not found".to_owned());
            let source = visible(&source.to_string());
            return Err(Failure::new(Exit::Invalid, format!("`{source}` is no plugin: {reason}")));
        };
        let mut review = review(&locked, &trust::keys(&self.settings), &plugin)?;
        review.entry.resolved = fetched.resolved.map(|digest| digest.to_string());
        Ok(Looked { plugin, review, staged })
    }

    /// Asks about a plugin, and installs it after a yes. A plugin that is approved as it is was
    /// asked about before, unless its signature is another one now, or gone.
    pub(super) fn install(&self, asking: &Asking<'_>, looked: &Looked) -> Result<Exit, Failure> {
        let exit = match looked.review.state {
            State::Approved if looked.review.obstacles().is_empty() => Exit::Ok,
            _ => ask_for(self.common, asking, &looked.plugin, &looked.review)?,
        };
        if exit != Exit::Ok {
            return Ok(exit);
        }
        self.folder.place(&looked.staged)?;
        // With this step the plugin is installed.
        looked.review.approve(&self.lock_path)?;
        self.folder.clean(&self.lock()?)?;
        Ok(Exit::Ok)
    }

    /// Restores the file of a plugin that the lock has. Nothing else changes.
    pub(super) fn restore(&self, name: &PluginName, fetched: &Fetched) -> Result<(), Failure> {
        let staged = self.folder.stage(name, fetched)?;
        self.folder.place(&staged)?;
        Ok(())
    }

    /// Records another artifact of the source with the same bytes.
    pub(super) fn resolve(&self, entry: &Entry, resolved: Option<String>) -> Result<(), Failure> {
        if entry.resolved != resolved {
            Lock::update(&self.lock_path, |lock| lock.resolve(of(entry), resolved))?;
        }
        Ok(())
    }

    /// Removes a plugin. A revocation stays in the lock: the bytes are refused also later.
    pub(super) fn remove(&self, entry: &Entry) -> Result<(), Failure> {
        PluginName::parse(&entry.name)?;
        if entry.revoked.is_none() {
            Lock::update(&self.lock_path, |lock| lock.remove(of(entry)))?;
        }
        self.folder.remove(&entry.name, entry.digest)?;
        Ok(())
    }

    /// Tells of the grants that a plugin had by its bytes.
    pub(super) fn tell_grants(&self, name: &str, advice: &str) -> Result<(), Failure> {
        let is_bound = |entry: &PluginEntry| matches!(entry.holder, Holder::Digest(_));
        for grant in self.grants_of(name, is_bound)? {
            output::note(&format!("it had the grant `{grant}`; {advice}"));
        }
        Ok(())
    }

    /// Tells of the grants of a removed plugin that were given to its signer, and stay.
    pub(super) fn tell_lasting_grants(&self, name: &str, advice: &str) -> Result<(), Failure> {
        let is_of_signer = |entry: &PluginEntry| matches!(entry.holder, Holder::Signer(_));
        for grant in self.grants_of(name, is_of_signer)? {
            output::note(&format!("its signer has the grant `{grant}`, which stays; {advice}"));
        }
        Ok(())
    }

    /// Returns the grants of a plugin that are meant, as a person reads them.
    fn grants_of(
        &self,
        name: &str,
        is_meant: impl Fn(&PluginEntry) -> bool,
    ) -> Result<Vec<String>, Failure> {
        grants::of_plugin(self.common, name, is_meant)
    }
}

fn of(entry: &Entry) -> Locator<'_> {
    Locator { name: &entry.name, source: &entry.source }
}

/// Returns the name of a plugin in printable form.
pub(super) fn shown(name: &str) -> String {
    elided(name, 128)
}

impl From<SourceError> for Failure {
    fn from(error: SourceError) -> Self {
        Self::usage(error)
    }
}

impl From<InstallError> for Failure {
    fn from(error: InstallError) -> Self {
        let exit = match &error {
            InstallError::Busy => Exit::Limit,
            _ => Exit::Usage,
        };
        Self::new(exit, visible(&error.to_string()))
    }
}

impl From<TransferError> for Failure {
    fn from(error: TransferError) -> Self {
        let exit = match &error {
            TransferError::File { reason, .. } if reason.kind() == io::ErrorKind::NotFound => {
                Exit::NotFound
            }
            TransferError::Status { status: 404 | 410, .. } => Exit::NotFound,
            TransferError::Exchange { reason, .. } => match reason {
                ExchangeError::Refused(_)
                | ExchangeError::Unencrypted { .. }
                | ExchangeError::Address { .. } => Exit::Denied,
                ExchangeError::TooLarge { .. } | ExchangeError::Slow => Exit::Limit,
                _ => Exit::Internal,
            },
            TransferError::Status { .. } => Exit::Internal,
            TransferError::Redirect { .. }
            | TransferError::Access { .. }
            | TransferError::OtherBytes { .. } => Exit::Denied,
            TransferError::Layout { .. } | TransferError::NoComponent { .. } => Exit::Invalid,
            _ => Exit::Usage,
        };
        Self::new(exit, visible(&error.to_string()))
    }
}
