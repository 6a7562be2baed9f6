//! The descriptions of tools that call others: they end with the declarations of what the tool may
//! call, as the session shows it.

use crate::registry::Registered;
use crate::tool::{Definition, Schema};
use palisade_declarations::{Declared, Tool, declare};
use serde_json::Value;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The metadata key of a tool whose description lists its callees. Only shipped tools have it: the
/// declarations are in the form that their programs use.
const LISTS_CALLEES: &str = "lists-callees";

/// The most bytes of declarations in a description.
const DECLARATIONS: usize = 16 << 10;

/// The most descriptions that are kept: some kinds of session.
const KEPT: usize = 16;

/// The last described tools, the most recently used first.
#[derive(Default)]
pub(super) struct DescribedTools(Mutex<Vec<Entry>>);

struct Entry {
    /// The tool and its callees; weak, so that removed plugins are not kept.
    of: Vec<Weak<Registered>>,
    described: Arc<Registered>,
}

/// Returns true if the description of a tool lists what the tool may call.
pub(super) fn are_listed(tool: &Registered) -> bool {
    let is_shipped = tool.origin().digest().is_some() && tool.origin().file().is_none();
    is_shipped
        && tool.callees().is_some()
        && tool.definition().metadata().get(LISTS_CALLEES) == Some(&Value::Bool(true))
}

/// Returns true if a tool may call another one, which calls none itself.
pub(super) fn is_of(tool: &Registered, callee: &Registered) -> bool {
    let name = callee.definition().name().as_str();
    callee.callees().is_none() && tool.callees().is_some_and(|callees| callees.include(name))
}

impl DescribedTools {
    /// Returns a tool with the declarations of its callees. The same tools have the same result, so
    /// that it can be told apart by its address.
    pub(super) fn described(
        &self,
        tool: &Arc<Registered>,
        callees: &[Arc<Registered>],
    ) -> Arc<Registered> {
        let of = || std::iter::once(tool).chain(callees);
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = entries.iter().position(|entry| {
            // An address is not used again while a weak reference to it exists.
            entry.of.len() == callees.len() + 1
                && entry.of.iter().zip(of()).all(|(known, it)| known.as_ptr() == Arc::as_ptr(it))
        });
        if let Some(known) = known {
            entries[..=known].rotate_right(1);
        } else {
            let described = tool.shown_with(described(tool.definition(), callees));
            entries.insert(0, Entry { of: of().map(Arc::downgrade).collect(), described });
            entries.truncate(KEPT);
        }
        entries.first().map_or_else(|| tool.clone(), |entry| entry.described.clone())
    }
}

fn described(definition: &Definition, callees: &[Arc<Registered>]) -> Definition {
    let tools = callees.iter().map(|callee| {
        let definition = callee.definition();
        Tool {
            name: definition.name().as_str(),
            description: definition.description(),
            input: definition.parameters(),
            output: definition.output_schema().map(Schema::as_value),
        }
    });
    let Declared { text, left_out } = declare(tools, DECLARATIONS);
    let more = match left_out {
        0 => String::new(),
        left_out => format!("// {left_out} more: `tools.search(\"words\")` returns them\n"),
    };
    definition.clone().with_note(&format!("declare const tools: {{\n{text}{more}}};"))
}
