//! Finds the values that a schema marks with `"format": "workspace-path"`.

use std::collections::VecDeque;

use serde_json::{Map, Value};

use super::error::SchemaError;
use super::outline::{Outline, Step, push_token};

/// One value of an input that names a file of the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathArgument {
    /// A JSON pointer to the value.
    pub pointer: String,
    /// The path, as the caller gave it.
    pub value: String,
}

/// The part of a schema that leads to path values. Everything else has been left out, so that most schemas have none.
#[derive(Debug, Default)]
pub(super) struct Plan {
    nodes: Vec<Branch>,
}

#[derive(Debug, Default, Clone)]
struct Branch {
    is_path: bool,
    same: Vec<usize>,
    members: Vec<(String, usize)>,
    elements: Vec<(usize, usize)>,
}

impl Plan {
    /// Refuses a mark that is reached through anything but `properties`, `items` and `$ref`.
    pub(super) fn new(outline: &Outline<'_>) -> Result<Self, SchemaError> {
        refuse_other_ways(outline)?;
        let leads = leading(outline);
        if leads.first() != Some(&true) {
            return Ok(Self::default());
        }
        let mut nodes = vec![Branch::default(); outline.nodes.len()];
        for (branch, node) in nodes.iter_mut().zip(&outline.nodes) {
            branch.is_path = node.is_path;
            for (step, to) in node.steps.iter().filter(|(_, to)| leads.get(*to) == Some(&true)) {
                branch.add(step, *to);
            }
        }
        Ok(Self { nodes })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Lists the path values of `input`.
    pub(super) fn find(&self, input: &Value) -> Vec<PathArgument> {
        let mut found = Vec::new();
        if !self.is_empty() {
            self.walk(input, &[0], &mut String::new(), &mut found);
        }
        found
    }

    fn walk(&self, value: &Value, at: &[usize], pointer: &mut String, found: &mut Vec<PathArgument>) {
        let at = self.closure(at);
        match value {
            Value::String(path) if at.iter().any(|branch| branch.is_path) => {
                found.push(PathArgument { pointer: pointer.clone(), value: path.clone() });
            }
            Value::Object(members) => self.members(members, &at, pointer, found),
            Value::Array(elements) => self.elements(elements, &at, pointer, found),
            _ => {}
        }
    }

    fn members(
        &self,
        members: &Map<String, Value>,
        at: &[&Branch],
        pointer: &mut String,
        found: &mut Vec<PathArgument>,
    ) {
        let mut names: Vec<&str> =
            at.iter().flat_map(|branch| &branch.members).map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            let Some(value) = members.get(name) else { continue };
            let named = at.iter().flat_map(|branch| &branch.members).filter(|(member, _)| member == name);
            let next: Vec<usize> = named.map(|(_, to)| *to).collect();
            self.inside(value, &next, name, pointer, found);
        }
    }

    fn elements(&self, elements: &[Value], at: &[&Branch], pointer: &mut String, found: &mut Vec<PathArgument>) {
        if at.iter().all(|branch| branch.elements.is_empty()) {
            return;
        }
        for (index, value) in elements.iter().enumerate() {
            let later = at.iter().flat_map(|branch| &branch.elements).filter(|(from, _)| index >= *from);
            let next: Vec<usize> = later.map(|(_, to)| *to).collect();
            self.inside(value, &next, &index.to_string(), pointer, found);
        }
    }

    fn inside(&self, value: &Value, next: &[usize], token: &str, pointer: &mut String, found: &mut Vec<PathArgument>) {
        let length = pointer.len();
        push_token(pointer, token);
        self.walk(value, next, pointer, found);
        pointer.truncate(length);
    }

    /// All branches that judge the value, each once: two ways to one branch must not become two visits of the value.
    fn closure(&self, at: &[usize]) -> Vec<&Branch> {
        let mut indices: Vec<usize> = Vec::with_capacity(at.len());
        let mut open: Vec<usize> = at.to_vec();
        while let Some(index) = open.pop() {
            if !indices.contains(&index) {
                indices.push(index);
                open.extend(self.nodes.get(index).into_iter().flat_map(|branch| &branch.same));
            }
        }
        indices.into_iter().filter_map(|index| self.nodes.get(index)).collect()
    }
}

impl Branch {
    fn add(&mut self, step: &Step, to: usize) {
        match step {
            Step::Ref => self.same.push(to),
            Step::Property(name) => self.members.push((name.clone(), to)),
            Step::Items(from) => self.elements.push((*from, to)),
            // Behind these there is no mark, or the schema would have been refused.
            Step::Same(_) | Step::Inside(_) => {}
        }
    }
}

/// Follows every way from the root and refuses marks at the end of those that leave the accepted steps.
fn refuse_other_ways(outline: &Outline<'_>) -> Result<(), SchemaError> {
    if !outline.nodes.iter().any(|node| node.is_path) {
        return Ok(());
    }
    let mut seen = vec![false; outline.nodes.len()];
    let mut clean = vec![false; outline.nodes.len()];
    let mut open: VecDeque<(usize, Option<&'static str>)> = VecDeque::from([(0, None)]);
    while let Some((index, through)) = open.pop_front() {
        let visited = if through.is_some() { &mut seen } else { &mut clean };
        let (Some(visited), Some(node)) = (visited.get_mut(index), outline.nodes.get(index)) else { continue };
        if std::mem::replace(visited, true) {
            continue;
        }
        if let (true, Some(keyword)) = (node.is_path, through) {
            return Err(SchemaError::PathPlace { pointer: node.pointer.clone(), keyword: keyword.to_owned() });
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

/// Which nodes lead to a mark, in whatever number of steps.
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
    let mut open: Vec<usize> =
        (0..outline.nodes.len()).filter(|at| outline.nodes.get(*at).is_some_and(|node| node.is_path)).collect();
    while let Some(index) = open.pop() {
        if leads.get_mut(index).is_some_and(|seen| !std::mem::replace(seen, true)) {
            open.extend(back.get(index).into_iter().flatten());
        }
    }
    leads
}
