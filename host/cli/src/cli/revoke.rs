//! `palisade revoke`: takes the approval of a plugin back, or refuses one that has none.

use super::args::{Common, Revoke as Args};
use super::exit::{Exit, Failure};
use super::{output, setup, trust, unconnected};
use palisade::plugins::Plugin;
use palisade::tool::text::elided;
use palisade_trust::{Lock, State};
use std::path::Path;
use std::sync::Arc;

pub(super) fn run(common: &Common, args: &Args) -> Result<Exit, Failure> {
    let name = elided(&args.plugin, 128);
    let missing = || {
        Failure::new(
            Exit::NotFound,
            format!("no plugin `{name}` is approved, and none waits; palisade.lock has the names"),
        )
    };
    let path = trust::lock_path(common).ok_or_else(missing)?;
    let source = args.source.as_deref().map(std::path::absolute).transpose()?;
    let source = source.as_ref().map(|source| source.to_string_lossy());
    let approvals = match path.exists() {
        true => Lock::update(&path, |lock| lock.revoke(&args.plugin, source.as_deref()))?,
        false => 0,
    };
    if approvals == 0 {
        let waiting = waiting(common, &args.plugin, args.source.as_deref())?;
        if waiting.is_empty() {
            return Err(missing());
        }
        Lock::update(&path, |lock| {
            waiting.iter().for_each(|plugin| lock.revoke_bytes(plugin.name(), plugin.digest()));
        })?;
    }
    let text = format!(
        "`{name}` is revoked: none of its tools can be called any more. A running `palisade serve` notices that within two seconds."
    );
    output::text(&output::prose(&text))?;
    Ok(Exit::Ok)
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
        let is_open = locked.state(plugin) != State::Revoked;
        plugin.name() == name && is_of_source(plugin) && is_open
    });
    Ok(waiting)
}
