//! `palisade export`: the tools' definitions, for a provider's API.

use super::args::{Common, Export};
use super::exit::{Exit, Failure};
use super::{open, output};
use crate::tool::formats::{Strictness, ToolView, export_all};

pub(super) fn run(common: &Common, args: &Export) -> Result<Exit, Failure> {
    let host = open::builder(common, &open::settings(common)?).build()?;
    open::show_rejected(host.rejected());
    let tools = host.registry().tools();
    let views: Vec<ToolView<'_>> = tools.iter().map(|tool| tool.definition().view()).collect();
    let strictness = if args.strict { Strictness::Transform } else { Strictness::AsIs };
    let (exported, weakened) = export_all(&views, args.format, strictness);
    output::json(&exported)?;
    for change in weakened {
        output::note(&change.to_string());
    }
    Ok(Exit::Ok)
}
