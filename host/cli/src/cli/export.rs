//! `palisade export`: prints the tool definitions in a provider's API format.

use super::args::{Common, Export};
use super::exit::{Exit, Failure};
use super::open;
use super::output::{self, Reader};
use palisade::formats::Strictness;

pub(super) fn run(common: &Common, args: &Export) -> Result<Exit, Failure> {
    let host = open::builder(common, &open::settings(common)?).build()?;
    open::show_missing(&host);
    let strictness = if args.strict { Strictness::Transform } else { Strictness::AsIs };
    let (exported, weakened) = host.export(host.session(), args.format, strictness);
    // Skip the remarks if the reader of the output has gone.
    if output::json(&exported)? == Reader::There {
        weakened.iter().for_each(|change| output::note(&change.to_string()));
    }
    Ok(Exit::Ok)
}
