//! The cost of the code that a function can run without a check of the epoch, on any way through
//! it: a branch may lead around a check, and a loop that never runs has none.

use super::error::SliceError;
use wasmparser::Operator;

/// The most operators of a function with calls between two checks of the epoch.
///
/// The engine checks the epoch at the head of each function and of each loop, and before each bulk
/// instruction, but not when a call returns. A recursion of some 16,000 frames, which fit a guest's
/// stack, would otherwise run the straight code behind its calls 16,000 times without a check.
pub(super) const MOST: usize = 512;

/// The cost of an operator that the engine carries out in a function of its own, in operators. That
/// takes some 15 ns.
const BY_ENGINE: usize = 16;

/// The cost of an access to memory, in operators. If each one misses the caches, it takes some
/// 150 ns.
const ACCESS: usize = 8;

/// Returns the cost of an operator, in operators. An operator that the host carries out has the
/// whole cost, so that a check comes behind it: it takes up to a millisecond, and a recursion could
/// make some in each of its frames. A call of an imported function leads through a function of the
/// guest, whose head is a check.
pub(super) fn cost(operator: &Operator<'_>) -> usize {
    match operator {
        Operator::MemoryGrow { .. } | Operator::TableGrow { .. } => MOST,
        // Up to 20,000 elements each, before which the engine checks no epoch.
        Operator::TableFill { .. } | Operator::TableCopy { .. } | Operator::TableInit { .. } => {
            MOST
        }
        // The engine calls a function of its own.
        Operator::RefFunc { .. } | Operator::ElemDrop { .. } | Operator::DataDrop { .. } => {
            BY_ENGINE
        }
        operator if accesses_memory(operator) => ACCESS,
        _ => 1,
    }
}

fn accesses_memory(operator: &Operator<'_>) -> bool {
    use Operator::*;
    matches!(
        operator,
        I32Load { .. }
            | I64Load { .. }
            | F32Load { .. }
            | F64Load { .. }
            | V128Load { .. }
            | I32Load8S { .. }
            | I32Load8U { .. }
            | I32Load16S { .. }
            | I32Load16U { .. }
            | I64Load8S { .. }
            | I64Load8U { .. }
            | I64Load16S { .. }
            | I64Load16U { .. }
            | I64Load32S { .. }
            | I64Load32U { .. }
            | I32Store { .. }
            | I64Store { .. }
            | F32Store { .. }
            | F64Store { .. }
            | V128Store { .. }
            | I32Store8 { .. }
            | I32Store16 { .. }
            | I64Store8 { .. }
            | I64Store16 { .. }
            | I64Store32 { .. }
            | V128Load8x8S { .. }
            | V128Load8x8U { .. }
            | V128Load16x4S { .. }
            | V128Load16x4U { .. }
            | V128Load32x2S { .. }
            | V128Load32x2U { .. }
            | V128Load8Splat { .. }
            | V128Load16Splat { .. }
            | V128Load32Splat { .. }
            | V128Load64Splat { .. }
            | V128Load32Zero { .. }
            | V128Load64Zero { .. }
            | V128Load8Lane { .. }
            | V128Load16Lane { .. }
            | V128Load32Lane { .. }
            | V128Load64Lane { .. }
            | V128Store8Lane { .. }
            | V128Store16Lane { .. }
            | V128Store32Lane { .. }
            | V128Store64Lane { .. }
    )
}

/// Whether a check has to be inserted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// Before the operator.
    Now,
    /// Not here.
    Later,
}

/// The cost since the last check.
pub(super) struct StraightCode {
    /// The most on any way to this place.
    now: usize,
    /// The blocks around this place, the function first.
    blocks: Vec<Block>,
}

/// A block, loop or `if`.
#[derive(Default)]
struct Block {
    /// A branch to a loop leads to its head, which is a check.
    is_loop: bool,
    /// The most operators at a branch to its end.
    at_end: usize,
    /// The most operators at an `if` whose `else` has not come.
    at_else: usize,
}

impl StraightCode {
    /// Begins at the head of a function, which is a check.
    pub(super) fn new() -> Self {
        Self { now: 0, blocks: vec![Block::default()] }
    }

    /// Counts an operator, and says whether a check has to come before it.
    pub(super) fn count(&mut self, operator: &Operator<'_>) -> Result<Due, SliceError> {
        let cost = cost(operator);
        let is_loop = matches!(operator, Operator::Loop { .. });
        let due = if !is_loop && self.now >= MOST { Due::Now } else { Due::Later };
        self.now = match (is_loop, due) {
            (true, _) => 0,
            (false, Due::Now) => cost,
            (false, Due::Later) => self.now + cost,
        };
        match operator {
            Operator::Loop { .. } => self.enter(Block { is_loop, ..Block::default() }),
            Operator::Block { .. } => self.enter(Block::default()),
            Operator::If { .. } => {
                self.enter(Block { at_else: self.now, ..Block::default() });
            }
            Operator::TryTable { .. } => self.enter_try(),
            Operator::Else => self.begin_else(),
            Operator::End => self.leave(),
            Operator::Br { relative_depth } => {
                self.branch(*relative_depth);
                self.now = 0;
            }
            Operator::BrTable { targets } => {
                for target in targets.targets() {
                    self.branch(target?);
                }
                self.branch(targets.default());
                self.now = 0;
            }
            Operator::BrIf { relative_depth }
            | Operator::BrOnNull { relative_depth }
            | Operator::BrOnNonNull { relative_depth }
            | Operator::BrOnCast { relative_depth, .. }
            | Operator::BrOnCastFail { relative_depth, .. } => self.branch(*relative_depth),
            // Nothing runs behind these.
            Operator::Return
            | Operator::Unreachable
            | Operator::ReturnCall { .. }
            | Operator::ReturnCallIndirect { .. } => self.now = 0,
            _ => {}
        }
        Ok(due)
    }

    fn enter(&mut self, block: Block) {
        self.blocks.push(block);
    }

    /// The engine has no exceptions. If it had, each operator inside could lead to any block.
    fn enter_try(&mut self) {
        for block in &mut self.blocks {
            block.at_end = MOST;
        }
        self.enter(Block { at_end: MOST, ..Block::default() });
    }

    fn begin_else(&mut self) {
        if let Some(block) = self.blocks.last_mut() {
            block.at_end = block.at_end.max(self.now);
            self.now = std::mem::take(&mut block.at_else);
        }
    }

    fn leave(&mut self) {
        if let Some(block) = self.blocks.pop() {
            self.now = self.now.max(block.at_end).max(block.at_else);
        }
    }

    /// Carries the operators to the place that a branch leads to.
    fn branch(&mut self, depth: u32) {
        let index = usize::try_from(depth)
            .ok()
            .and_then(|depth| self.blocks.len().checked_sub(1)?.checked_sub(depth));
        let block = index.and_then(|index| self.blocks.get_mut(index));
        if let Some(block) = block.filter(|block| !block.is_loop) {
            block.at_end = block.at_end.max(self.now);
        }
    }
}
