//! `palisade add`: installs a plugin from a source.

use super::approve::{Asking, Occasion};
use super::args::{Add as Args, Common};
use super::exit::{Exit, Failure};
use super::installing::{Installing, shown};
use super::{grants, output, trust};
use palisade::tool::text::visible;
use palisade_store::{Fetched, PluginName, Source, TransferError};
use palisade_trust::{Locator, Lock, State};

pub(super) fn run(common: &Common, args: &Args) -> Result<Exit, Failure> {
    if common.locked {
        return Err(Failure::usage(
            "--locked installs nothing new; leave it out, or restore what palisade.lock has with `palisade update --locked`",
        ));
    }
    let source = Source::parse(&args.source)?;
    let name = match &args.name {
        Some(name) => PluginName::parse(name)?,
        None => source.plugin_name()?,
    };
    if trust::is_taken(name.as_str()) {
        return Err(Failure::usage(format!(
            "`{name}` is the name of a plugin of this program, or of a setting under `[plugins]`; give another one with --name"
        )));
    }
    let installing = Installing::open(common)?;
    let text = source.to_string();
    let lock = installing.lock()?;
    let former = former(&lock, &name, &source)?;
    let fetched = installing.fetch(&source)?;
    check_digest(args, &fetched)?;
    let looked = installing.look(&name, &source, former, &fetched)?;
    let was_approved = looked.review.state == State::Approved;
    let asking = Asking::one(Occasion::Add, args.consent);
    let exit = installing.install(&asking, &looked)?;
    if exit == Exit::Ok {
        let name = shown(name.as_str());
        let how = match (former, was_approved) {
            (Some(_), _) => "is approved and updated",
            (None, true) => "is installed, as it was approved",
            (None, false) => "is approved and installed",
        };
        output::text(&output::prose(&format!("`{name}` {how}, from {}.", visible(&text))))?;
        grants::tell_of_former(common, &looked.review);
        let uses_network =
            looked.review.entry.imports.iter().any(|import| import.starts_with("wasi:http/"));
        if uses_network {
            output::note(&format!(
                "it asks for the network, and is loaded once it has a grant: `palisade grant {name} net \"GET https://HOST\"`"
            ));
        }
    } else {
        output::note("nothing was changed");
    }
    Ok(exit)
}

/// Returns the source of the installed plugin of this name that the new one follows: one of the
/// same repository, such as an earlier tag. It may have been revoked.
fn former<'l>(
    lock: &'l Lock,
    name: &PluginName,
    source: &Source,
) -> Result<Option<&'l str>, Failure> {
    let text = source.to_string();
    let installed = lock.installed_as(name.as_str()).filter(|it| it.source != text);
    let Some(other) = installed else { return Ok(None) };
    // An earlier version of this program may have written the path of a file in another spelling.
    let is_same = Source::parse(&other.source)
        .is_ok_and(|it| it == *source || source.is_of_same_repository(&it));
    if is_same && lock.entry(Locator { name: name.as_str(), source: &text }).is_none() {
        return Ok(Some(&other.source));
    }
    if other.revoked.is_some() {
        return Ok(None);
    }
    let from = visible(&other.source);
    Err(Failure::usage(format!(
        "`{name}` is installed from `{from}`; `palisade update {name}` looks for a newer one there; to add this one, give another name with --name, or remove that plugin first"
    )))
}

/// Refuses other bytes than those that the command line names.
fn check_digest(args: &Args, fetched: &Fetched) -> Result<(), Failure> {
    let Some(named) = args.digest else { return Ok(()) };
    match named == fetched.digest {
        true => Ok(()),
        false => {
            Err(TransferError::OtherBytes { part: "file", found: fetched.digest, named }.into())
        }
    }
}
