//! The tools there are: an immutable snapshot, swapped whole, so that readers never wait and never see half a change.

mod error;
mod origin;

pub use error::{DuplicateTool, ToolNotFound};
pub(crate) use origin::{NATIVE, Naming};
pub use origin::{Origin, Source};

use crate::execution::share::Share;
use crate::execution::{Factory, Pace, owner};
use crate::tool::formats::{Format, Strictness, export_all};
use crate::tool::{Definition, Digest};
use arc_swap::ArcSwap;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

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
    definition: Definition,
    factory: Factory,
    origin: Origin,
    pace: Arc<Pace>,
    owner: Digest,
    queue: Arc<Share>,
    turns: Arc<Share>,
}

impl Registered {
    /// The tools of a plugin.
    pub(crate) fn of_plugin(origin: &Origin, tools: Vec<(Definition, Factory)>) -> Vec<Arc<Self>> {
        let entry = |(definition, factory)| Self::apart(definition, factory, origin.clone());
        tools.into_iter().map(entry).collect()
    }

    /// A tool that is in no registry: it is called by whoever holds it, and by nobody's name.
    pub(crate) fn apart(definition: Definition, factory: Factory, origin: Origin) -> Arc<Self> {
        let owner = origin.digest().unwrap_or_else(|| Digest::of(definition.name().as_str().as_bytes()));
        let (queue, turns) = (owner::queue().share(owner), owner::turns().share(owner));
        Arc::new(Self { definition, factory, origin, pace: Arc::default(), owner, queue, turns })
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

    /// How long it took the last time.
    pub(crate) fn pace(&self) -> &Arc<Pace> {
        &self.pace
    }

    /// With whose calls its own are counted: a plugin's together, a native tool's by themselves.
    pub(crate) fn owner(&self) -> Digest {
        self.owner
    }

    /// The owner's share of the places for calls that wait.
    pub(crate) fn queue(&self) -> &Arc<Share> {
        &self.queue
    }

    /// The owner's share of the turns to compute.
    pub(crate) fn turns(&self) -> &Arc<Share> {
        &self.turns
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

/// What a file could have registered.
#[derive(Clone, Copy)]
pub(crate) enum Offer<'a> {
    /// Tools that are not there yet.
    New(&'a [Arc<Registered>]),
    /// Tools that are there, and stay the ones that they are.
    Standing(&'a [Arc<Registered>]),
}

/// What became of the offers of a file.
#[derive(Debug, Default)]
pub(crate) struct Granted {
    /// The number of the one that is registered.
    pub(crate) offer: Option<usize>,
    /// Why those before it are not.
    pub(crate) refused: Vec<DuplicateTool>,
}

#[derive(Default)]
struct Snapshot {
    order: Vec<(Place, Arc<Registered>)>,
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
        self.add(place, &[Registered::apart(definition, factory, Origin::Native)])
    }

    /// Adds all tools of a plugin, or none.
    pub(crate) fn register_plugin(&self, place: Place, tools: &[Arc<Registered>]) -> Result<&Self, DuplicateTool> {
        self.add(place, tools)
    }

    /// Puts the plugins of these files, in their order, into the places of all that came from files, in one step: nobody sees half of it. Each file gets the
    /// first of its offers whose names are all free.
    pub(crate) fn set_files(&self, files: &[Vec<Offer<'_>>]) -> Vec<Granted> {
        let mut granted = Vec::new();
        self.0.rcu(|old| {
            let (new, outcome) = old.with_files(files);
            granted = outcome;
            new
        });
        granted
    }

    fn add(&self, place: Place, tools: &[Arc<Registered>]) -> Result<&Self, DuplicateTool> {
        let mut refused = None;
        self.0.rcu(|old| match old.with(place, tools) {
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

    /// What is said of a plugin or a tool that may not have this name.
    pub(crate) fn taken(&self, name: &str) -> DuplicateTool {
        DuplicateTool::new(name.to_owned(), &self.0.load().by_name)
    }

    /// Removes a tool. Calls that run go on. One of a plugin stays away until other bytes stand in the plugin's file.
    ///
    /// # Errors
    ///
    /// [`ToolNotFound`] where there is none of that name.
    pub fn unregister(&self, name: &str) -> Result<&Self, ToolNotFound> {
        self.get(name)?;
        self.0.rcu(|old| {
            Snapshot::from_order(
                old.order.iter().filter(|(_, tool)| tool.definition.name().as_str() != name).cloned().collect(),
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
            None => Err(ToolNotFound::among(name, snapshot.tools().map(|tool| tool.definition.name().as_str()))),
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
        self.0.load().tools().cloned().collect()
    }

    /// All names, in the order of registration.
    #[must_use]
    pub fn tool_names(&self) -> Vec<String> {
        self.0.load().tools().map(|tool| tool.definition.name().to_string()).collect()
    }

    /// All definitions in the plain form `{"name", "description", "parameters"}`. Made once for each state of the registry.
    #[must_use]
    pub fn definitions(&self) -> Arc<[Value]> {
        let snapshot = self.0.load();
        snapshot.listing.get_or_init(|| snapshot.tools().map(|tool| tool.definition.to_json()).collect()).clone()
    }

    /// All definitions in a provider's format, schemas as they are. Made once for each state of the registry, and again after a change.
    #[must_use]
    pub fn export(&self, format: Format) -> Arc<Value> {
        let snapshot = self.0.load();
        let made = || {
            let views: Vec<_> = snapshot.tools().map(|tool| tool.definition.view()).collect();
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
        let mut order: Vec<(Place, Arc<Registered>)> = Vec::new();
        for name in names {
            let tool = self.get(name)?;
            if !order.iter().any(|(_, known)| Arc::ptr_eq(known, &tool)) {
                order.push((Place::Later, tool));
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
    fn from_order(order: Vec<(Place, Arc<Registered>)>) -> Self {
        let by_name = order.iter().map(|(_, tool)| (tool.definition.name().to_shared(), tool.clone())).collect();
        Self { order, by_name, listing: OnceLock::new(), exported: Default::default() }
    }

    fn tools(&self) -> impl Iterator<Item = &Arc<Registered>> {
        self.order.iter().map(|(_, tool)| tool)
    }

    fn with(&self, place: Place, tools: &[Arc<Registered>]) -> Result<Self, DuplicateTool> {
        let mut new = Self { order: self.order.clone(), by_name: self.by_name.clone(), ..Self::default() };
        new.add(place, tools)?;
        Ok(new)
    }

    /// Adds all of these, or none.
    fn add(&mut self, place: Place, tools: &[Arc<Registered>]) -> Result<(), DuplicateTool> {
        if let Some(taken) = tools.iter().find(|tool| self.by_name.contains_key(tool.definition.name().as_str())) {
            return Err(DuplicateTool::new(taken.definition.name().to_string(), &self.by_name));
        }
        for tool in tools {
            let at = self.order.partition_point(|(before, _)| *before <= place);
            self.order.insert(at, (place, tool.clone()));
            self.by_name.insert(tool.definition.name().to_shared(), tool.clone());
        }
        Ok(())
    }

    fn with_files(&self, files: &[Vec<Offer<'_>>]) -> (Self, Vec<Granted>) {
        let others = self.order.iter().filter(|(place, _)| !matches!(place, Place::File(_)));
        let mut new = Self::from_order(others.cloned().collect());
        let granted = files.iter().enumerate().map(|(index, offers)| {
            let mut granted = Granted::default();
            for (number, offer) in offers.iter().enumerate() {
                match new.add(Place::File(index), &self.still_there(offer)) {
                    Ok(()) => {
                        granted.offer = Some(number);
                        break;
                    }
                    Err(duplicate) => granted.refused.push(duplicate),
                }
            }
            granted
        });
        let granted = granted.collect();
        (new, granted)
    }

    /// What somebody has taken away of a plugin that stays does not come back with it.
    fn still_there(&self, offer: &Offer<'_>) -> Vec<Arc<Registered>> {
        let is_there = |tool: &&Arc<Registered>| {
            self.by_name
                .get(tool.definition.name().as_str())
                .is_some_and(|known| known.origin.is_same_file(&tool.origin))
        };
        match offer {
            Offer::New(tools) => tools.to_vec(),
            Offer::Standing(tools) => tools.iter().filter(is_there).cloned().collect(),
        }
    }
}
