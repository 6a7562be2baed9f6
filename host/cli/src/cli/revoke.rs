//! `palisade revoke`: takes the approval of a plugin back, or refuses one that has none.

use super::args::{Common, Revoke as Args};
use super::exit::{Exit, Failure};
use super::{hint, output, setup, trust, unconnected};
use palisade::internal::shipped_tools;
use palisade::plugins::{Cause, Plugin, Rejected, name_of_file};
use palisade::tool::text::elided;
use palisade_trust::{Entry, Lock};
use std::path::Path;
use std::sync::Arc;

pub(super) fn run(common: &Common, args: &Args) -> Result<Exit, Failure> {
    let name = elided(&args.plugin, 128);
    let missing = |known: &[String]| {
        let asked = hint::did_you_mean(&args.plugin, known.iter().map(String::as_str));
        let text = match shipped_tools(&args.plugin) {
            Some(_) => format!(
                "`{name}` ships with this program and needs no approval: deny its tools under `[confirm.tools]`, or leave out all plugins that ship with it (`plugins.builtin = false`)"
            ),
            None => format!(
                "no plugin `{name}` is approved, or waits for an approval{asked}; palisade.lock has the names"
            ),
        };
        Failure::new(Exit::NotFound, text)
    };
    let path = trust::lock_path(common).ok_or_else(|| missing(&[]))?;
    let source = args.source.as_deref().map(source_of).transpose()?;
    let done = match path.exists() {
        true => Lock::update(&path, |lock| Done::new(lock, &args.plugin, source.as_deref()))?,
        false => Done::default(),
    };
    if done.approvals == 0 {
        let waiting = waiting(common, &args.plugin, args.source.as_deref())?;
        match waiting.is_empty() {
            true if done.was_revoked => {
                let before = format!("no plugin `{name}` is approved: it was revoked before");
                return Err(Failure::new(Exit::NotFound, before));
            }
            true => {
                let unusable = unusable(common, &args.plugin)?;
                return Err(unusable.unwrap_or_else(|| missing(&done.known)));
            }
            false => {}
        }
        Lock::update(&path, |lock| {
            waiting.iter().for_each(|plugin| lock.revoke_bytes(plugin.name(), plugin.digest()));
        })?;
    }
    for other in done.others {
        output::note(&format!(
            "`{}` has the same bytes, and is revoked with it",
            elided(&other, 128)
        ));
    }
    let text = format!(
        "`{name}` is revoked: none of its tools can be called any more. A running `palisade serve` notices that within two seconds."
    );
    output::text(&output::prose(&text))?;
    Ok(Exit::Ok)
}

/// The effect of a revocation on the lock.
#[derive(Default)]
struct Done {
    /// The approvals that it took back.
    approvals: usize,
    /// Whether the plugin was revoked before.
    was_revoked: bool,
    /// The other approved plugins with the same bytes.
    others: Vec<String>,
    /// The names of all plugins of the lock.
    known: Vec<String>,
}

impl Done {
    /// Revokes a plugin.
    fn new(lock: &mut Lock, name: &str, source: Option<&str>) -> Self {
        let is_it = |entry: &&Entry| {
            entry.name == name && source.is_none_or(|source| entry.source == source)
        };
        let own: Vec<Entry> = lock.entries().iter().filter(is_it).cloned().collect();
        let has_bytes = |entry: &&Entry| own.iter().any(|it| it.digest == entry.digest);
        let others = lock.entries().iter().filter(|entry| !is_it(entry) && entry.revoked.is_none());
        let others = others.filter(has_bytes).map(|entry| entry.name.clone()).collect();
        let was_revoked = own.iter().any(|entry| entry.revoked.is_some())
            || lock.revoked().iter().any(|bytes| bytes.name == name);
        let known = lock.entries().iter().map(|entry| entry.name.clone()).collect();
        Self { approvals: lock.revoke(name, source), was_revoked, others, known }
    }
}

/// Returns a source as the lock has it: a URL as it is, and a directory as an absolute path.
fn source_of(source: &Path) -> Result<String, Failure> {
    let text = source.to_string_lossy();
    match text.contains("://") {
        true => Ok(text.into_owned()),
        false => Ok(std::path::absolute(source)?.to_string_lossy().into_owned()),
    }
}

/// Returns the error for a file that cannot be approved as it is, and so needs no revocation.
fn unusable(common: &Common, name: &str) -> Result<Option<Failure>, Failure> {
    let settings = setup::settings(common)?;
    let host = setup::builder(common, &settings)?.build()?;
    let is_it =
        |file: &Rejected| file.cause == Cause::File && name_of_file(Path::new(&file.file)) == name;
    let found = host.rejected().into_iter().find(is_it);
    Ok(found.map(|Rejected { file, reason, .. }| {
        let text =
            format!("`{file}` is never loaded as it is: {reason}; delete the file to be rid of it");
        Failure::new(Exit::NotFound, text)
    }))
}

/// Returns the plugins of this name that were never approved and are not revoked.
fn waiting(common: &Common, name: &str, source: Option<&Path>) -> Result<Vec<Plugin>, Failure> {
    let settings = setup::settings(common)?;
    let locked = Arc::new(trust::of_all(common)?);
    let base = setup::builder(common, &settings)?.approvals(locked.clone());
    let host = unconnected::add_to(base, common, &settings)?.build()?;
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let is_of_source = |plugin: &Plugin| {
        let folder = plugin.path().and_then(Path::parent);
        source.is_none_or(|source| folder.is_some_and(|folder| real(folder) == real(source)))
    };
    let mut waiting = host.unapproved();
    waiting.retain(|plugin| {
        let is_open = !locked.state(plugin).is_revoked();
        plugin.name() == name && is_of_source(plugin) && is_open
    });
    Ok(waiting)
}
