//! The documents, document templates and prompts of plugins, as `list` and `inspect` show them.

use super::output::{self, Cell};
use super::wrap::hanging;
use palisade::plugins::Plugin;
use palisade::tool::offer::{Argument, Item, Prompt, Template};
use palisade::tool::text::elided;
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

/// Returns the offers of one plugin in full, indented for `inspect`.
pub(super) fn of(plugin: &Plugin, room: usize) -> String {
    let offer = plugin.offer();
    let items = offer.items().iter().map(|it| {
        let size = it.size.map(|size| format!("{size} bytes"));
        let about = [
            ("name", Some(it.name.clone())),
            ("title", it.title.clone()),
            ("description", it.description.clone()),
            ("type", it.mime.clone()),
            ("size", size),
        ];
        entry(&format!("document {}", it.uri), &about, room)
    });
    let templates = offer.templates().iter().map(|it| {
        let about = [
            ("name", Some(it.name.clone())),
            ("title", it.title.clone()),
            ("description", it.description.clone()),
            ("type", it.mime.clone()),
        ];
        entry(&format!("documents {}", it.uri), &about, room)
    });
    let prompts = offer.prompts().iter().map(|it| {
        let about = [("title", it.title.clone()), ("description", Some(it.description.clone()))];
        let arguments = it.arguments.iter().map(|argument| {
            let about = [("description", argument.description.clone())];
            entry(&format!("argument {} of {}", argument.name, it.name), &about, room)
        });
        entry(&format!("prompt {}", called(it)), &about, room) + &arguments.collect::<String>()
    });
    let text: String = items.chain(templates).chain(prompts).collect();
    if text.is_empty() { text } else { format!("  offers\n{text}") }
}

/// Formats one offer with what it says about itself.
fn entry(what: &str, about: &[(&str, Option<String>)], room: usize) -> String {
    let indent = |columns: usize| " ".repeat(columns);
    let mut text = hanging(&indent(11), &indent(13), &line(what), room);
    for (key, value) in about {
        let lines = value.iter().flat_map(|value| value.lines());
        lines.for_each(|it| {
            let shown = format!("{key}: {}", line(it));
            text.push_str(&hanging(&indent(13), &indent(15), &shown, room));
        });
    }
    text
}

/// Returns text of a plugin on one line.
fn line(text: &str) -> String {
    elided(text, usize::MAX)
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
