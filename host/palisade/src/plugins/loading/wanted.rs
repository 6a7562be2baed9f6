//! Selects the files to compile before a call, so that the owner of a tool does not depend on the
//! compilation order.

use super::work::{Work, lock};
use crate::plugins::approvals::PluginBytes;
use crate::plugins::candidate::Candidate;
use crate::plugins::loaded::Compiling;
use crate::plugins::observer::LoadStep;
use crate::plugins::plugin::Plugin;
use crate::plugins::reserved;
use crate::plugins::sources::Shipped;
use crate::sandbox::Freshness;
use crate::tool::{Definition, SideEffects};

/// The candidates to compile before a tool is called.
enum Scope {
    /// All that may have the tool, because it has no known owner.
    All,
    /// Those before this index, except for candidates that an earlier run did not finish, and for
    /// those without approval, which take no name.
    Before(usize),
}

impl Work {
    /// Compiles the files that may have these tools, until no earlier file can take a tool from its
    /// owner. Three kinds of files are skipped: those that an earlier run did not finish, those
    /// without approval, and those before a cached plugin whose tool is read-only.
    pub(super) fn compile_for(&self, tools: &[&str]) {
        let _turn = lock(&self.turn);
        let mut goes_on = true;
        while goes_on && !self.cancel.is_cancelled() {
            // A file that loses a name may leave it to one whose predecessors were not wanted
            // before.
            goes_on = self.compile_wanted(|| self.wanted(tools));
        }
        self.tell(LoadStep::End);
    }

    /// Returns the uncompiled files that precede the owner of a tool and may claim it.
    pub(super) fn undecided_before(&self, tool: &str) -> Vec<Compiling> {
        let uncompiled = lock(&self.uncompiled).clone();
        let Some((owner, _)) = self.owner(tool).filter(|_| !uncompiled.is_empty()) else {
            return Vec::new();
        };
        let before = uncompiled.into_iter().filter(|index| *index < owner);
        let candidates = before.filter_map(|index| Some((index, self.candidates.get(index)?)));
        let may_have = candidates
            .filter(|(_, candidate)| self.may_have(candidate, tool) && !self.is_refused(candidate));
        may_have.map(|(index, candidate)| self.compiling_file(index, candidate)).collect()
    }

    /// Returns the predicate for the candidates that are wanted now.
    fn wanted(&self, tools: &[&str]) -> impl Fn(usize, &Candidate) -> bool {
        let scopes: Vec<(&str, Scope)> =
            tools.iter().map(|tool| (*tool, self.scope(tool))).collect();
        let last = lock(&self.last).clone();
        move |index, candidate| {
            let is_within = |scope: &Scope| match scope {
                Scope::All => true,
                Scope::Before(owner) => {
                    index < *owner && !last.contains(&index) && !self.is_refused(candidate)
                }
            };
            scopes.iter().any(|(tool, scope)| self.may_have(candidate, tool) && is_within(scope))
        }
    }

    fn scope(&self, tool: &str) -> Scope {
        match self.owner(tool) {
            Some((index, ToolOwner { freshness: Freshness::Cached, class })) => match class {
                SideEffects::None | SideEffects::Read => Scope::Before(0),
                SideEffects::Write | SideEffects::Execute | SideEffects::Network => {
                    Scope::Before(index)
                }
            },
            // Itself as well, if only its description is known.
            Some((index, _)) => Scope::Before(index + 1),
            // A native tool.
            None if self.task.registry.has(tool) => Scope::Before(0),
            None => Scope::All,
        }
    }

    /// Returns the current owner of a tool with its index.
    fn owner(&self, tool: &str) -> Option<(usize, ToolOwner)> {
        let decided = lock(&self.decided);
        let standing =
            decided.iter().filter_map(|(index, slot)| Some((*index, slot.standing.as_ref()?)));
        standing
            .filter_map(|(index, plugin)| Some((index, ToolOwner::from_plugin(plugin, tool)?)))
            .next()
    }

    /// Returns true for a file that takes no name, because its bytes are not approved.
    fn is_refused(&self, candidate: &Candidate) -> bool {
        let Some(path) = candidate.path() else { return false };
        let Ok(known) = candidate.file_digest(self.task.sandbox.cache(), None) else {
            return false;
        };
        let bytes = PluginBytes { name: &candidate.name(), path, digest: known.digest };
        self.task.approvals.refusal_of_bytes(&bytes).is_some()
    }

    fn may_have(&self, candidate: &Candidate, tool: &str) -> bool {
        match reserved::owner(tool).filter(|_| self.task.sources.shipped == Shipped::Included) {
            Some(owner) => candidate.is_shipped() && candidate.name() == owner,
            None => !candidate.is_shipped(),
        }
    }
}

/// The properties of a tool's owner.
struct ToolOwner {
    freshness: Freshness,
    class: SideEffects,
}

impl ToolOwner {
    fn from_plugin(plugin: &Plugin, tool: &str) -> Option<Self> {
        let mut definitions = plugin.tools().iter().map(|tool| tool.definition());
        let definition = definitions.find(|definition| definition.name().as_str() == tool);
        let class = definition.map(Definition::side_effects)?;
        Some(Self { freshness: plugin.freshness(), class })
    }
}
