//! `palisade export`: the tools' definitions, for a provider's API.

use super::args::{Common, Export};
use super::exit::{Exit, Failure};
use super::{open, output};
use crate::tool::formats::Strictness;

pub(super) fn run(common: &Common, args: &Export) -> Result<Exit, Failure> {
    let host = open::builder(common, &open::settings(common)?).build()?;
    open::show_rejected(host.rejected());
    let strictness = if args.strict { Strictness::Transform } else { Strictness::AsIs };
    let (exported, weakened) = host.export(host.session(), args.format, strictness);
    output::json(&exported)?;
    for change in weakened {
        output::note(&change.to_string());
    }
    Ok(Exit::Ok)
}
