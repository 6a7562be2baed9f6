//! The plugins that `palisade approve` looks at.

use crate::cli::args::{Approve as Args, Common};
use crate::cli::exit::{Exit, Failure};
use crate::cli::{hint, output, trust};
use palisade::Host;
use palisade::plugins::{Cause, Plugin};
use palisade::tool::text::elided;
use palisade_trust::{Keys, LockedPlugins};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The host, the approvals and the keys from which a run of `approve` chooses its plugins.
pub(super) struct Pending<'a> {
    pub(super) common: &'a Common,
    pub(super) args: &'a Args,
    pub(super) host: &'a Host,
    pub(super) locked: &'a LockedPlugins,
    pub(super) keys: &'a Keys,
}

impl Pending<'_> {
    /// Returns the plugins to look at: those of the names that were given, or all that are new or
    /// have changed. A plugin that a person has refused for good, by a revocation, is not asked
    /// about again.
    pub(super) fn plugins(&self) -> Result<Vec<Plugin>, Failure> {
        if self.args.names.is_empty() {
            return Ok(self.unnamed());
        }
        let mut found = Vec::new();
        for name in &self.args.names {
            let own = self.named(name)?;
            self.check_choice(name, &own)?;
            found.extend(own);
        }
        Ok(found)
    }

    fn unnamed(&self) -> Vec<Plugin> {
        let (revoked, waiting): (Vec<Plugin>, Vec<Plugin>) = self
            .host
            .unapproved()
            .into_iter()
            .filter(|plugin| self.is_of_source(plugin))
            .partition(|plugin| self.locked.state(plugin).is_revoked());
        if !revoked.is_empty() {
            let names: Vec<&str> = revoked.iter().map(Plugin::name).collect();
            let names = elided(&names.join(", "), 512);
            output::note(&format!("left out, because it was revoked: {names}"));
        }
        waiting
    }

    /// Returns the plugins of one name that wait, or whose signer can be pinned.
    fn named(&self, name: &str) -> Result<Vec<Plugin>, Failure> {
        let is_meant = |plugin: &Plugin| plugin.name() == name && self.is_of_source(plugin);
        let mut found = self.host.unapproved();
        found.retain(is_meant);
        if !found.is_empty() {
            return Ok(found);
        }
        let mut approved = self.host.plugins();
        approved.retain(is_meant);
        if approved.is_empty() {
            return Err(self.missing(name));
        }
        if let Some(named) = &self.args.digest
            && let Some(other) = approved.iter().find(|plugin| plugin.digest() != *named)
        {
            let (name, digest) = (elided(name, 128), other.digest());
            let text = format!(
                "`{name}` is approved with the digest {digest}, and --digest names another one"
            );
            return Err(Failure::new(Exit::Denied, text));
        }
        approved.retain(|plugin| trust::lacks_signer(self.locked, self.keys, plugin));
        if approved.is_empty() {
            output::note(&format!("`{}` is approved already", elided(name, 128)));
        }
        Ok(approved)
    }

    fn is_of_source(&self, plugin: &Plugin) -> bool {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let Some(source) = &self.args.source else { return true };
        trust::folder(plugin).is_some_and(|folder| real(&folder) == real(source))
    }

    /// Refuses to approve files of several directories under one name without a person: the name
    /// was typed for one of them.
    fn check_choice(&self, name: &str, found: &[Plugin]) -> Result<(), Failure> {
        let folders: BTreeSet<PathBuf> = found.iter().filter_map(trust::folder).collect();
        if !self.args.consent.yes || folders.len() < 2 {
            return Ok(());
        }
        let shown: Vec<String> =
            folders.iter().map(|folder| elided(&folder.to_string_lossy(), 256)).collect();
        Err(Failure::usage(format!(
            "several directories have a plugin `{}`: {}; name one with --source",
            elided(name, 128),
            shown.join(", ")
        )))
    }

    fn missing(&self, name: &str) -> Failure {
        let shown = elided(name, 128);
        let is_file = |file: &str| Path::new(file).file_stem().is_some_and(|stem| stem == name);
        let rejected = self.host.rejected();
        let mut broken = rejected.iter().filter(|it| it.cause != Cause::NotApproved);
        match broken.find(|it| is_file(&it.file)) {
            Some(broken) => Failure::new(
                Exit::Invalid,
                format!("`{shown}` cannot be approved: {}", broken.reason),
            ),
            None => {
                let known = [self.host.unapproved(), self.host.plugins()].concat();
                let asked = hint::did_you_mean(name, known.iter().map(Plugin::name));
                let list = hint::command(self.common, "list");
                Failure::new(
                    Exit::NotFound,
                    format!(
                        "there is no plugin `{shown}`{asked}; `{list}` shows the plugins there are, and `palisade mcp list` the MCP servers"
                    ),
                )
            }
        }
    }
}
