//! The installation of a plugin: fetched, looked at, asked about, put in its place, and approved.

use super::approve::{Asking, ask_for, name_clash_of_incoming, review};
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
use palisade_trust::{Entry, Locator, Lock, LockedPlugins, Review, State, shell_word};
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

    /// Lets a fetched plugin describe itself, in an empty sandbox. It is compared with the one of
    /// its name that was installed from `former`, if there is one, and else from its own source.
    pub(super) fn look(
        &self,
        name: &PluginName,
        source: &Source,
        former: Option<&str>,
        fetched: &Fetched,
    ) -> Result<Looked, Failure> {
        let staged = self.folder.stage(name, fetched)?;
        let locked = LockedPlugins::open(&self.lock_path)?;
        let locked = locked.incoming(staged.folder(), source.to_string());
        let locked = match former {
            Some(former) => locked.following(former),
            None => locked,
        };
        let locked = Arc::new(locked);
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
            _ => self.ask(asking, looked)?,
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

    /// Asks about a plugin, with the loaded plugins whose names it has.
    fn ask(&self, asking: &Asking<'_>, looked: &Looked) -> Result<Exit, Failure> {
        let (plugin, folder) = (&looked.plugin, looked.staged.folder());
        let clash = name_clash_of_incoming(self.common, &self.settings, plugin, folder)?;
        let asking = asking.with_clash(clash.as_ref());
        match asking.refusal() {
            Some(exit) => Ok(exit),
            None => ask_for(self.common, &asking, plugin, &looked.review),
        }
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

    /// Tells of the grants of a removed plugin: those of its bytes under every name, those of its
    /// earlier bytes, and those of its signer. They stay.
    pub(super) fn tell_lasting_grants(&self, removed: &Entry) -> Result<(), Failure> {
        let advice = |plugin: &str| {
            let plugin = shell_word(&shown(plugin));
            format!("`palisade grant {plugin} revoke` takes its grants back")
        };
        let has_name = |entry: &PluginEntry| entry.plugin == removed.name;
        let is_bound = |entry: &PluginEntry| match &entry.holder {
            Holder::Digest(digest) => *digest == removed.digest || has_name(entry),
            Holder::Signer(_) | Holder::Shipped => false,
        };
        for grant in grants::given(self.common, is_bound)? {
            let (rule, advice) = (&grant.rule, advice(&grant.plugin));
            output::note(&format!("it had the grant `{rule}`; {advice}"));
        }
        let is_of_signer =
            |entry: &PluginEntry| has_name(entry) && matches!(entry.holder, Holder::Signer(_));
        for grant in grants::given(self.common, is_of_signer)? {
            let (rule, advice) = (&grant.rule, advice(&grant.plugin));
            output::note(&format!("its signer has the grant `{rule}`, which stays; {advice}"));
        }
        Ok(())
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
