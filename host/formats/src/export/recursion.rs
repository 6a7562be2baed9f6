//! The definitions of a document that refer to themselves. Each definition is read once, and the
//! references between them are followed once, however many schemas ask.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::slice::Iter;

use serde_json::Value;

use super::references::StepBudget;
use palisade_schema::schema::resolve_local_ref;

/// The references of a document.
pub(super) enum References<'v> {
    /// The target of each reference.
    Known(HashMap<&'v str, Target>),
    /// The budget ended before all were read.
    Unknown,
}

/// The value that a reference leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    /// A value that does not refer to itself.
    Finite,
    /// A value that refers to itself, also through others.
    Recursive,
    /// None in this document.
    Missing,
}

impl<'v> References<'v> {
    /// Reads the references of a document. A `$ref` in data counts as a reference.
    pub(super) fn of(root: &'v Value, budget: &mut StepBudget) -> Self {
        let Some(graph) = Graph::of(root, budget) else { return Self::Unknown };
        let recursive = graph.find_recursive();
        let target = |node: Option<usize>| match node {
            None => Target::Missing,
            Some(node) if recursive.contains(&node) => Target::Recursive,
            Some(_) => Target::Finite,
        };
        Self::Known(graph.names.into_iter().map(|(name, node)| (name, target(node))).collect())
    }

    /// Returns true if this reference of the document can be replaced with its target.
    pub(super) fn is_finite(&self, reference: &str) -> bool {
        matches!(self, Self::Known(known) if known.get(reference) == Some(&Target::Finite))
    }

    /// Returns true if every reference of the document can be replaced with its target.
    pub(super) fn are_finite(&self) -> bool {
        matches!(self, Self::Known(known) if known.values().all(|it| *it == Target::Finite))
    }
}

/// The targets of references as nodes, with an edge for each reference in a target.
struct Graph<'v> {
    /// The node of each reference, or `None` if it leads nowhere.
    names: HashMap<&'v str, Option<usize>>,
    edges: Vec<Vec<usize>>,
}

impl<'v> Graph<'v> {
    /// Reads each target once. Returns `None` if the budget ends first.
    fn of(root: &'v Value, budget: &mut StepBudget) -> Option<Self> {
        let mut graph = Self { names: HashMap::new(), edges: Vec::new() };
        // By address, because one value can be named in several ways.
        let mut nodes: HashMap<usize, usize> = HashMap::new();
        let mut unread: Vec<(Option<usize>, &'v Value)> = vec![(None, root)];
        while let Some((from, value)) = unread.pop() {
            for reference in budget.collect_refs(value)? {
                let node = match graph.names.entry(reference) {
                    Entry::Occupied(known) => *known.get(),
                    Entry::Vacant(new) => {
                        let target = resolve_local_ref(root, reference);
                        let node = target.map(|target| {
                            *nodes.entry(std::ptr::from_ref(target).addr()).or_insert_with(|| {
                                graph.edges.push(Vec::new());
                                let node = graph.edges.len() - 1;
                                unread.push((Some(node), target));
                                node
                            })
                        });
                        *new.insert(node)
                    }
                };
                let edges = from.and_then(|from| graph.edges.get_mut(from));
                edges.into_iter().for_each(|edges| edges.extend(node));
            }
        }
        Some(graph)
    }

    /// Returns the nodes that lead back to themselves.
    fn find_recursive(&self) -> HashSet<usize> {
        let mut search = Search { edges: &self.edges, ..Search::default() };
        (0..self.edges.len()).for_each(|node| search.visit_from(node));
        search.recursive
    }
}

/// Tarjan's search for strongly connected components: the nodes of a component lead to each other.
/// The path is kept here and not on the stack, because a chain of references may be long.
#[derive(Default)]
struct Search<'g> {
    edges: &'g [Vec<usize>],
    visited: HashMap<usize, Visit>,
    /// The visited nodes without a component, in the order of the visits.
    open: Vec<usize>,
    recursive: HashSet<usize>,
}

/// A visited node.
#[derive(Clone, Copy)]
struct Visit {
    /// The number of nodes visited before.
    order: usize,
    /// The least order of an open node that this one leads to, as far as known.
    lowest: usize,
    is_open: bool,
}

impl<'g> Search<'g> {
    fn visit_from(&mut self, start: usize) {
        if self.visited.contains_key(&start) {
            return;
        }
        let mut path = vec![(start, self.enter(start))];
        while let Some((node, edges)) = path.last_mut() {
            let node = *node;
            match edges.next() {
                Some(next) => {
                    if *next == node {
                        self.recursive.insert(node);
                    }
                    match self.visited.get(next).copied() {
                        None => path.push((*next, self.enter(*next))),
                        Some(visit) if visit.is_open => self.lower(node, visit.order),
                        Some(_) => {}
                    }
                }
                None => {
                    path.pop();
                    let lowest = self.leave(node);
                    path.last().into_iter().for_each(|(parent, _)| self.lower(*parent, lowest));
                }
            }
        }
    }

    /// Opens a node, and returns its edges.
    fn enter(&mut self, node: usize) -> Iter<'g, usize> {
        let order = self.visited.len();
        self.visited.insert(node, Visit { order, lowest: order, is_open: true });
        self.open.push(node);
        self.edges.get(node).map(Vec::as_slice).unwrap_or_default().iter()
    }

    fn lower(&mut self, node: usize, lowest: usize) {
        if let Some(visit) = self.visited.get_mut(&node) {
            visit.lowest = visit.lowest.min(lowest);
        }
    }

    /// Ends the visit of a node, and closes its component if it is the first node of one. Returns
    /// the least order that it leads to.
    fn leave(&mut self, node: usize) -> usize {
        let Some(Visit { order, lowest, .. }) = self.visited.get(&node).copied() else {
            return usize::MAX;
        };
        if lowest < order {
            return lowest;
        }
        let begin = self.open.iter().rposition(|open| *open == node).unwrap_or_default();
        let component = self.open.split_off(begin);
        if component.len() > 1 {
            self.recursive.extend(&component);
        }
        for closed in component {
            self.visited.entry(closed).and_modify(|visit| visit.is_open = false);
        }
        usize::MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Map, json};

    /// Returns a document with these definitions, each with references to others.
    fn document(definitions: &[(&str, &[&str])]) -> Value {
        let list = |to: &&str| json!({"$ref": format!("#/$defs/{to}")});
        let definition = |to: &[&str]| json!({"anyOf": to.iter().map(list).collect::<Vec<_>>()});
        let definitions: Map<String, Value> =
            definitions.iter().map(|(name, to)| ((*name).to_owned(), definition(to))).collect();
        json!({"$defs": definitions})
    }

    #[test]
    fn definitions_on_a_cycle_are_recursive_and_those_beside_it_are_not() {
        let document = document(&[
            ("before", &["a", "leaf"]),
            ("a", &["b"]),
            ("b", &["c", "after"]),
            ("c", &["a", "missing"]),
            ("after", &["own"]),
            ("own", &["own"]),
            ("again", &["before", "%6feaf", "%6ceaf"]),
            ("leaf", &[]),
        ]);
        let references = References::of(&document, &mut StepBudget::new());
        let References::Known(known) = &references else { panic!("the budget is large enough") };
        let mut known: Vec<_> = known.iter().map(|(name, it)| (&name[8..], *it)).collect();
        known.sort_unstable_by_key(|(name, _)| *name);
        let expected = [
            ("%6ceaf", Target::Finite),
            ("%6feaf", Target::Missing),
            ("a", Target::Recursive),
            ("after", Target::Finite),
            ("b", Target::Recursive),
            ("before", Target::Finite),
            ("c", Target::Recursive),
            ("leaf", Target::Finite),
            ("missing", Target::Missing),
            ("own", Target::Recursive),
        ];
        assert_eq!(known, expected);
        assert!(!references.are_finite() && references.is_finite("#/$defs/leaf"));
    }

    #[test]
    fn long_chain_of_definitions_needs_no_stack_and_no_more_steps_than_its_size() {
        let names: Vec<String> = (0..20_000).map(|number| format!("a{number}")).collect();
        let next = names.iter().skip(1).map(|name| vec![name.as_str()]).chain([Vec::new()]);
        let chain: Vec<_> = names.iter().map(String::as_str).zip(next).collect();
        let chain: Vec<_> = chain.iter().map(|(name, to)| (*name, to.as_slice())).collect();
        let mut budget = StepBudget::new();
        assert!(References::of(&document(&chain), &mut budget).are_finite());
        assert!(!budget.is_spent());
    }
}
