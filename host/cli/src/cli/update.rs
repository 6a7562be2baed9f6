//! `palisade update`: fetches installed plugins again.

use super::approve::{Asking, Occasion, remedy_for, shown as review_shown, stops};
use super::args::{Common, Update as Args};
use super::exit::{Exit, Failure};
use super::installing::{Installing, Looked, shown};
use super::wrap::columns;
use super::{grants, output};
use palisade::tool::text::visible;
use palisade_store::{Fetched, PluginName, Source};
use palisade_trust::{Entry, Lock, State};

pub(super) fn run(common: &Common, args: &Args) -> Result<Exit, Failure> {
    let installing = Installing::open(common)?;
    let lock = installing.lock()?;
    let entries = meant(&lock, &args.names)?;
    if entries.is_empty() {
        output::text(&output::prose("No plugin was added, so that there is none to update."))?;
    }
    let mut exit = Exit::Ok;
    for entry in entries {
        // One source that fails keeps none of the others from its update.
        let one = one(common, args, &installing, entry).unwrap_or_else(|failure| {
            let name = shown(&entry.name);
            output::quoting_problem("not updated:", &format!("`{name}`: {failure}"));
            failure.exit()
        });
        exit = if exit == Exit::Ok { one } else { exit };
    }
    Ok(exit)
}

/// Returns the entries of these plugins, or of all that were added and are not revoked.
fn meant<'l>(lock: &'l Lock, names: &[String]) -> Result<Vec<&'l Entry>, Failure> {
    if names.is_empty() {
        return Ok(lock.installed().filter(|entry| entry.revoked.is_none()).collect());
    }
    let find = |name: &String| {
        lock.installed_as(name).ok_or_else(|| {
            let name = shown(name);
            Failure::new(
                Exit::NotFound,
                format!("no plugin `{name}` was added; `palisade add SOURCE` adds one"),
            )
        })
    };
    names.iter().map(find).collect()
}

fn one(
    common: &Common,
    args: &Args,
    installing: &Installing<'_>,
    entry: &Entry,
) -> Result<Exit, Failure> {
    let name = PluginName::parse(&entry.name)?;
    let source = Source::parse(&entry.source)?;
    if common.locked {
        return restore(installing, entry, &name, &source, args);
    }
    let fetched = installing.fetch(&source)?;
    let looked = installing.look(&name, &source, Some(&entry.source), &fetched)?;
    let is_missing = !installing.has_file(entry);
    let is_same = looked.review.state == State::Approved;
    let of = visible(&entry.source);
    match (is_same, is_missing) {
        (true, false) => {
            if !args.dry_run {
                installing.resolve(entry, looked.review.entry.resolved.clone())?;
            }
            say(&format!("`{name}` is up to date, from {of}."))?;
        }
        (true, true) if args.dry_run => say(&format!("The file of `{name}` would be restored."))?,
        (true, true) => {
            installing.restore(&name, &fetched)?;
            say(&format!("The file of `{name}` is restored, from {of}."))?;
        }
        (false, _) => return changed(common, args, installing, entry, &looked),
    }
    Ok(Exit::Ok)
}

/// Shows what has changed, and installs it after a yes.
fn changed(
    common: &Common,
    args: &Args,
    installing: &Installing<'_>,
    entry: &Entry,
    looked: &Looked,
) -> Result<Exit, Failure> {
    let asking = Asking::one(Occasion::Update, args.consent);
    let name = shown(&entry.name);
    if args.dry_run {
        let room = columns(std::io::stdout());
        output::text(&review_shown::text(common, &looked.plugin, &looked.review, room))?;
        let obstacles = looked.review.obstacles();
        let Some(obstacle) = obstacles.iter().find(|it| stops(&asking, it)) else {
            say(&format!("`{name}` would be asked about. Nothing was changed."))?;
            return Ok(Exit::Ok);
        };
        let text = remedy_for(Occasion::Update, obstacle);
        output::quoting_problem("would not be updated:", &format!("`{name}`: {text}"));
        return Ok(Exit::Denied);
    }
    let exit = installing.install(&asking, looked)?;
    if exit == Exit::Ok {
        say(&format!("`{name}` is updated."))?;
        grants::tell_of_former(common, &looked.review);
        output::note(
            "a running `palisade serve --watch` takes it up; without --watch, `serve` refuses its calls until it is started again",
        );
    } else {
        output::note(&format!("`{name}` stays as it was: nothing was changed"));
    }
    Ok(exit)
}

/// Fetches the file that the lock names, and no other.
fn restore(
    installing: &Installing<'_>,
    entry: &Entry,
    name: &PluginName,
    source: &Source,
    args: &Args,
) -> Result<Exit, Failure> {
    if entry.revoked.is_some() || installing.has_file(entry) {
        say(&format!("`{name}` is as palisade.lock has it."))?;
        return Ok(Exit::Ok);
    }
    let pinned = entry.resolved.as_deref().map_or(Ok(source.clone()), |it| source.pinned(it))?;
    let fetched: Fetched = installing.fetch(&pinned)?;
    if fetched.digest != entry.digest {
        let (found, named) = (fetched.digest, entry.digest);
        return Err(palisade_store::TransferError::OtherBytes { part: "file", found, named }.into());
    }
    if !args.dry_run {
        installing.restore(name, &fetched)?;
    }
    say(&format!("The file of `{name}` is restored, as palisade.lock has it."))?;
    Ok(Exit::Ok)
}

fn say(text: &str) -> Result<(), Failure> {
    output::text(&output::prose(text)).map(drop)
}
