//! Bounds the cost of a schema before it is used for validation.

use super::error::SchemaError;
use super::outline::{Node, Outline, Step};
use super::{MAX_CHAIN, MAX_EXPANDED, MAX_VISITS};

/// The number of subschemas without an access to the value that take as much time as one step.
const SILENT_PER_STEP: u64 = 8;

/// The cost of work that the accessors of values cannot observe.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Unseen {
    /// The steps per value for subschemas that do not access it.
    pub(super) silent: u64,
    /// The maximum number of passes over the list of evaluated elements of an array, for
    /// `unevaluatedItems`.
    pub(super) passes: u64,
}

/// Refuses schemas that apply themselves endlessly, too often or too deeply. The order of their
/// subschemas is that of [`children_first`].
pub(super) fn check(outline: &Outline<'_>, order: &[usize]) -> Result<Unseen, SchemaError> {
    let unseen = check_one_value(&outline.nodes, order)?;
    check_expansion(&outline.nodes)?;
    Ok(Unseen { silent: unseen.silent / SILENT_PER_STEP, ..unseen })
}

/// The cost of validating one value, in visits of subschemas.
#[derive(Debug, Default, Clone, Copy)]
struct Load {
    /// Visits during validation.
    validate: u64,
    /// Visits to collect evaluated parts, for `unevaluatedItems` and `unevaluatedProperties`. The
    /// validator validates each branch again before it descends, so nesting them multiplies the
    /// cost.
    mark: u64,
    /// The longest chain of subschemas, which determines the stack depth.
    chain: u64,
    /// Visits of subschemas that do not access the value.
    silent: u64,
}

impl Load {
    fn of(node: &Node, loads: &[Self]) -> Self {
        let mut load = Self { validate: 1, mark: 1, chain: 1, silent: u64::from(!node.looks) };
        for child in
            node.steps.iter().filter(|(step, _)| step.stays()).filter_map(|(_, to)| loads.get(*to))
        {
            load.validate = load.validate.saturating_add(child.validate);
            load.mark = load.mark.saturating_add(child.validate).saturating_add(child.mark);
            load.chain = load.chain.max(child.chain.saturating_add(1));
            load.silent = load.silent.saturating_add(child.silent);
        }
        let marks = node.unevaluated().saturating_mul(load.mark);
        load.validate = load.validate.saturating_add(marks);
        load.silent = load.silent.saturating_add(marks);
        load
    }
}

/// Bounds the cost of all subschemas for a single value. Returns the unseen cost, with the maximum
/// number of silent visits per value.
fn check_one_value(nodes: &[Node], order: &[usize]) -> Result<Unseen, SchemaError> {
    let mut loads = vec![Load::default(); nodes.len()];
    let mut unseen = Unseen::default();
    for &index in order {
        let Some(node) = nodes.get(index) else { continue };
        let load = Load::of(node, &loads);
        refuse_above(
            load.validate,
            MAX_VISITS,
            "too many subschemas for one value (counted through `$ref`, `allOf` and the like)",
            node,
        )?;
        refuse_above(
            load.chain,
            MAX_CHAIN,
            "too long a chain of `$ref`, `allOf` and the like",
            node,
        )?;
        unseen.silent = unseen.silent.max(load.silent);
        if node.collects_elements {
            unseen.passes = unseen.passes.max(load.mark);
        }
        if let Some(slot) = loads.get_mut(index) {
            *slot = load;
        }
    }
    Ok(unseen)
}

fn refuse_above(got: u64, max: usize, what: &'static str, node: &Node) -> Result<(), SchemaError> {
    if got > max as u64 {
        Err(SchemaError::TooMuch { what, max, pointer: node.pointer.clone() })
    } else {
        Ok(())
    }
}

/// Sorts the subschemas so that those applied to the same value come first. Returns an error for a
/// cycle.
pub(super) fn children_first(nodes: &[Node]) -> Result<Vec<usize>, SchemaError> {
    let mut walk = Walk::new(nodes);
    let mut order = Vec::with_capacity(nodes.len());
    for start in 0..nodes.len() {
        if walk.done(start) {
            continue;
        }
        walk.enter(start);
        while let Some(node) = walk.top() {
            match walk.next(Step::stays) {
                Some((_, to)) if walk.done(to) => {}
                Some((keyword, to)) if walk.is_open(to) => {
                    return Err(SchemaError::Circle {
                        pointer: nodes.get(to).map(|n| n.pointer.clone()).unwrap_or_default(),
                        keyword: keyword.to_owned(),
                    });
                }
                Some((_, to)) => walk.enter(to),
                None => {
                    order.push(node);
                    walk.leave();
                }
            }
        }
    }
    Ok(order)
}

/// Bounds the size of the schema after expanding every `$ref` up to its recursion.
fn check_expansion(nodes: &[Node]) -> Result<(), SchemaError> {
    let mut walk = Walk::new(nodes);
    let mut expanded = 1;
    walk.enter(0);
    while let Some(node) = walk.top() {
        let Some((_, to)) = walk.next(|_| true) else {
            walk.reopen();
            continue;
        };
        expanded += 1;
        if expanded > MAX_EXPANDED {
            let pointer = nodes.get(node).map(|node| node.pointer.clone()).unwrap_or_default();
            return Err(SchemaError::TooMuch {
                what: "too many subschemas with every `$ref` written out",
                max: MAX_EXPANDED,
                pointer,
            });
        }
        if !walk.is_open(to) {
            walk.enter(to);
        }
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    New,
    Open,
    Done,
}

/// A depth-first walk with an explicit stack, so that long chains cannot overflow the thread's
/// stack.
struct Walk<'n> {
    nodes: &'n [Node],
    marks: Vec<Mark>,
    stack: Vec<(usize, usize)>,
}

impl<'n> Walk<'n> {
    fn new(nodes: &'n [Node]) -> Self {
        Self { nodes, marks: vec![Mark::New; nodes.len()], stack: Vec::new() }
    }

    fn mark(&mut self, node: usize, mark: Mark) {
        if let Some(slot) = self.marks.get_mut(node) {
            *slot = mark;
        }
    }

    fn done(&self, node: usize) -> bool {
        self.marks.get(node) == Some(&Mark::Done)
    }

    fn is_open(&self, node: usize) -> bool {
        self.marks.get(node) == Some(&Mark::Open)
    }

    fn enter(&mut self, node: usize) {
        self.mark(node, Mark::Open);
        self.stack.push((node, 0));
    }

    fn top(&self) -> Option<usize> {
        self.stack.last().map(|(node, _)| *node)
    }

    /// Returns the next step of the top node that `wanted` accepts.
    fn next(&mut self, wanted: impl Fn(&Step) -> bool) -> Option<(&'static str, usize)> {
        let (node, at) = self.stack.last_mut()?;
        for (step, to) in self.nodes.get(*node)?.steps.iter().skip(*at) {
            *at += 1;
            if wanted(step) {
                return Some((step.keyword(), *to));
            }
        }
        None
    }

    fn leave(&mut self) {
        if let Some((node, _)) = self.stack.pop() {
            self.mark(node, Mark::Done);
        }
    }

    /// Pops the top node as [`leave`](Self::leave), and lets the walk visit it again.
    fn reopen(&mut self) {
        if let Some((node, _)) = self.stack.pop() {
            self.mark(node, Mark::New);
        }
    }
}
