//! The tools that a session lists, and their definitions in the formats of providers.

use super::{Host, callees};
use crate::registry::Registered;
use crate::session::Session;
use crate::tool::Definition;
use palisade_formats::{DefinitionView, Format, Strictness, Weakening, export_all};
use serde_json::Value;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The maximum number of cached exports: some kinds of session, each in the formats of all
/// providers.
const MAX_EXPORTS: usize = 32;

/// Definitions in a provider's format.
#[derive(Debug, Clone, PartialEq)]
pub struct Exported {
    /// The definitions, as the provider takes them.
    pub definitions: Value,
    /// The parts that the format cannot express.
    pub weakened: Vec<Weakening>,
}

impl Host {
    /// Returns the tools that a session lists, in listing order: see [`Session::lists`]. A tool
    /// that the host's own policy or list refuses to a session that the host has not begun is not
    /// among them.
    #[must_use]
    pub fn tools(&self, session: &Session) -> Vec<Arc<Registered>> {
        let all = self.registry().tools();
        let is_listed = |tool: &Arc<Registered>| self.dispatcher.floor.lists(session, tool);
        let mut tools: Vec<_> = all.iter().filter(|tool| is_listed(tool)).cloned().collect();
        for tool in tools.iter_mut().filter(|tool| callees::are_listed(tool)) {
            let is_callee = |it: &Arc<Registered>| {
                self.dispatcher.floor.lists_to_programs(session, it) && callees::is_of(tool, it)
            };
            let callees: Vec<_> = all.iter().filter(|it| is_callee(it)).cloned().collect();
            *tool = self.callees.described(tool, &callees);
        }
        tools
    }

    /// Returns the definitions of the tools that a session lists, in listing order.
    #[must_use]
    pub fn definitions(&self, session: &Session) -> Vec<Definition> {
        self.tools(session).iter().map(|tool| tool.definition().clone()).collect()
    }

    /// Returns the definitions of the tools that a session lists, in a provider's format. Sessions
    /// that list the same tools share the result until one of the tools changes; at most 32 results
    /// are kept.
    #[must_use]
    pub fn export(
        &self,
        session: &Session,
        format: Format,
        strictness: Strictness,
    ) -> Arc<Exported> {
        self.exports.get(&self.tools(session), (format, strictness))
    }
}

/// The last exports, the most recently used first.
#[derive(Default)]
pub(super) struct Exports(Mutex<Vec<Entry>>);

struct Entry {
    /// Weak, so that removed plugins are not kept.
    tools: Vec<Weak<Registered>>,
    form: (Format, Strictness),
    exported: Arc<Exported>,
}

impl Entry {
    fn is_of(&self, tools: &[Arc<Registered>], form: (Format, Strictness)) -> bool {
        // An address is not used again while a weak reference to it exists.
        let same = |(known, tool): (&Weak<_>, &Arc<_>)| known.as_ptr() == Arc::as_ptr(tool);
        self.form == form
            && self.tools.len() == tools.len()
            && self.tools.iter().zip(tools).all(same)
    }
}

impl Exports {
    fn get(&self, tools: &[Arc<Registered>], form: (Format, Strictness)) -> Arc<Exported> {
        if let Some(known) = self.known(tools, form) {
            return known;
        }
        // Outside of the lock, since it may take long.
        let exported = Arc::new(exported(tools, form));
        // Another thread may have been faster; all get the same result.
        if let Some(known) = self.known(tools, form) {
            return known;
        }
        let tools = tools.iter().map(Arc::downgrade).collect();
        let mut entries = self.entries();
        entries.insert(0, Entry { tools, form, exported: exported.clone() });
        entries.truncate(MAX_EXPORTS);
        exported
    }

    /// Returns a kept result, which is then the most recently used one.
    fn known(
        &self,
        tools: &[Arc<Registered>],
        form: (Format, Strictness),
    ) -> Option<Arc<Exported>> {
        let mut entries = self.entries();
        let known = entries.iter().position(|entry| entry.is_of(tools, form))?;
        entries[..=known].rotate_right(1);
        entries.first().map(|entry| entry.exported.clone())
    }

    fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn exported(tools: &[Arc<Registered>], (format, strictness): (Format, Strictness)) -> Exported {
    let views: Vec<_> = tools.iter().map(|tool| DefinitionView::from(tool.definition())).collect();
    let (definitions, weakened) = export_all(&views, format, strictness);
    Exported { definitions, weakened }
}
