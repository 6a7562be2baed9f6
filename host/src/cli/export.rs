//! `palisade export`: the tools' definitions, for a provider's API.

use super::args::{Common, Export};
use super::exit::{Exit, Failure};
use super::{open, output};
use crate::registry::Registered;
use crate::tool::formats::{Strictness, ToolView, export_all};
use std::sync::Arc;

pub(super) fn run(common: &Common, args: &Export) -> Result<Exit, Failure> {
    let host = open::builder(common, &open::settings(common)?).build()?;
    open::show_rejected(host.rejected());
    let tools = host.registry().tools();
    let views: Vec<ToolView<'_>> = tools.iter().map(view).collect();
    let strictness = if args.strict { Strictness::Transform } else { Strictness::AsIs };
    let (exported, weakened) = export_all(&views, args.format, strictness);
    output::json(&exported)?;
    for change in weakened {
        eprintln!("{}: {} at `{}`: {}", change.tool, change.keyword, change.pointer, change.what);
    }
    Ok(Exit::Ok)
}

fn view(tool: &Arc<Registered>) -> ToolView<'_> {
    let definition = tool.definition();
    ToolView {
        name: definition.name().as_str(),
        title: definition.title(),
        description: definition.description(),
        input_schema: definition.parameters(),
        output_schema: definition.output_schema().map(crate::tool::Schema::as_value),
        side_effects: definition.side_effects().as_str(),
        idempotent: definition.is_idempotent(),
    }
}
