//! The documents, document templates and prompts of plugins, as `list` and `inspect` show them.

use super::output::{self, Cell};
use palisade::plugins::Plugin;
use palisade::tool::offer::{Argument, Item, Prompt, Template};
use serde::Serialize;
use serde_json::{Value, json};

/// Adds the lists `documents`, `templates` and `prompts` to an object; each entry names its plugin.
pub(super) fn add_to(object: &mut Value, plugins: &[Plugin]) {
    object["documents"] = entries(plugins, |plugin| plugin.offer().items());
    object["templates"] = entries(plugins, |plugin| plugin.offer().templates());
    object["prompts"] = entries(plugins, |plugin| plugin.offer().prompts());
}

fn entries<T: Serialize>(plugins: &[Plugin], of: impl Fn(&Plugin) -> &[T]) -> Value {
    let entry = |plugin: &Plugin, it: &T| {
        let mut entry = json!(it);
        entry["plugin"] = json!(plugin.name());
        entry
    };
    plugins.iter().flat_map(|plugin| of(plugin).iter().map(move |it| entry(plugin, it))).collect()
}

/// Returns a table of the offers of these plugins, or an empty string if there are none.
pub(super) fn table(plugins: &[Plugin]) -> String {
    let rows: Vec<Vec<Cell>> =
        plugins.iter().flat_map(|plugin| rows(plugin, plugin.name())).collect();
    if rows.is_empty() {
        return String::new();
    }
    let head = ["BESIDES TOOLS", "KIND", "PLUGIN", "WHAT IT IS"].map(Cell::heading).into();
    format!("\n{}", output::table(&std::iter::once(head).chain(rows).collect::<Vec<_>>()))
}

/// Returns the offers of one plugin, indented for `inspect`.
pub(super) fn of(plugin: &Plugin) -> String {
    let indented = |mut row: Vec<Cell>| {
        row.insert(0, Cell::from("         "));
        row
    };
    let rows: Vec<_> = rows(plugin, "").into_iter().map(indented).collect();
    if rows.is_empty() { String::new() } else { format!("  offers\n{}", output::table(&rows)) }
}

fn rows(plugin: &Plugin, name: &str) -> Vec<Vec<Cell>> {
    let row = |what: &str, kind: &str, about: String| {
        let cells: [&str; 4] = [what, kind, name, &about];
        cells.iter().filter(|cell| !cell.is_empty()).map(|&cell| cell.into()).collect()
    };
    let offer = plugin.offer();
    let documents = offer.items().iter().map(|it| row(&it.uri, "document", about_item(it)));
    let templates =
        offer.templates().iter().map(|it| row(&it.uri, "documents", about_template(it)));
    let prompts =
        offer.prompts().iter().map(|it| row(&called(it), "prompt", it.description.clone()));
    documents.chain(templates).chain(prompts).collect()
}

fn about_item(item: &Item) -> String {
    item.description.as_ref().or(item.title.as_ref()).unwrap_or(&item.name).clone()
}

fn about_template(template: &Template) -> String {
    template.description.as_ref().or(template.title.as_ref()).unwrap_or(&template.name).clone()
}

/// Formats a prompt with its arguments; optional arguments are in brackets.
fn called(prompt: &Prompt) -> String {
    let argument = |it: &Argument| {
        if it.required { format!(" {}", it.name) } else { format!(" [{}]", it.name) }
    };
    prompt.name.clone() + &prompt.arguments.iter().map(argument).collect::<String>()
}
