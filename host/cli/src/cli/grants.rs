//! The grants of plugins: `grants.toml` beside the user's own settings, and never a file in the
//! workspace.

mod live;

use super::args::{Common, Programs};
use super::exit::{Exit, Failure};
use super::user_file::{Patience, make_private, patient, replace, take, target};
use super::{output, setup, trust};
use crate::config::NetworkSettings;
use live::{LiveGrants, LiveRights};
use palisade::internal::{open_deciding_file, open_turn_file, shipped_owner};
use palisade::tool::Digest;
use palisade::tool::text::visible;
use palisade::{Host, HostBuilder};
use palisade_net::{Grant, GrantFile, Grants, Holder, NameServer, Network, PluginEntry};
use palisade_trust::{LockedPlugins, Review};
use std::collections::HashMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The shipped plugin that runs programs.
const CODE: &str = "code";

/// The name of the file.
const FILE: &str = "grants.toml";

/// The most bytes of the file.
const MAX_BYTES: u64 = 1 << 20;

/// Returns the file of grants beside a configuration file.
pub(super) fn beside(settings: &Path) -> Option<PathBuf> {
    settings.parent().filter(|_| !settings.as_os_str().is_empty()).map(|folder| folder.join(FILE))
}

/// Returns the file of grants of this run.
pub(super) fn file(common: &Common) -> Result<PathBuf, Failure> {
    let beside = beside(&setup::user_file(common));
    beside.and_then(|file| std::path::absolute(file).ok()).ok_or_else(|| {
        Failure::usage("there is no home directory for the grants of plugins; give a configuration file with --config")
    })
}

/// Reads the grants of this run. No file means no grants, and so does one in the workspace: tools
/// of class execute could change it.
///
/// # Errors
///
/// A usage error if the file cannot be read, is invalid, or can be changed by other people: a run
/// without its grants would refuse plugins, and one with half of them would surprise.
pub(super) fn read(common: &Common) -> Result<GrantFile, Failure> {
    if let Some(file) = distrusted(common).filter(|_| common.workspace.is_dir()) {
        output::note(&format!(
            "the grants in `{}` are not used: they are in the workspace, where tools could change them; give another --workspace or --config",
            visible(&file.display().to_string())
        ));
    }
    read_silently(common)
}

/// Reads the grants of this run as [`read`] does, without a word about a file in the workspace.
fn read_silently(common: &Common) -> Result<GrantFile, Failure> {
    let own = beside(&setup::user_file(common));
    let own = own.filter(|file| file.symlink_metadata().is_ok() && distrusted(common).is_none());
    own.map_or_else(|| Ok(GrantFile::default()), |file| read_file(&file))
}

/// Returns the file of grants, if it is in the workspace.
fn distrusted(common: &Common) -> Option<PathBuf> {
    let own = beside(&setup::user_file(common));
    own.filter(|file| file.symlink_metadata().is_ok() && trust::is_in_workspace(common, file))
}

fn read_file(file: &Path) -> Result<GrantFile, Failure> {
    let invalid = |reason: &dyn std::fmt::Display| {
        Failure::usage(format!(
            "the grants in `{}` cannot be used: {reason}",
            visible(&file.display().to_string())
        ))
    };
    let opened = open_deciding_file(file).map_err(|error| invalid(&error))?;
    let mut text = String::new();
    let read = opened.take(MAX_BYTES + 1).read_to_string(&mut text);
    read.map_err(|error| invalid(&error))?;
    if text.len() as u64 > MAX_BYTES {
        return Err(invalid(&"the file is larger than 1 MiB"));
    }
    text.parse::<GrantFile>().map_err(|error| {
        invalid(&format!(
            "{error}; correct the file, or remove it and let `palisade grant` write it"
        ))
    })
}

/// A grant, as a person reads it.
pub(super) struct Given {
    /// The name that the plugin had when the grant was given.
    pub(super) plugin: String,
    /// The rule.
    pub(super) rule: String,
}

/// Returns the grants of the entries that are meant.
pub(super) fn given(
    common: &Common,
    is_meant: impl Fn(&PluginEntry) -> bool,
) -> Result<Vec<Given>, Failure> {
    let file = read_silently(common)?;
    let meant = file.entries().iter().filter(|entry| is_meant(entry));
    let given = |entry: &PluginEntry| {
        let plugin = entry.plugin.clone();
        let rules: Vec<String> = entry.grants.iter().map(ToString::to_string).collect();
        rules.into_iter().map(move |rule| Given { plugin: plugin.clone(), rule })
    };
    Ok(meant.flat_map(given).collect())
}

/// Returns the grants that a plugin has with its approval: they were given to its signer, or to
/// these bytes. The approval is the only question about them.
pub(super) fn with_approval(
    common: &Common,
    entry: &palisade_trust::Entry,
) -> Result<Vec<String>, Failure> {
    let signer = entry.signer.as_ref().map(ToString::to_string);
    let is_of = |grants: &PluginEntry| match &grants.holder {
        Holder::Signer(key) => grants.plugin == entry.name && Some(key) == signer.as_ref(),
        Holder::Digest(digest) => *digest == entry.digest,
        Holder::Shipped => false,
    };
    Ok(given(common, is_of)?.into_iter().map(|it| it.rule).collect())
}

/// Tells of the grants that a plugin had, and has no more with its approval: those of its former
/// bytes, under whatever name they were given, and those of its former signer.
pub(super) fn tell_of_former(common: &Common, review: &Review) {
    let Some(former) = &review.former else { return };
    let now = &review.entry;
    let signer = former.signer.as_ref().filter(|_| former.signer != now.signer);
    let signer = signer.map(ToString::to_string);
    let is_lost = |grants: &PluginEntry| match &grants.holder {
        Holder::Digest(digest) => *digest == former.digest && former.digest != now.digest,
        Holder::Signer(key) => grants.plugin == former.name && Some(key) == signer.as_ref(),
        Holder::Shipped => false,
    };
    let lost = given(common, is_lost).unwrap_or_else(|failure| {
        output::note(&format!("the grants that it had are not known: {failure}"));
        Vec::new()
    });
    for grant in lost {
        let rule = grant.rule;
        output::note(&format!(
            "it had the grant `{rule}`, which is for the bytes or the signer that it was given to: give it again if you still mean it"
        ));
    }
}

/// Changes the grants of this run: under a lock, and atomically.
pub(super) fn change<T>(
    common: &Common,
    change: impl FnOnce(&mut GrantFile) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let named = file(common)?;
    let failed = |reason: &dyn std::fmt::Display| {
        let file = visible(&named.display().to_string());
        Failure::new(Exit::Internal, format!("the grants in `{file}` are not changed: {reason}"))
    };
    let file = target(&named).ok_or_else(|| failed(&"the link leads nowhere"))?;
    refuse_in_workspace(common, &file)?;
    let folder = file.parent().unwrap_or(Path::new("/"));
    make_private(folder).map_err(|error| failed(&error))?;
    let lock = open_turn_file(folder).map_err(|error| failed(&error))?;
    match take(&lock, patient()).map_err(|error| failed(&error))? {
        Patience::Left => {}
        Patience::Over => return Err(failed(&"another process holds their lock")),
    }
    let mut grants = match file.symlink_metadata() {
        Ok(_) => read_file(&file)?,
        Err(_) => GrantFile::default(),
    };
    let result = change(&mut grants)?;
    let text = grants.to_text().map_err(|error| failed(&error))?;
    if text.len() as u64 > MAX_BYTES {
        return Err(failed(&"they would be larger than 1 MiB"));
    }
    replace(&file, &text).map_err(|error| failed(&error))?;
    Ok(result)
}

/// Refuses a file that tools and other people can change.
fn refuse_in_workspace(common: &Common, file: &Path) -> Result<(), Failure> {
    match trust::is_in_workspace(common, file) {
        true => Err(Failure::usage(format!(
            "the grants would be in the workspace, in `{}`, where tools could write them; run `grant` with another --workspace or --config",
            visible(&file.display().to_string())
        ))),
        false => Ok(()),
    }
}

/// Adds the approvals and the grants of this run to a host, which reads them again when it watches
/// its approvals.
pub(super) fn add_to(
    base: HostBuilder,
    common: &Common,
    settings: &NetworkSettings,
    approvals: LockedPlugins,
) -> Result<HostBuilder, Failure> {
    let entries = entries(common, &read(common)?)?;
    let grants = Arc::new(resolved(&entries, settings)?);
    let live = LiveGrants::new(common, grants.clone(), entries);
    let rights = LiveRights { approvals, grants: live };
    Ok(base.powers(grants).approvals(Arc::new(rights)))
}

/// Returns the grants of all plugins.
pub(super) fn all(common: &Common, settings: &NetworkSettings) -> Result<Grants, Failure> {
    resolved(&entries(common, &read(common)?)?, settings)
}

/// A plugin by its digest, with an entry of the file that is for it.
type Entry = (Digest, PluginEntry);

/// Returns the entries with the plugins that they are for.
fn entries(common: &Common, file: &GrantFile) -> Result<Vec<Entry>, Failure> {
    let mut entries = Vec::new();
    for entry in file.entries() {
        let plugins = digests(common, entry)?;
        entries.extend(plugins.into_iter().map(|plugin| (plugin, entry.clone())));
    }
    entries.extend(of_programs(common));
    Ok(entries)
}

/// Returns the grant of all tools to programs, if the subcommand says so.
fn of_programs(common: &Common) -> Option<Entry> {
    match common.programs {
        Programs::AsGranted => return None,
        Programs::Granted | Programs::InPlaceOfTools => {}
    }
    let grants = Grant::tools("*").into_iter().collect();
    let entry = PluginEntry { plugin: CODE.to_owned(), holder: Holder::Shipped, grants };
    Some((shipped(CODE)?, entry))
}

/// Returns one entry for each plugin: it may have grants by its bytes and by its signer, and has
/// both.
fn merged(entries: &[Entry]) -> HashMap<Digest, PluginEntry> {
    let mut merged: HashMap<Digest, PluginEntry> = HashMap::new();
    for (plugin, entry) in entries {
        match merged.get_mut(plugin) {
            Some(first) => first.grants.extend(entry.grants.iter().cloned()),
            None => drop(merged.insert(*plugin, entry.clone())),
        }
    }
    merged
}

fn resolved(entries: &[Entry], settings: &NetworkSettings) -> Result<Grants, Failure> {
    let grants = Grants::new(network(settings)?);
    let add = |grants: Grants, (plugin, entry): (Digest, PluginEntry)| {
        grants.plugin(plugin, entry.resolve(&variable))
    };
    Ok(merged(entries).into_iter().fold(grants, add))
}

/// Returns the value of an environment variable of this process.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Returns the network of granted requests, with the configured name server.
fn network(settings: &NetworkSettings) -> Result<Network, Failure> {
    let Some(server) = settings.name_server.value else { return Ok(Network::default()) };
    let resolver = NameServer::new(server).map_err(|error| {
        let text =
            format!("the name server {server} (`network.name_server`) cannot be used: {error}");
        Failure::new(Exit::Internal, text)
    })?;
    Ok(Network::new(Arc::new(resolver), Vec::new()))
}

/// Returns the digests of the files that have the grants of an entry.
pub(super) fn digests(common: &Common, entry: &PluginEntry) -> Result<Vec<Digest>, Failure> {
    Ok(match &entry.holder {
        Holder::Digest(digest) => vec![*digest],
        Holder::Shipped => shipped(&entry.plugin).into_iter().collect(),
        Holder::Signer(key) => trust::of_all(common)?.signed_by(&entry.plugin, key),
    })
}

/// A shipped plugin that is not loaded without a grant.
pub(super) struct MissingGrant {
    pub(super) plugin: &'static str,
    /// The reason, with the command that gives the grant.
    pub(super) advice: String,
}

/// Returns the shipped plugin of this name, or with this tool, if it lacks the grant that it needs.
pub(super) fn missing(host: &Host, subject: &str) -> Option<MissingGrant> {
    let owner = shipped_owner(subject).filter(|_| !host.registry().has(subject));
    let mut plugins = palisade_plugins::all().iter();
    let plugin = plugins.find(|it| owner.map_or(it.name == subject, |owner| it.name == owner))?;
    plugin.requires?;
    if host.plugins().iter().any(|it| it.name() == plugin.name && it.path().is_none()) {
        return None;
    }
    let (needed, grant) = match plugin.name {
        CODE => ("tools that it may call", "tools \"read_file,search_*\""),
        _ => ("a network rule", "net \"GET,HEAD https://HOST\""),
    };
    let name = plugin.name;
    let which = match owner {
        Some(_) => format!("part of the shipped plugin `{name}`"),
        None => "a shipped plugin".to_owned(),
    };
    let advice = format!(
        "`{subject}` is {which}, which is loaded once it has {needed}: `palisade grant {name} {grant}`"
    );
    Some(MissingGrant { plugin: name, advice })
}

/// The shipped tool that runs programs.
pub(super) const RUN_JS: &str = "run_js";

/// Refuses another tool with the name of the shipped one that runs programs.
pub(super) fn refuse_other_programs(host: &Host) -> Result<(), Failure> {
    match host.registry().get(RUN_JS) {
        Ok(tool) if tool.origin().digest() != shipped(CODE) => Err(Failure::usage(
            "`run_js` is not that of the shipped plugin `code` here, which alone runs programs; switch the shipped plugins on, or rename the other tool",
        )),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Returns the digest of a shipped plugin.
pub(super) fn shipped(plugin: &str) -> Option<Digest> {
    let shipped = palisade_plugins::all().iter().find(|shipped| shipped.name == plugin)?;
    Some(Digest::from_bytes(shipped.digest))
}
