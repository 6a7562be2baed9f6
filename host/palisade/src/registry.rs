//! The registered tools: an immutable snapshot that is swapped as a whole, so that readers never
//! block or see a partial change.

mod error;
pub(crate) mod origin;
mod registered;

pub use error::{DuplicateTool, RegisterError, ToolNotFound};
pub(crate) use origin::{Naming, is_named};
pub use origin::{Origin, Source};
pub use registered::Registered;
pub(crate) use registered::{Callees, Role};

use crate::execution::Factory;
use crate::workspace::ProtectedTree;
use arc_swap::ArcSwap;
use palisade_formats::{DefinitionView, Format, Strictness, export_all};
use serde_json::Value;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The position of a tool in the listing, independent of the time of registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ListingPosition {
    /// Among the shipped plugins, in their order.
    Shipped(usize),
    /// Among the embedder's initial native tools.
    Native,
    /// Among the plugins from files, in their order.
    File(usize),
    /// After all others, in order of registration.
    Later,
}

/// A collection of tools. Clones share it: a change through one is visible in all.
///
/// ```
/// use palisade::registry::{RegisterError, Registry};
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
/// # Ok::<(), RegisterError>(())
/// ```
#[derive(Clone, Default)]
pub struct Registry {
    snapshot: Arc<ArcSwap<Snapshot>>,
    /// The trees that the hosts of these tools protect, such as the files of their plugins.
    protected: Arc<Mutex<Vec<Arc<ProtectedTree>>>>,
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry").field("tools", &self.tool_names()).finish_non_exhaustive()
    }
}

/// A set of tools whose names a plugin file claims.
#[derive(Clone, Copy)]
pub(crate) enum NameClaim<'a> {
    /// Tools that are not registered yet.
    New(&'a [Arc<Registered>]),
    /// Tools that are already registered and stay.
    Standing(&'a [Arc<Registered>]),
}

/// The outcome of a file's claims.
#[derive(Debug, Default)]
pub(crate) struct ClaimOutcome {
    /// The index of the registered claim.
    pub(crate) granted: Option<usize>,
    /// The reasons why the claims before it are not registered.
    pub(crate) refused: Vec<DuplicateTool>,
}

#[derive(Default)]
struct Snapshot {
    order: Vec<(ListingPosition, Arc<Registered>)>,
    by_name: HashMap<Arc<str>, Arc<Registered>>,
    listing: OnceLock<Arc<[Value]>>,
    exported: [OnceLock<Arc<Value>>; Format::ALL.len()],
}

impl Registry {
    /// Creates an empty registry.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a native tool. The factory is called twice: it must return a new instance each time.
    ///
    /// # Errors
    ///
    /// [`RegisterError`] if the name is taken, the factory returns one instance twice, or it
    /// panics; the registry is unchanged then.
    pub fn register(&self, factory: Factory) -> Result<&Self, RegisterError> {
        let tool = Registered::native(factory)?;
        Ok(self.register_all(ListingPosition::Later, &[tool])?)
    }

    /// Replaces all tools from files with those of these files, in order, in one atomic step. Each
    /// file gets its first claim whose names are all free.
    pub(crate) fn set_files(&self, files: &[Vec<NameClaim<'_>>]) -> Vec<ClaimOutcome> {
        let mut outcomes = Vec::new();
        self.snapshot.rcu(|old| {
            let (new, new_outcomes) = old.with_files(files);
            outcomes = new_outcomes;
            new
        });
        outcomes
    }

    /// Adds all of these tools, or none.
    pub(crate) fn register_all(
        &self,
        position: ListingPosition,
        tools: &[Arc<Registered>],
    ) -> Result<&Self, DuplicateTool> {
        let mut refused = None;
        self.snapshot.rcu(|old| match old.with_tools(position, tools) {
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

    /// Returns the error for a plugin or tool that may not use this name.
    pub(crate) fn taken(&self, name: &str) -> DuplicateTool {
        DuplicateTool::new(name.to_owned(), &self.snapshot.load().by_name)
    }

    /// Returns what every host that runs these tools must protect.
    pub(crate) fn protected(&self) -> Vec<Arc<ProtectedTree>> {
        self.protected.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces what every host that runs these tools must protect.
    pub(crate) fn protect(&self, trees: Vec<Arc<ProtectedTree>>) {
        *self.protected.lock().unwrap_or_else(PoisonError::into_inner) = trees;
    }

    /// Removes a tool; its running calls continue. A plugin's tool stays removed until the content
    /// of the plugin's file changes.
    ///
    /// # Errors
    ///
    /// [`ToolNotFound`] if there is no tool of this name.
    pub fn unregister(&self, name: &str) -> Result<&Self, ToolNotFound> {
        self.get(name)?;
        self.snapshot.rcu(|old| {
            Snapshot::from_order(
                old.order
                    .iter()
                    .filter(|(_, tool)| tool.definition.name().as_str() != name)
                    .cloned()
                    .collect(),
            )
        });
        Ok(self)
    }

    /// Looks up a tool.
    ///
    /// # Errors
    ///
    /// [`ToolNotFound`] with the nearest names.
    pub fn get(&self, name: &str) -> Result<Arc<Registered>, ToolNotFound> {
        let snapshot = self.snapshot.load();
        match snapshot.by_name.get(name) {
            Some(tool) => Ok(tool.clone()),
            None => Err(ToolNotFound::among(
                name,
                snapshot.tools().map(|tool| tool.definition.name().as_str()),
            )),
        }
    }

    /// Returns true if there is a tool of this name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.snapshot.load().by_name.contains_key(name)
    }

    /// Returns all tools in listing order.
    #[must_use]
    pub fn tools(&self) -> Vec<Arc<Registered>> {
        self.snapshot.load().tools().cloned().collect()
    }

    /// Returns all names in listing order.
    #[must_use]
    pub fn tool_names(&self) -> Vec<String> {
        self.snapshot.load().tools().map(|tool| tool.definition.name().to_string()).collect()
    }

    /// Returns all definitions in the generic form `{"name", "description", "parameters"}`, cached
    /// until the registry changes.
    #[must_use]
    pub fn definitions(&self) -> Arc<[Value]> {
        let snapshot = self.snapshot.load();
        snapshot
            .listing
            .get_or_init(|| snapshot.tools().map(|tool| tool.definition.to_json()).collect())
            .clone()
    }

    /// Returns all definitions in a provider's format with unchanged schemas, cached until the
    /// registry changes.
    #[must_use]
    pub fn export(&self, format: Format) -> Arc<Value> {
        let snapshot = self.snapshot.load();
        let made = || {
            let definitions = snapshot.tools().map(|tool| &tool.definition);
            let views: Vec<_> = definitions.map(DefinitionView::from).collect();
            Arc::new(export_all(&views, format, Strictness::AsIs).0)
        };
        match Format::ALL
            .iter()
            .position(|known| *known == format)
            .and_then(|index| snapshot.exported.get(index))
        {
            Some(cell) => cell.get_or_init(made).clone(),
            None => made(),
        }
    }

    /// Creates a registry of the named tools only, in the given order. It is independent of this
    /// one. See [`HostBuilder::registry`](crate::HostBuilder::registry) to run it.
    ///
    /// # Errors
    ///
    /// [`ToolNotFound`] for the first unknown name.
    pub fn subset<'a>(
        &self,
        names: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, ToolNotFound> {
        let mut order: Vec<(ListingPosition, Arc<Registered>)> = Vec::new();
        for name in names {
            let tool = self.get(name)?;
            if !order.iter().any(|(_, known)| Arc::ptr_eq(known, &tool)) {
                order.push((ListingPosition::Later, tool));
            }
        }
        Ok(Self {
            snapshot: Arc::new(ArcSwap::from_pointee(Snapshot::from_order(order))),
            protected: Arc::new(Mutex::new(self.protected())),
        })
    }

    /// Returns the number of tools.
    #[must_use]
    pub fn len(&self) -> usize {
        self.snapshot.load().order.len()
    }

    /// Returns true if there are no tools.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Snapshot {
    fn from_order(order: Vec<(ListingPosition, Arc<Registered>)>) -> Self {
        let by_name = order
            .iter()
            .map(|(_, tool)| (tool.definition.name().to_shared(), tool.clone()))
            .collect();
        Self { order, by_name, listing: OnceLock::new(), exported: Default::default() }
    }

    fn tools(&self) -> impl Iterator<Item = &Arc<Registered>> {
        self.order.iter().map(|(_, tool)| tool)
    }

    fn with_tools(
        &self,
        position: ListingPosition,
        tools: &[Arc<Registered>],
    ) -> Result<Self, DuplicateTool> {
        let mut new =
            Self { order: self.order.clone(), by_name: self.by_name.clone(), ..Self::default() };
        new.add(position, tools)?;
        Ok(new)
    }

    /// Adds all of these tools, or none.
    fn add(
        &mut self,
        position: ListingPosition,
        tools: &[Arc<Registered>],
    ) -> Result<(), DuplicateTool> {
        if let Some(taken) =
            tools.iter().find(|tool| self.by_name.contains_key(tool.definition.name().as_str()))
        {
            return Err(DuplicateTool::new(taken.definition.name().to_string(), &self.by_name));
        }
        for tool in tools {
            let at = self.order.partition_point(|(before, _)| *before <= position);
            self.order.insert(at, (position, tool.clone()));
            self.by_name.insert(tool.definition.name().to_shared(), tool.clone());
        }
        Ok(())
    }

    fn with_files(&self, files: &[Vec<NameClaim<'_>>]) -> (Self, Vec<ClaimOutcome>) {
        let others =
            self.order.iter().filter(|(position, _)| !matches!(position, ListingPosition::File(_)));
        let mut new = Self::from_order(others.cloned().collect());
        let outcomes = files.iter().enumerate().map(|(index, claims)| {
            let mut outcome = ClaimOutcome::default();
            for (number, claim) in claims.iter().enumerate() {
                match new.add(ListingPosition::File(index), &self.still_there(claim)) {
                    Ok(()) => {
                        outcome.granted = Some(number);
                        break;
                    }
                    Err(duplicate) => outcome.refused.push(duplicate),
                }
            }
            outcome
        });
        let outcomes = outcomes.collect();
        (new, outcomes)
    }

    /// Filters a claim, so that tools which were unregistered from a standing plugin do not
    /// return.
    fn still_there(&self, claim: &NameClaim<'_>) -> Vec<Arc<Registered>> {
        let is_there = |tool: &&Arc<Registered>| {
            self.by_name
                .get(tool.definition.name().as_str())
                .is_some_and(|known| known.origin.is_same_file(&tool.origin))
        };
        match claim {
            NameClaim::New(tools) => tools.to_vec(),
            NameClaim::Standing(tools) => tools.iter().filter(is_there).cloned().collect(),
        }
    }
}
