//! Finds the values that a schema marks with `"format": "workspace-path"`.

use std::collections::VecDeque;

use serde_json::Value;

use super::access::PathAccess;
use super::error::SchemaError;
use super::outline::{Outline, Step};
use super::pointer::push_token;
use crate::budget::{Budget, Exhausted, Purse};

/// The part of a schema that leads to marked values; empty for most schemas.
#[derive(Debug, Default)]
pub(super) struct Plan {
    nodes: Vec<Branch>,
}

#[derive(Debug, Default, Clone)]
struct Branch {
    path: Option<PathAccess>,
    same: Vec<usize>,
    /// Sorted by name.
    members: Vec<(String, usize)>,
    elements: Vec<(usize, usize)>,
}

impl Plan {
    /// Refuses a mark that is reached through other keywords than `properties`, `items` and `$ref`.
    pub(super) fn new(outline: &Outline<'_>) -> Result<Self, SchemaError> {
        refuse_other_ways(outline)?;
        let leads = leading(outline);
        if leads.first() != Some(&true) {
            return Ok(Self::default());
        }
        let mut nodes = vec![Branch::default(); outline.nodes.len()];
        for (branch, node) in nodes.iter_mut().zip(&outline.nodes) {
            branch.path = node.path;
            for (step, to) in node.steps.iter().filter(|(_, to)| leads.get(*to) == Some(&true)) {
                branch.add(step, *to);
            }
            branch.members.sort_unstable();
        }
        Ok(Self { nodes })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Calls `f` with each path value of `input`.
    pub(super) fn each<E: From<Exhausted>>(
        &self,
        input: &Value,
        budget: &dyn Budget,
        f: &mut impl FnMut(&str, PathAccess) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.is_empty() { Ok(()) } else { Walk::new(self, budget).list(input, &[0], f) }
    }

    /// Replaces the path values of `input`. Pointers are built on demand and not stored, because
    /// long pointers to many values could take more memory than the values themselves.
    pub(super) fn map<E: From<Exhausted>>(
        &self,
        input: &mut Value,
        budget: &dyn Budget,
        f: &mut impl FnMut(&str, &str) -> Result<String, E>,
    ) -> Result<(), E> {
        if self.is_empty() {
            return Ok(());
        }
        Walk::new(self, budget).replace(input, &[0], &mut String::new(), f)
    }
}

/// A walk through an input. It iterates over the members of the value, as the validator did, and
/// not over the properties of the schema, which may be two thousand for an empty object.
struct Walk<'p, 'b> {
    plan: &'p Plan,
    purse: Purse<'b>,
    /// The last visit of each branch.
    seen: Vec<u32>,
    visit: u32,
}

impl<'p, 'b> Walk<'p, 'b> {
    /// The work of finding a name in a branch, in the unit of the purse.
    const LOOK: usize = 32;

    fn new(plan: &'p Plan, budget: &'b dyn Budget) -> Self {
        Self { plan, purse: Purse::new(budget), seen: vec![0; plan.nodes.len()], visit: 0 }
    }

    fn list<E: From<Exhausted>>(
        &mut self,
        value: &Value,
        at: &[usize],
        f: &mut impl FnMut(&str, PathAccess) -> Result<(), E>,
    ) -> Result<(), E> {
        let at = self.closure(at)?;
        let at = at.as_slice();
        match value {
            Value::String(path) => match access(at) {
                Some(access) => f(path, access),
                None => Ok(()),
            },
            Value::Object(members) => members.iter().try_for_each(|(name, value)| {
                let inside = self.behind_member(at, name)?;
                if inside.as_slice().is_empty() {
                    Ok(())
                } else {
                    self.list(value, inside.as_slice(), f)
                }
            }),
            Value::Array(elements) if at.iter().any(|branch| !branch.elements.is_empty()) => {
                elements
                    .iter()
                    .enumerate()
                    .try_for_each(|(index, value)| self.list(value, &behind_element(at, index), f))
            }
            _ => Ok(()),
        }
    }

    fn replace<E: From<Exhausted>>(
        &mut self,
        value: &mut Value,
        at: &[usize],
        pointer: &mut String,
        f: &mut impl FnMut(&str, &str) -> Result<String, E>,
    ) -> Result<(), E> {
        let at = self.closure(at)?;
        let at = at.as_slice();
        let length = pointer.len();
        match value {
            Value::String(path) if at.iter().any(|branch| branch.path.is_some()) => {
                *path = f(pointer, path)?;
            }
            Value::Object(members) => {
                for (name, value) in members {
                    let inside = self.behind_member(at, name)?;
                    if inside.as_slice().is_empty() {
                        continue;
                    }
                    push_token(pointer, name);
                    self.replace(value, inside.as_slice(), pointer, f)?;
                    pointer.truncate(length);
                }
            }
            Value::Array(elements) if at.iter().any(|branch| !branch.elements.is_empty()) => {
                for (index, value) in elements.iter_mut().enumerate() {
                    push_token(pointer, &index.to_string());
                    self.replace(value, &behind_element(at, index), pointer, f)?;
                    pointer.truncate(length);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns all branches that apply to the value, without duplicates: two connections to one
    /// branch must not cause two visits of the value.
    fn closure(&mut self, at: &[usize]) -> Result<Few<&'p Branch>, Exhausted> {
        if let [index] = at
            && let Some(branch) = self.plan.nodes.get(*index)
            && branch.same.is_empty()
        {
            self.purse.worked(0)?;
            return Ok(Few::One([branch]));
        }
        self.visit = self.visit.wrapping_add(1);
        let mut branches = Vec::with_capacity(at.len());
        let mut open: Vec<usize> = at.to_vec();
        while let Some(index) = open.pop() {
            self.purse.worked(0)?;
            let is_new = self
                .seen
                .get_mut(index)
                .is_some_and(|seen| std::mem::replace(seen, self.visit) != self.visit);
            if let Some(branch) = self.plan.nodes.get(index).filter(|_| is_new) {
                branches.push(branch);
                open.extend(&branch.same);
            }
        }
        Ok(Few::Several(branches))
    }

    fn behind_member(&mut self, at: &[&Branch], name: &str) -> Result<Few<usize>, Exhausted> {
        self.purse.worked(at.len().saturating_mul(Self::LOOK))?;
        Ok(match at {
            [branch] => branch.member(name).map_or(Few::Several(Vec::new()), |to| Few::One([to])),
            _ => Few::Several(at.iter().filter_map(|branch| branch.member(name)).collect()),
        })
    }
}

/// A list that has a single element in most schemas, and then needs no allocation.
enum Few<T> {
    One([T; 1]),
    Several(Vec<T>),
}

impl<T> Few<T> {
    fn as_slice(&self) -> &[T] {
        match self {
            Self::One(one) => one,
            Self::Several(several) => several,
        }
    }
}

/// Returns the use of a value, if a branch marks it as a path: the strongest one that is said.
fn access(at: &[&Branch]) -> Option<PathAccess> {
    at.iter().filter_map(|branch| branch.path).max()
}

fn behind_element(at: &[&Branch], index: usize) -> Vec<usize> {
    let later = at.iter().flat_map(|branch| &branch.elements).filter(|(from, _)| index >= *from);
    later.map(|(_, to)| *to).collect()
}

impl Branch {
    /// Returns the branch of the member with this name.
    fn member(&self, name: &str) -> Option<usize> {
        let at = self.members.binary_search_by(|(member, _)| member.as_str().cmp(name)).ok()?;
        self.members.get(at).map(|(_, to)| *to)
    }

    fn add(&mut self, step: &Step, to: usize) {
        match step {
            Step::Ref => self.same.push(to),
            Step::Property(name) => self.members.push((name.clone(), to)),
            Step::Items(from) => self.elements.push((*from, to)),
            // No mark lies behind these, or the schema would have been refused.
            Step::Same(_) | Step::Inside(_) => {}
        }
    }
}

/// Follows every connection from the root, and refuses marks behind a keyword that is not accepted.
fn refuse_other_ways(outline: &Outline<'_>) -> Result<(), SchemaError> {
    if !outline.nodes.iter().any(|node| node.path.is_some()) {
        return Ok(());
    }
    let mut seen = vec![false; outline.nodes.len()];
    let mut clean = vec![false; outline.nodes.len()];
    let mut open: VecDeque<(usize, Option<&'static str>)> = VecDeque::from([(0, None)]);
    while let Some((index, through)) = open.pop_front() {
        let visited = if through.is_some() { &mut seen } else { &mut clean };
        let (Some(visited), Some(node)) = (visited.get_mut(index), outline.nodes.get(index)) else {
            continue;
        };
        if std::mem::replace(visited, true) {
            continue;
        }
        if let (Some(_), Some(keyword)) = (node.path, through) {
            return Err(SchemaError::PathPlace {
                pointer: node.pointer.clone(),
                keyword: keyword.to_owned(),
            });
        }
        open.extend(node.steps.iter().map(|(step, to)| (*to, through.or(other(step)))));
    }
    Ok(())
}

fn other(step: &Step) -> Option<&'static str> {
    match step {
        Step::Ref | Step::Property(_) | Step::Items(_) => None,
        Step::Same(keyword) | Step::Inside(keyword) => Some(keyword),
    }
}

/// Returns for each node whether it leads to a mark, directly or indirectly.
fn leading(outline: &Outline<'_>) -> Vec<bool> {
    let mut back = vec![Vec::new(); outline.nodes.len()];
    for (from, node) in outline.nodes.iter().enumerate() {
        for (_, to) in &node.steps {
            if let Some(sources) = back.get_mut(*to) {
                sources.push(from);
            }
        }
    }
    let mut leads = vec![false; outline.nodes.len()];
    let mut open: Vec<usize> = (0..outline.nodes.len())
        .filter(|at| outline.nodes.get(*at).is_some_and(|node| node.path.is_some()))
        .collect();
    while let Some(index) = open.pop() {
        if leads.get_mut(index).is_some_and(|seen| !std::mem::replace(seen, true)) {
            open.extend(back.get(index).into_iter().flatten());
        }
    }
    leads
}
