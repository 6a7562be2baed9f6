//! `palisade export`: the tools' definitions, for a provider's API.

use super::args::{Common, Export};
use super::exit::{Exit, Failure};
use super::open;
use super::output::{self, Reader};
use crate::tool::formats::Strictness;

pub(super) fn run(common: &Common, args: &Export) -> Result<Exit, Failure> {
    let host = open::builder(common, &open::settings(common)?).build()?;
    open::show_missing(&host);
    let strictness = if args.strict { Strictness::Transform } else { Strictness::AsIs };
    let (exported, weakened) = host.export(host.session(), args.format, strictness);
    // Remarks on what nobody has read are of no use.
    if output::json(&exported)? == Reader::There {
        weakened.iter().for_each(|change| output::note(&change.to_string()));
    }
    Ok(Exit::Ok)
}
