//! A registered tool.

use super::error::RegisterError;
use super::origin::{Origin, is_named};
use crate::execution::catch_panic::panic_text;
use crate::execution::share::Share;
use crate::execution::{Factory, are_distinct, owner};
use crate::sandbox::{PluginSettings, Prepared};
use crate::tool::text::cut;
use crate::tool::{Definition, Digest};
use crate::workspace::{ProtectedPaths, Subdirectory, Workspace};
use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A registered tool: its definition and the factory that creates an instance per call.
#[derive(Clone)]
pub struct Registered {
    pub(super) definition: Definition,
    factory: Factory,
    pub(super) origin: Origin,
    grants: Arc<[String]>,
    callees: Option<Callees>,
    /// The settings of the tool's plugin, if there are any.
    settings: Option<Arc<PluginSettings>>,
    role: Role,
    owner: Digest,
    queue: Arc<Share>,
    turns: Arc<Share>,
}

/// The tools that a tool can call while it runs: those that are granted to its plugin.
#[derive(Clone)]
pub(crate) struct Callees(Arc<Prepared>);

impl Callees {
    /// Returns the callees of the tools of a plugin, if the plugin can call other tools.
    pub(crate) fn of(plugin: &Arc<Prepared>) -> Option<Self> {
        plugin.calls_tools().then(|| Self(plugin.clone()))
    }

    /// Returns true if a tool of this name is among them.
    pub(crate) fn include(&self, name: &str) -> bool {
        self.0.granted_tools().iter().any(|pattern| pattern.matches(name))
    }
}

/// The thing that a call of the entry runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// A tool.
    Tool,
    /// A document or prompt of a plugin, which is in no registry and has no name of its own.
    Offering,
}

impl fmt::Debug for Registered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registered")
            .field("name", &self.definition.name())
            .field("origin", &self.origin)
            .finish_non_exhaustive()
    }
}

impl Registered {
    /// Creates the entries of a plugin's tools, with what is granted to the plugin and its
    /// settings.
    pub(crate) fn from_plugin(
        origin: &Origin,
        tools: Vec<(Definition, Factory)>,
        grants: &[String],
        callees: Option<&Callees>,
        settings: Option<&Arc<PluginSettings>>,
    ) -> Vec<Arc<Self>> {
        let grants: Arc<[String]> = grants.into();
        let entry = |(definition, factory)| {
            let entry = Self::new(definition, factory, origin.clone(), Role::Tool);
            let (callees, settings) = (callees.cloned(), settings.cloned());
            Arc::new(Self { grants: grants.clone(), callees, settings, ..entry })
        };
        tools.into_iter().map(entry).collect()
    }

    /// Creates the entry of a native tool. Its factory is called twice, to see that it returns a
    /// new instance each time.
    pub(crate) fn native(factory: Factory) -> Result<Arc<Self>, RegisterError> {
        let tried = catch_unwind(AssertUnwindSafe(|| {
            let (first, second) = (factory(), factory());
            let origin = first.server().map_or(Origin::Native, Origin::Server);
            (first.definition().clone(), origin, are_distinct(&*first, &*second))
        }));
        match tried {
            Ok((definition, origin, true)) => Ok(Self::tool(definition, factory, origin)),
            Ok((definition, _, false)) => {
                Err(RegisterError::SharedInstance { name: definition.name().to_string() })
            }
            Err(panic) => {
                let message = cut(panic_text(&*panic).unwrap_or("no message"), 512).to_owned();
                Err(RegisterError::Panicked { message })
            }
        }
    }

    /// Creates the entry of a tool.
    pub(crate) fn tool(definition: Definition, factory: Factory, origin: Origin) -> Arc<Self> {
        Arc::new(Self::new(definition, factory, origin, Role::Tool))
    }

    /// Creates an entry outside any registry, which cannot be called by name.
    pub(crate) fn offering(
        definition: Definition,
        factory: Factory,
        origin: Origin,
        settings: Option<Arc<PluginSettings>>,
    ) -> Arc<Self> {
        let entry = Self::new(definition, factory, origin, Role::Offering);
        Arc::new(Self { settings, ..entry })
    }

    fn new(definition: Definition, factory: Factory, origin: Origin, role: Role) -> Self {
        let owner =
            origin.digest().unwrap_or_else(|| Digest::of(definition.name().as_str().as_bytes()));
        let shared = owner::owner_of(owner);
        let queue = owner::queue().share_of(&shared);
        let turns = owner::turns().share_of(&shared);
        let (grants, callees, settings) = (Arc::default(), None, None);
        Self { definition, factory, origin, grants, callees, settings, role, owner, queue, turns }
    }

    /// Returns the tool's definition.
    #[must_use]
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// Creates a new instance.
    #[must_use]
    pub fn instantiate(&self) -> Box<dyn crate::execution::Tool> {
        (self.factory)()
    }

    /// Returns the tool's origin.
    #[must_use]
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Returns what is granted to the tool's plugin beyond the classes of its tools, one grant on
    /// each line.
    #[must_use]
    pub fn grants(&self) -> &[String] {
        &self.grants
    }

    /// Returns the tools that the tool can call while it runs, if it can call any.
    pub(crate) fn callees(&self) -> Option<&Callees> {
        self.callees.as_ref()
    }

    /// Returns the tool with another definition, which changes what is shown of it.
    pub(crate) fn shown_with(&self, definition: Definition) -> Arc<Self> {
        Arc::new(Self { definition, ..self.clone() })
    }

    /// Returns the settings of the tool's plugin, if there are any.
    pub(crate) fn settings(&self) -> Option<&PluginSettings> {
        self.settings.as_deref()
    }

    /// Returns the directory of the workspace that the tool sees, if it sees files and not all of
    /// the workspace.
    pub(crate) fn subdirectory(&self) -> Option<&Subdirectory> {
        let subdirectory = self.settings()?.workspace()?;
        self.definition.side_effects().sees_files().then_some(subdirectory)
    }

    /// Returns the rules of a workspace for this tool.
    pub(crate) fn rules_in(&self, workspace: &Workspace) -> Arc<ProtectedPaths> {
        match self.settings() {
            None => workspace.rules(),
            Some(settings) => settings.narrow(workspace.rules()),
        }
    }

    /// Returns the memory of the guest of one call, in bytes, if the tool's plugin has its own.
    #[doc(hidden)]
    #[must_use]
    pub fn memory(&self) -> Option<u64> {
        self.settings().and_then(PluginSettings::memory)
    }

    /// Returns the name under which a rule may permit this tool: its own name, qualified by its
    /// plugin's.
    #[must_use]
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.origin.rule_name(), self.definition.own_name())
    }

    /// Returns true if a rule of this name, `tool` or `plugin/tool`, is about this tool: by the
    /// name that sessions see or by the tool's own.
    #[must_use]
    pub fn is_named(&self, name: &str) -> bool {
        is_named(name, &self.definition, &self.origin)
    }

    /// Returns the value for this tool among those by tools' names: that of its own name with the
    /// plugin's, of the name that sessions see with the plugin's, or of one of them alone.
    pub(crate) fn rule_in<'m, V>(&self, rules: &'m BTreeMap<String, V>) -> Option<&'m V> {
        // Few tools have such rules, and a call should not build a name for nothing.
        if rules.is_empty() {
            return None;
        }
        let (own, seen) = (self.definition.own_name().as_str(), self.definition.name().as_str());
        let plugin = self.origin.rule_name();
        let full = rules.get(&format!("{plugin}/{own}"));
        if own == seen {
            return full.or_else(|| rules.get(own));
        }
        let full = full.or_else(|| rules.get(&format!("{plugin}/{seen}")));
        full.or_else(|| rules.get(seen)).or_else(|| rules.get(own))
    }

    pub(crate) fn role(&self) -> Role {
        self.role
    }

    /// Returns the owner to whom the tool's calls are charged: its plugin, or the native tool
    /// itself.
    pub(crate) fn owner(&self) -> Digest {
        self.owner
    }

    /// Returns the owner's share of the queue slots.
    pub(crate) fn queue(&self) -> &Arc<Share> {
        &self.queue
    }

    /// Returns the owner's share of the turns to compute.
    #[doc(hidden)]
    pub fn turns(&self) -> &Arc<Share> {
        &self.turns
    }
}
