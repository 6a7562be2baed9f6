//! `palisade add`: installs a plugin from a source.

use super::approve::{Asking, Occasion};
use super::args::{Add as Args, Common};
use super::exit::{Exit, Failure};
use super::installing::{Installing, shown};
use super::output;
use palisade::internal::{NATIVE, shipped_tools};
use palisade::tool::text::visible;
use palisade_store::{Fetched, PluginName, Source, TransferError};
use palisade_trust::State;

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
    if is_taken(name.as_str()) {
        return Err(Failure::usage(format!(
            "`{name}` is the name of a plugin of this program, or of a setting under `[plugins]`; give another one with --name"
        )));
    }
    let installing = Installing::open(common)?;
    let text = source.to_string();
    let lock = installing.lock()?;
    if let Some(other) = lock.installed_as(name.as_str()).filter(|it| it.source != text)
        && other.revoked.is_none()
    {
        let from = visible(&other.source);
        return Err(Failure::usage(format!(
            "`{name}` is installed from `{from}`; give another name with --name, or remove that plugin first"
        )));
    }
    let fetched = installing.fetch(&source)?;
    check_digest(args, &fetched)?;
    let looked = installing.look(&name, &source, &fetched)?;
    let was_approved = looked.review.state == State::Approved;
    let asking = Asking::one(Occasion::Add, args.consent);
    let exit = installing.install(&asking, &looked)?;
    if exit == Exit::Ok {
        let name = shown(name.as_str());
        let how = if was_approved {
            "is installed, as it was approved"
        } else {
            "is approved and installed"
        };
        output::text(&output::prose(&format!("`{name}` {how}, from {}.", visible(&text))))?;
        let uses_network =
            looked.review.entry.imports.iter().any(|import| import.starts_with("wasi:http/"));
        if uses_network {
            output::note(&format!(
                "it asks for the network, and is loaded once it has a grant: `palisade grant {name} net \"GET https://HOST\"`"
            ));
        }
    }
    Ok(exit)
}

/// Returns true if settings and grants under this name would mean something else.
fn is_taken(name: &str) -> bool {
    shipped_tools(name).is_some() || matches!(name, NATIVE | "builtin" | "directories" | "keys")
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
