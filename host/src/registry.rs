//! The tools there are: an immutable snapshot, swapped whole, so that readers never wait and never see half a change.

use crate::execution::Factory;
use crate::tool::formats::{Format, Strictness, export_all};
use crate::tool::{Definition, Digest, nearest_names};
use arc_swap::ArcSwap;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// Where a tool comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Code of the program that embeds the host.
    Native,
    /// A WebAssembly plugin.
    Plugin {
        /// The plugin's name: its file's name without `.wasm`.
        name: Arc<str>,
        /// The SHA-256 of its bytes.
        digest: Digest,
    },
}

impl Origin {
    /// The plugin's name, where it is one.
    #[must_use]
    pub fn plugin(&self) -> Option<&str> {
        match self {
            Self::Native => None,
            Self::Plugin { name, .. } => Some(name),
        }
    }

    /// The SHA-256 of the plugin's bytes. Code of the program itself has none.
    #[must_use]
    pub fn digest(&self) -> Option<Digest> {
        match self {
            Self::Native => None,
            Self::Plugin { digest, .. } => Some(*digest),
        }
    }
}

/// Where a tool stands among the others, whenever it comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// With the shipped plugins, in their order.
    Shipped(usize),
    /// With the native tools that the program brings from the start.
    Native,
    /// With the plugins from files, in their order.
    File(usize),
    /// Behind them all, as it comes.
    Later,
}

/// A registered tool: its definition and the factory that makes an instance for each call.
#[derive(Clone)]
pub struct Registered {
    place: Place,
    definition: Definition,
    factory: Factory,
    origin: Origin,
}

impl Registered {
    /// A tool that is in no registry: it is called by whoever holds it, and by nobody's name.
    pub(crate) fn apart(definition: Definition, factory: Factory, origin: Origin) -> Arc<Self> {
        Arc::new(Self { place: Place::Later, definition, factory, origin })
    }

    /// What the tool is.
    #[must_use]
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// Makes a fresh instance.
    #[must_use]
    pub fn instantiate(&self) -> Box<dyn crate::execution::Tool> {
        (self.factory)()
    }

    /// Where it comes from.
    #[must_use]
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// With whose calls its own are counted: a plugin's together, a native tool's by themselves.
    pub(crate) fn share(&self) -> Digest {
        match &self.origin {
            Origin::Plugin { digest, .. } => *digest,
            Origin::Native => Digest::of(self.definition.name().as_str().as_bytes()),
        }
    }
}

/// Collects tools. Cloning shares: a change through one clone is seen by all.
///
/// ```
/// use palisade::{Registry, DuplicateTool};
/// # use palisade::{BoxFuture, Definition, ErrorKind, SideEffects, Tool, ToolContext, ToolOutput, ValidInput, json};
/// # use std::sync::Arc;
/// # struct Echo(Definition);
/// # impl Tool for Echo {
/// #     fn definition(&self) -> &Definition { &self.0 }
/// #     fn execute<'a>(&'a self, _: ValidInput, _: &'a ToolContext) -> BoxFuture<'a, Result<ToolOutput, ErrorKind>> { Box::pin(async { Ok(ToolOutput::text("")) }) }
/// # }
/// # fn factory(name: &'static str) -> palisade::Factory {
/// #     Arc::new(move || Box::new(Echo(Definition::new(name, "Echoes.", SideEffects::None, json!({"type": "object"})).unwrap())))
/// # }
/// let registry = Registry::new();
/// registry.register(factory("echo"))?.register(factory("repeat"))?;
/// assert_eq!(registry.tool_names(), ["echo", "repeat"]);
/// assert!(registry.register(factory("echo")).is_err());
/// assert_eq!(registry.subset(["repeat"]).unwrap().len(), 1);
/// # Ok::<(), DuplicateTool>(())
/// ```
#[derive(Clone, Default)]
pub struct Registry(Arc<ArcSwap<Snapshot>>);

#[derive(Default)]
struct Snapshot {
    order: Vec<Arc<Registered>>,
    by_name: HashMap<Arc<str>, Arc<Registered>>,
    listing: OnceLock<Arc<[Value]>>,
    exported: [OnceLock<Arc<Value>>; Format::ALL.len()],
}

impl Registry {
    /// An empty registry.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a native tool. The factory is asked for one instance, to learn its definition.
    ///
    /// # Errors
    ///
    /// [`DuplicateTool`] where the name is taken; nothing changes then.
    pub fn register(&self, factory: Factory) -> Result<&Self, DuplicateTool> {
        self.register_at(Place::Later, factory)
    }

    pub(crate) fn register_at(&self, place: Place, factory: Factory) -> Result<&Self, DuplicateTool> {
        let definition = factory().definition().clone();
        self.add(&[Registered { place, definition, factory, origin: Origin::Native }])
    }

    /// Adds all tools of a plugin, or none.
    pub(crate) fn register_plugin(
        &self,
        place: Place,
        origin: &Origin,
        tools: Vec<(Definition, Factory)>,
    ) -> Result<&Self, DuplicateTool> {
        let entry = |(definition, factory)| Registered { place, definition, factory, origin: origin.clone() };
        self.add(&tools.into_iter().map(entry).collect::<Vec<_>>())
    }

    fn add(&self, entries: &[Registered]) -> Result<&Self, DuplicateTool> {
        let mut refused = None;
        self.0.rcu(|old| match old.with(entries) {
            Ok(new) => {
                refused = None;
                Arc::new(new)
            }
            Err(duplicate) => {
                refused = Some(duplicate);
                old.clone()
            }
        });
        refused.map_or(Ok(self), Err)
    }

    /// What somebody is told who may not have this name.
    pub(crate) fn taken(&self, name: &str) -> DuplicateTool {
        DuplicateTool::new(name.to_owned(), &self.0.load().by_name)
    }

    /// Removes a tool. Calls that run go on.
    ///
    /// # Errors
    ///
    /// [`ToolNotFound`] where there is none of that name.
    pub fn unregister(&self, name: &str) -> Result<&Self, ToolNotFound> {
        self.get(name)?;
        self.0.rcu(|old| {
            Snapshot::from_order(
                old.order.iter().filter(|tool| tool.definition.name().as_str() != name).cloned().collect(),
            )
        });
        Ok(self)
    }

    /// Looks a tool up.
    ///
    /// # Errors
    ///
    /// [`ToolNotFound`], with the nearest names.
    pub fn get(&self, name: &str) -> Result<Arc<Registered>, ToolNotFound> {
        let snapshot = self.0.load();
        match snapshot.by_name.get(name) {
            Some(tool) => Ok(tool.clone()),
            None => Err(ToolNotFound::among(name, &snapshot.order)),
        }
    }

    /// Whether there is a tool of this name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.0.load().by_name.contains_key(name)
    }

    /// All tools, in the order of registration.
    #[must_use]
    pub fn tools(&self) -> Vec<Arc<Registered>> {
        self.0.load().order.clone()
    }

    /// All names, in the order of registration.
    #[must_use]
    pub fn tool_names(&self) -> Vec<String> {
        self.0.load().order.iter().map(|tool| tool.definition.name().to_string()).collect()
    }

    /// All definitions in the plain form `{"name", "description", "parameters"}`. Made once for each state of the registry.
    #[must_use]
    pub fn definitions(&self) -> Arc<[Value]> {
        let snapshot = self.0.load();
        snapshot.listing.get_or_init(|| snapshot.order.iter().map(|tool| tool.definition.to_json()).collect()).clone()
    }

    /// All definitions in a provider's format, schemas as they are. Made once for each state of the registry, and again after a change.
    #[must_use]
    pub fn export(&self, format: Format) -> Arc<Value> {
        let snapshot = self.0.load();
        let made = || {
            let views: Vec<_> = snapshot.order.iter().map(|tool| tool.definition.view()).collect();
            Arc::new(export_all(&views, format, Strictness::AsIs).0)
        };
        match Format::ALL.iter().position(|known| *known == format).and_then(|index| snapshot.exported.get(index)) {
            Some(cell) => cell.get_or_init(made).clone(),
            None => made(),
        }
    }

    /// A new registry with only the tools named, in the order named.
    ///
    /// # Errors
    ///
    /// [`ToolNotFound`] for the first name that there is no tool of.
    pub fn subset<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Result<Self, ToolNotFound> {
        let mut order: Vec<Arc<Registered>> = Vec::new();
        for name in names {
            let tool = self.get(name)?;
            if !order.iter().any(|known| Arc::ptr_eq(known, &tool)) {
                order.push(tool);
            }
        }
        Ok(Self(Arc::new(ArcSwap::from_pointee(Snapshot::from_order(order)))))
    }

    /// How many tools there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.load().order.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Snapshot {
    fn from_order(order: Vec<Arc<Registered>>) -> Self {
        let by_name = order.iter().map(|tool| (tool.definition.name().to_shared(), tool.clone())).collect();
        Self { order, by_name, listing: OnceLock::new(), exported: Default::default() }
    }

    fn with(&self, entries: &[Registered]) -> Result<Self, DuplicateTool> {
        let mut new = Self { order: self.order.clone(), by_name: self.by_name.clone(), ..Self::default() };
        for entry in entries {
            let name = entry.definition.name().to_shared();
            if new.by_name.contains_key(&name) {
                return Err(DuplicateTool::new(name.to_string(), &new.by_name));
            }
            let entry = Arc::new(entry.clone());
            let at = new.order.partition_point(|before| before.place <= entry.place);
            new.order.insert(at, entry.clone());
            new.by_name.insert(name, entry);
        }
        Ok(new)
    }
}

/// A name that is taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the tool `{name}` already exists; use another name, such as `{suggestion}`")]
pub struct DuplicateTool {
    name: String,
    suggestion: String,
}

impl DuplicateTool {
    fn new(name: String, taken: &HashMap<Arc<str>, Arc<Registered>>) -> Self {
        let stem = crate::tool::text::cut(&name, 56).to_owned();
        let free = (2..).map(|n: u32| format!("{stem}_{n}")).find(|candidate| !taken.contains_key(candidate.as_str()));
        Self { suggestion: free.unwrap_or_else(|| stem.clone()), name }
    }

    /// The name that is taken.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A name that is free.
    #[must_use]
    pub fn suggestion(&self) -> &str {
        &self.suggestion
    }
}

/// A name that no tool has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no tool `{name}`")]
pub struct ToolNotFound {
    name: String,
    nearest: Vec<String>,
}

impl ToolNotFound {
    fn among(name: &str, tools: &[Arc<Registered>]) -> Self {
        let nearest = nearest_names(name, tools.iter().map(|tool| tool.definition.name().as_str()));
        Self { name: crate::tool::text::cut(name, 256).to_owned(), nearest }
    }

    /// The name asked for.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Up to three names near it.
    #[must_use]
    pub fn nearest(&self) -> &[String] {
        &self.nearest
    }
}
