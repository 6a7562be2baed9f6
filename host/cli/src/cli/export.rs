//! `palisade export`: prints the tool definitions in a provider's API format.

use super::args::{Common, Export};
use super::exit::{Exit, Failure};
use super::output::{self, Reader};
use super::setup;
use palisade::formats::Strictness;

pub(super) fn run(common: &Common, args: &Export) -> Result<Exit, Failure> {
    let host = setup::builder(common, &setup::settings(common)?)?.build()?;
    setup::show_missing(&host);
    let strictness = if args.strict { Strictness::Transform } else { Strictness::AsIs };
    let exported = host.export(host.session(), args.format, strictness);
    // Skip the remarks if the reader of the output has gone.
    if output::json(&exported.definitions)? == Reader::There {
        exported.weakened.iter().for_each(|change| output::note(&change.to_string()));
    }
    Ok(Exit::Ok)
}
