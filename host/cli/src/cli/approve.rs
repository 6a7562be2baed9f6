//! `palisade approve`: shows plugins that are not approved, and asks.

mod ask;
mod name_clash;
mod pending;
pub(super) mod shown;

pub(super) use ask::before_calls;
pub(super) use name_clash::{NameClash, of_incoming as name_clash_of_incoming};

use super::args::{Approve as Args, Common, Consent};
use super::exit::{Exit, Failure};
use super::output;
use super::prompt::{self, YesNo};
use super::wrap::columns;
use super::{grants, hint, setup, trust, unconnected};
use crate::config::Settings;
use palisade::Host;
use palisade::plugins::{Cause, Plugin};
use palisade::tool::Digest;
use palisade::tool::text::elided;
use palisade_trust::{Keys, LockError, LockedPlugins, Obstacle, Review};
use pending::Pending;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

/// The most lines of 80 columns that a terminal is trusted to show to a person.
const MOST_LINES: usize = 2_000;

/// The refusal of a file whose name would stand for something else in rules and settings.
const NAME_IS_TAKEN: &str = "that is the name of a plugin of this program, or of a setting under `[plugins]`; give its file another name";

pub(super) fn run(common: &Common, args: &Args) -> Result<Exit, Failure> {
    if common.locked {
        return Err(Failure::usage("--locked approves nothing; leave it out to approve a plugin"));
    }
    if args.consent.yes && args.names.is_empty() && !args.all {
        return Err(Failure::usage(
            "--yes approves what it names: add the names of plugins, or --all for each one that is new or has changed",
        ));
    }
    let settings = setup::settings(common)?;
    let locked = Arc::new(trust::of_all(common)?);
    // Before anything is shown: an approval that cannot be written needs no answer.
    let lock = if args.json { None } else { Some(trust::writable_lock(common)?) };
    let base = setup::builder(common, &settings)?.approvals(locked.clone());
    let host = unconnected::add_to(base, common, &settings)?.build()?;
    let keys = trust::keys(&settings);
    trust::show_idle_keys(common, &settings, &keys);
    let mut broken = host.rejected();
    broken.retain(|rejected| rejected.cause != Cause::NotApproved);
    setup::show_rejected(&broken);
    let pending = Pending { common, args, host: &host, locked: &locked, keys: &keys };
    let plugins = pending.plugins()?;
    let Some(lock) = lock else {
        let shown = plugins.iter().filter_map(|plugin| {
            let review = looked_at(&locked, &keys, plugin).ok()?;
            Some(shown::json(common, plugin, &review))
        });
        output::json(&shown.collect::<Vec<Value>>())?;
        return Ok(Exit::Ok);
    };
    if plugins.is_empty() {
        let nothing = match broken.len() {
            // A note has said it of each name.
            _ if !args.names.is_empty() => return Ok(Exit::Ok),
            0 if host.unapproved().is_empty() => "Every plugin is approved.".to_owned(),
            0 => "No plugin waits for an approval.".to_owned(),
            count => format!("No plugin waits for an approval. Rejected files: {count}."),
        };
        output::text(&output::prose(&nothing))?;
        return Ok(Exit::Ok);
    }
    let run = Run {
        common,
        settings: &settings,
        args,
        host: &host,
        locked: &locked,
        keys: &keys,
        lock: &lock,
    };
    let mut exit = Exit::Ok;
    for (index, plugin) in plugins.iter().enumerate() {
        let one = run.decide(plugin, Position { index, of: plugins.len() })?;
        exit = if exit == Exit::Ok { one } else { exit };
    }
    Ok(exit)
}

/// Reads and verifies a plugin. A problem is reported, and is one of this plugin alone.
fn looked_at(locked: &LockedPlugins, keys: &Keys, plugin: &Plugin) -> Result<Review, Exit> {
    Review::new(locked, keys, plugin).map_err(|error| {
        let name = elided(plugin.name(), 128);
        let line = format!("`{name}` cannot be looked at: {error}");
        output::quoting_problem("not approved:", &line);
        Exit::Invalid
    })
}

/// Reads and verifies a plugin.
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

/// The position of a plugin among those that wait.
#[derive(Debug, Clone, Copy)]
pub(super) struct Position {
    index: usize,
    of: usize,
}

/// One run of `approve`.
struct Run<'a> {
    common: &'a Common,
    settings: &'a Settings,
    args: &'a Args,
    host: &'a Host,
    locked: &'a LockedPlugins,
    keys: &'a Keys,
    lock: &'a Path,
}

impl Run<'_> {
    /// Shows one plugin, and approves it if nothing forbids that and the person says yes.
    fn decide(&self, plugin: &Plugin, position: Position) -> Result<Exit, Failure> {
        let args = self.args;
        let review = match looked_at(self.locked, self.keys, plugin) {
            Ok(review) => review,
            Err(exit) => return Ok(exit),
        };
        let digest = args.digest.as_ref();
        let clash = name_clash::of(self.common, self.settings, self.host, plugin)?;
        let clash = clash.as_ref();
        let asking =
            Asking { of: Occasion::Choice, consent: args.consent, digest, position, clash };
        if let Some(exit) = asking.refusal() {
            return Ok(exit);
        }
        match ask_for(self.common, &asking, plugin, &review)? {
            Exit::Ok => {}
            exit => return Ok(exit),
        }
        let name = elided(plugin.name(), 128);
        match review.approve(self.lock) {
            Err(error @ LockError::Revoked) => {
                output::quoting_problem("not approved:", &format!("`{name}`: {error}"));
                return Ok(Exit::Denied);
            }
            approved => approved?,
        }
        // The names of the plugin are taken for the next one.
        self.host.rescan();
        output::text(&output::prose(&format!("`{name}` is approved.")))?;
        grants::tell_of_former(self.common, &review);
        match &review.project {
            None => Ok(Exit::Ok),
            Some(project) => {
                let project = elided(&project.to_string_lossy(), 512);
                let line = format!(
                    "`{name}`: the project still refuses it: install the file that `{project}` names, or change that lock"
                );
                output::quoting_problem("refused:", &line);
                Ok(Exit::Denied)
            }
        }
    }
}

/// How a person is asked about a plugin.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asking<'a> {
    of: Occasion,
    consent: Consent,
    /// The only digest that is approved, if the command line names one.
    digest: Option<&'a Digest>,
    position: Position,
    /// The loaded plugins whose names the plugin has.
    clash: Option<&'a NameClash>,
}

/// Why a person looks at a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Occasion {
    /// The person chose these bytes. At a terminal they may be older ones, or revoked ones.
    Choice,
    /// The same, of a source.
    Add,
    /// A source has other bytes than before.
    Update,
}

impl<'a> Asking<'a> {
    /// Asks about the plugin of a source.
    pub(super) fn one(of: Occasion, consent: Consent) -> Self {
        Self { of, consent, digest: None, position: Position { index: 0, of: 1 }, clash: None }
    }

    /// Does the same of a plugin that has names of loaded ones.
    pub(super) fn with_clash(self, clash: Option<&'a NameClash>) -> Self {
        Self { clash, ..self }
    }

    /// Returns true if a loaded plugin could be lost.
    fn may_lose_a_plugin(&self) -> bool {
        self.clash.is_some_and(NameClash::loses_a_plugin)
    }

    /// Returns the exit of a run that would lose a loaded plugin without a person's look, and tells
    /// why.
    pub(super) fn refusal(&self) -> Option<Exit> {
        let clash = self.clash.filter(|_| self.may_lose_a_plugin() && self.is_answered())?;
        output::quoting_problem("not approved:", &format!("{clash}; or answer at a terminal"));
        Some(Exit::Denied)
    }

    /// Returns true if the command line says yes. A digest names the very bytes, and is a yes to
    /// them.
    fn is_answered(&self) -> bool {
        self.consent.yes || self.digest.is_some()
    }
}

/// Shows a plugin and asks about it, unless something forbids the approval. Success means yes.
pub(super) fn ask_for(
    common: &Common,
    asking: &Asking<'_>,
    plugin: &Plugin,
    review: &Review,
) -> Result<Exit, Failure> {
    let name = elided(plugin.name(), 128);
    let refused = |reason: &str| {
        output::quoting_problem("not approved:", &format!("`{name}`: {reason}"));
        Ok(Exit::Denied)
    };
    if trust::is_taken(plugin.name()) {
        return refused(NAME_IS_TAKEN);
    }
    let digest = review.entry.digest;
    if asking.digest.is_some_and(|named| *named != digest) {
        return refused(&format!("it has the digest {digest}, and --digest names another one"));
    }
    let text = shown::text(common, plugin, review, columns(std::io::stdout()));
    if asking.digest.is_none() && is_too_long(&text) {
        return refused(&too_long(common, asking.of, review));
    }
    output::text(&text)?;
    if let Some(obstacle) = review.obstacles().into_iter().find(|it| stops(asking, it)) {
        let _ = refused(&remedy_for(asking.of, &obstacle))?;
        return Ok(match obstacle {
            Obstacle::Signature(_) => Exit::Invalid,
            _ => Exit::Denied,
        });
    }
    if let Some(clash) = asking.clash {
        output::note(&clash.to_string());
    }
    let answer = match asking.is_answered() {
        true => Ok(YesNo::Yes),
        false => prompt::yes_or_no(&question(plugin, asking.position)),
    };
    match answer {
        Ok(YesNo::Yes) => Ok(Exit::Ok),
        Ok(YesNo::No) => Ok(Exit::Denied),
        Err(_) => refused(match review.obstacles().is_empty() && !asking.may_lose_a_plugin() {
            true => {
                "there is no terminal for the question; with its name, --yes approves what is shown"
            }
            false => "there is no terminal for the question, and only a person approves this",
        }),
    }
}

/// Returns true if a terminal would have lost the beginning of a text when it shows the end.
pub(super) fn is_too_long(text: &str) -> bool {
    text.lines().count().max(text.len() / 80) > MOST_LINES
}

/// Returns the refusal of a plugin with more words than a terminal shows.
fn too_long(common: &Common, of: Occasion, review: &Review) -> String {
    if of != Occasion::Choice {
        return "it has more words than a terminal shows: put its file into a directory of plugins, and approve it there by its digest (`palisade approve --json`)".to_owned();
    }
    let one = hint::named(&hint::command(common, "approve --json"), &review.entry.name);
    let digest = review.entry.digest;
    format!(
        "{}; it has more words than a terminal shows: read them in the file of `{one} > FILE`, and then approve it with `--digest {digest}`",
        review.state.in_words()
    )
}

/// Returns the question about a plugin.
fn question(plugin: &Plugin, position: Position) -> String {
    let name = elided(plugin.name(), 128);
    match position {
        Position { of: 0 | 1, .. } => format!("Approve `{name}`? [y]es, [N]o: "),
        Position { index, of } => {
            format!("Approve `{name}`, {} of {of}? [y]es, [N]o: ", index + 1)
        }
    }
}

/// Returns true if an obstacle forbids the approval. A person who is asked has seen a rollback, a
/// revocation, and the other plugin of the same bytes.
pub(super) fn stops(asking: &Asking<'_>, obstacle: &Obstacle) -> bool {
    match obstacle {
        Obstacle::NewSigner { .. } => !asking.consent.new_signer,
        Obstacle::BytesOf(_) => asking.is_answered(),
        Obstacle::Rollback { .. } | Obstacle::Revoked(_) => {
            asking.is_answered() || asking.of == Occasion::Update
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
        (Occasion::Add | Occasion::Update, Obstacle::Revoked(_)) => format!(
            "{obstacle}; only a person at a terminal approves it again, with `palisade add` of the same source"
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
        Obstacle::BytesOf(_) => format!(
            "{obstacle}; --yes approves no exchange of two plugins: see whether their files were swapped, and answer at a terminal"
        ),
        Obstacle::Revoked(_) => {
            format!(
                "{obstacle}; only a person at a terminal approves it again, with `palisade approve`"
            )
        }
        _ => obstacle.to_string(),
    }
}
