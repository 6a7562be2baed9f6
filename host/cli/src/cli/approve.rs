//! `palisade approve`: shows plugins that are not approved, and asks.

mod ask;
pub(super) mod shown;

pub(super) use ask::before_calls;

use super::args::{Approve as Args, Common, Consent};
use super::exit::{Exit, Failure};
use super::output;
use super::prompt::{self, YesNo};
use super::wrap::columns;
use super::{hint, setup, trust};
use palisade::plugins::{Cause, Plugin};
use palisade::tool::text::elided;
use palisade::{Host, HostBuilder};
use palisade_trust::{Keys, LockedPlugins, Obstacle, Review};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;

pub(super) fn run(common: &Common, args: &Args) -> Result<Exit, Failure> {
    if common.locked {
        return Err(Failure::usage("--locked approves nothing; leave it out to approve a plugin"));
    }
    let settings = setup::settings(common)?;
    let locked = Arc::new(trust::of_all(common)?);
    let host = builder(common, &settings, locked.clone())?.build()?;
    let keys = trust::keys(&settings);
    let mut broken = host.rejected();
    broken.retain(|rejected| rejected.cause != Cause::NotApproved);
    setup::show_rejected(&broken);
    let pending = pending(common, &host, &args.names)?;
    if args.json {
        let all: Result<Vec<Value>, Failure> = pending
            .iter()
            .map(|plugin| Ok(shown::json(&review(&locked, &keys, plugin)?)))
            .collect();
        output::json(&all?)?;
        return Ok(Exit::Ok);
    }
    if pending.is_empty() {
        output::text(&output::prose("Every plugin is approved."))?;
        return Ok(Exit::Ok);
    }
    let mut exit = Exit::Ok;
    for plugin in &pending {
        let one = decide(args, &locked, &keys, plugin)?;
        exit = if exit == Exit::Ok { one } else { exit };
    }
    Ok(exit)
}

/// Returns the builder of a host that obeys these approvals.
fn builder(
    common: &Common,
    settings: &crate::config::Settings,
    locked: Arc<LockedPlugins>,
) -> Result<HostBuilder, Failure> {
    Ok(setup::builder(common, settings)?.approvals(locked))
}

/// Returns the plugins to look at: those of these names, or all that are not approved.
fn pending(common: &Common, host: &Host, names: &[String]) -> Result<Vec<Plugin>, Failure> {
    let unapproved = host.unapproved();
    for name in names {
        if unapproved.iter().any(|plugin| plugin.name() == name) {
            continue;
        }
        let shown = elided(name, 128);
        if host.plugins().iter().any(|plugin| plugin.name() == name) {
            output::note(&format!("`{shown}` is approved already"));
        } else {
            let list = hint::command(common, "list");
            return Err(Failure::new(
                Exit::NotFound,
                format!("there is no plugin `{shown}`; `{list}` shows the plugins there are"),
            ));
        }
    }
    let is_meant =
        |plugin: &Plugin| names.is_empty() || names.iter().any(|name| name == plugin.name());
    Ok(unapproved.into_iter().filter(is_meant).collect())
}

pub(super) fn review(
    locked: &LockedPlugins,
    keys: &Keys,
    plugin: &Plugin,
) -> Result<Review, Failure> {
    Review::new(locked, keys, plugin).map_err(|error| {
        let name = elided(plugin.name(), 128);
        Failure::new(Exit::Invalid, format!("`{name}` cannot be looked at: {error}"))
    })
}

/// Shows one plugin, and approves it if nothing forbids that and the person says yes.
fn decide(
    args: &Args,
    locked: &LockedPlugins,
    keys: &Keys,
    plugin: &Plugin,
) -> Result<Exit, Failure> {
    let review = review(locked, keys, plugin)?;
    let asking = Asking { of: Occasion::Choice, consent: args.consent };
    let exit = ask_for(&asking, plugin, &review)?;
    if exit == Exit::Ok {
        write(locked, &review)?;
        let name = elided(plugin.name(), 128);
        output::text(&output::prose(&format!("`{name}` is approved.")))?;
    }
    Ok(exit)
}

/// How a person is asked about a plugin.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asking {
    pub(super) of: Occasion,
    pub(super) consent: Consent,
}

/// Why a person looks at a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Occasion {
    /// The person chose these bytes. At a terminal they may be older ones, or revoked ones.
    Choice,
    /// A source has other bytes than before.
    Update,
}

/// Shows a plugin and asks about it, unless something forbids the approval. Success means yes.
pub(super) fn ask_for(asking: &Asking, plugin: &Plugin, review: &Review) -> Result<Exit, Failure> {
    output::text(&shown::text(plugin, review, columns(std::io::stdout())))?;
    let name = elided(plugin.name(), 128);
    if let Some(obstacle) = review.obstacles().into_iter().find(|it| stops(asking, it)) {
        output::problem(
            "not approved:",
            &format!("`{name}`: {}", remedy_for(asking.of, &obstacle)),
        );
        return Ok(match obstacle {
            Obstacle::Signature(_) => Exit::Invalid,
            _ => Exit::Denied,
        });
    }
    let is_given = asking.consent.yes;
    match if is_given { Ok(YesNo::Yes) } else { prompt::yes_or_no(&question(plugin)) } {
        Ok(YesNo::Yes) => Ok(Exit::Ok),
        Ok(YesNo::No) => Ok(Exit::Denied),
        Err(_) => {
            output::problem(
                "not approved:",
                &format!("`{name}`: nobody can be asked here; --yes approves what is shown"),
            );
            Ok(Exit::Denied)
        }
    }
}

/// Returns the question about a plugin.
fn question(plugin: &Plugin) -> String {
    format!("Approve `{}`? [y]es, [N]o: ", elided(plugin.name(), 128))
}

/// Writes the approval into the user's lock.
fn write(locked: &LockedPlugins, review: &Review) -> Result<(), Failure> {
    let path: PathBuf = locked.path().map(Into::into).ok_or_else(|| {
        Failure::usage("there is no directory for palisade.lock; name a file with --config")
    })?;
    Ok(review.approve(&path)?)
}

/// Returns true if an obstacle forbids the approval. A person who is asked has seen a rollback and
/// a revocation.
pub(super) fn stops(asking: &Asking, obstacle: &Obstacle) -> bool {
    match obstacle {
        Obstacle::NewSigner { .. } => !asking.consent.new_signer,
        Obstacle::Rollback { .. } | Obstacle::Revoked => {
            asking.consent.yes || asking.of == Occasion::Update
        }
        _ => true,
    }
}

/// Returns an obstacle with what lifts it on this occasion.
pub(super) fn remedy_for(occasion: Occasion, obstacle: &Obstacle) -> String {
    match (occasion, obstacle) {
        (Occasion::Update, Obstacle::Rollback { .. }) => format!(
            "{obstacle}; `update` installs no older version: ask why the source has it, and `palisade add` at a terminal can choose it"
        ),
        _ => remedy(obstacle),
    }
}

/// Returns an obstacle with what lifts it.
fn remedy(obstacle: &Obstacle) -> String {
    match obstacle {
        Obstacle::NewSigner { .. } => format!(
            "{obstacle}; ask its author, and if the key has changed, approve it with --new-signer"
        ),
        Obstacle::Rollback { .. } => {
            format!("{obstacle}; --yes approves no older version, so answer at a terminal")
        }
        Obstacle::Revoked => {
            format!(
                "{obstacle}; only a person at a terminal approves it again, with `palisade approve`"
            )
        }
        _ => obstacle.to_string(),
    }
}
