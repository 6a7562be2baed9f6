//! A plugin as a person sees it before an approval.

use crate::cli::args::Common;
use crate::cli::{grants, inspect, setup, wishes, wrap};
use palisade::SideEffects;
use palisade::plugins::Plugin;
use palisade::policy::{Decision, Mode};
use palisade::registry::Registered;
use palisade::tool::offer::Offer;
use palisade::tool::text::elided;
use palisade_trust::{Review, State, Verified};
use serde_json::{Value, json};
use std::sync::Arc;

/// The longest list of names in the sum above the question, in characters. All are shown before.
const MAX_NAMES: usize = 200;
/// The indentation of a difference.
const INDENT: &str = "  ";

/// Returns what `inspect` shows of a new plugin, or the difference from the approved one, in lines
/// of at most `room` columns.
pub(in crate::cli) fn text(
    common: &Common,
    plugin: &Plugin,
    review: &Review,
    room: usize,
) -> String {
    let name = elided(plugin.name(), 128);
    let state = format!("`{name}`: {}.", review.state.in_words());
    let mut text = wrap::hanging("", INDENT, &state, room);
    match review.difference().filter(|_| !matches!(review.state, State::New { .. })) {
        Some(difference) => {
            for line in difference.lines() {
                let rest = format!("{INDENT}{}    ", leading(line));
                let first = format!("{INDENT}{}", leading(line));
                text.push_str(&wrap::hanging(&first, &rest, line.trim_start(), room));
            }
        }
        None => text.push_str(&inspect::plugin_to_approve(plugin, room)),
    }
    let granted = grants::with_approval(common, &review.entry);
    text.push_str(&classes(plugin, granted.as_deref().unwrap_or_default(), room));
    text.push_str(&ruled(common, plugin, room));
    let granted = match granted {
        Ok(grants) => {
            grants.iter().map(|it| format!("with the approval it has `{it}` as well")).collect()
        }
        Err(_) => vec!["unknown: the grants cannot be read".to_owned()],
    };
    for grant in granted {
        text.push_str(&wrap::hanging(INDENT, "      ", &format!("granted    {grant}"), room));
    }
    text.push_str(&wishes::text(common, plugin, None, room));
    if review.entry.is_installed() {
        let source = format!("source     {}", elided(&review.entry.source, 300));
        text.push_str(&wrap::hanging(INDENT, "      ", &source, room));
    }
    text.push_str(&wrap::hanging(INDENT, "      ", &signature(review), room));
    text
}

/// Sums up directly above the question: the tools of each class, the widest class first, with the
/// sandbox that they get with the grants of the approval. Documents and prompts run in the sandbox
/// of class read.
fn classes(plugin: &Plugin, granted: &[String], room: usize) -> String {
    let of = |class: &SideEffects| {
        let tools = plugin.definitions().iter().filter(|tool| tool.side_effects() == *class);
        let names: Vec<&str> = tools.map(|tool| tool.name().as_str()).collect();
        let tools = (!names.is_empty())
            .then(|| format!("{}: {}", counted(names.len()), elided(&names.join(", "), MAX_NAMES)));
        let offered = (*class == SideEffects::Read && *plugin.offer() != Offer::default())
            .then(|| "documents or prompts".to_owned());
        let those: Vec<String> = tools.into_iter().chain(offered).collect();
        let line =
            format!("{} ({})", those.join("; "), inspect::sandbox_with(plugin, granted, *class));
        let begin = format!("{INDENT}{:<9}  ", class.as_str());
        (!those.is_empty()).then(|| wrap::hanging(&begin, "      ", &line, room))
    };
    let mut classes = SideEffects::ALL.to_vec();
    classes.sort_unstable();
    classes.iter().rev().filter_map(of).collect()
}

/// Lists the tools of a class that asks which a rule of the settings lets run without a question:
/// the rule may have been made for another plugin of this name.
fn ruled(common: &Common, plugin: &Plugin, room: usize) -> String {
    let Ok(settings) = setup::settings(common) else { return String::new() };
    let policy = settings.policy(&common.workspace);
    let rule = |tool: &Arc<Registered>| {
        let (definition, origin) = (tool.definition(), tool.origin());
        let Decision { mode, rule } = policy.explain(definition, origin);
        let asks_by_class = match definition.side_effects() {
            SideEffects::None | SideEffects::Read => false,
            SideEffects::Write | SideEffects::Execute | SideEffects::Network => true,
        };
        let effect = match mode {
            Mode::Auto => "runs without a question",
            Mode::PromptOnce => "asks once",
            Mode::Prompt | Mode::Deny => return None,
        };
        let name = rule.tool_name(definition, origin).filter(|_| asks_by_class)?;
        let line = format!(
            "rule       {} {effect}, because of `\"{}\" = \"{mode}\"` in [confirm.tools]",
            definition.name(),
            elided(&name, 300)
        );
        Some(wrap::hanging(INDENT, "      ", &line, room))
    };
    plugin.tools().iter().filter_map(rule).collect()
}

fn counted(tools: usize) -> String {
    if tools == 1 { "1 tool".to_owned() } else { format!("{tools} tools") }
}

/// Returns the white space before a line.
fn leading(line: &str) -> String {
    " ".repeat(line.len() - line.trim_start().len())
}

/// Says what is known of the signature.
fn signature(review: &Review) -> String {
    match &review.signature {
        Ok(Verified::By(signer)) => format!("signature  valid, by {signer}"),
        Ok(Verified::NoKey) => {
            "signature  not verified: no key is configured for this source (`[[plugins.keys]]`)"
                .to_owned()
        }
        Err(error) => format!("signature  REFUSED: {error}"),
    }
}

/// Returns a plugin that waits for an approval.
pub(in crate::cli) fn json(common: &Common, plugin: &Plugin, review: &Review) -> Value {
    let entry = &review.entry;
    let difference = review.difference();
    json!({
        "plugin": entry.name,
        "source": entry.source,
        "state": review.state.as_str(),
        "reason": review.state.in_words(),
        "digest": entry.digest,
        "size": entry.size,
        "version": review.version,
        "describes": entry.describes.to_string(),
        "tools": entry.tools.iter().map(|tool| json!({"name": tool.name, "class": tool.class})).collect::<Vec<_>>(),
        "signer": entry.signer.as_ref().map(ToString::to_string),
        "imports": entry.imports,
        "grants": grants::with_approval(common, entry).ok(),
        "wishes": wishes::json(common, plugin, None),
        "words": review.words,
        "approved_words": review.former_words,
        "obstacles": review.obstacles().iter().map(ToString::to_string).collect::<Vec<_>>(),
        "difference": difference.as_ref().map(palisade_trust::Difference::lines),
    })
}
