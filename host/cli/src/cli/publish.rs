//! `palisade publish`: gives a plugin to a registry.

use super::args::Publish as Args;
use super::exit::{Exit, Failure};
use super::installing::transfer;
use super::output;
use palisade_store::{Overwrite, Source, publish};
use std::time::SystemTime;

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    let Source::Oci(reference) = Source::parse(&args.reference)? else {
        return Err(Failure::usage(
            "a plugin is published to a registry: `oci://HOST/REPOSITORY:TAG` is accepted",
        ));
    };
    let (network, credentials) = transfer();
    let overwrite = if args.replace { Overwrite::Replace } else { Overwrite::Refuse };
    let created = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let published = publish(&network, &args.file, &reference, &credentials, overwrite, &created)?;
    let signed = if published.is_signed { "with its signature" } else { "without a signature" };
    output::text(&output::prose(&format!(
        "Published {signed}: oci://{reference}\nThe manifest: {}\nThe plugin: {}",
        published.manifest, published.component
    )))?;
    Ok(Exit::Ok)
}
