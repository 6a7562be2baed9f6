//! The rewriting of one function body.

use super::added::AddedFunctions;
use super::error::SliceError;
use super::layout::Layout;
use super::sections::{Change, Writer};
use super::slow_path::{Bulk, SLICE};
use super::straight_code::{Due, StraightCode, cost};
use std::ops::Range;
use wasm_encoder::{BlockType, Instruction, ValType};
use wasmparser::{FunctionBody, Operator};

/// Writes a function body with its length before it.
pub(super) fn rewrite(
    body: &FunctionBody<'_>,
    parameters: u32,
    layout: &Layout<'_>,
    added: &mut AddedFunctions<'_>,
    out: &mut Writer,
) -> Result<Change, SliceError> {
    let edits = edits(body, layout, added)?;
    if edits.is_empty() {
        out.length(body.as_bytes().len())?;
        out.raw(body.as_bytes());
        return Ok(Change::None);
    }
    let locals = Locals::of(body, parameters)?;
    let mut inner = Writer::default();
    let mut done = body.range().start;
    if edits.iter().any(|(edit, _)| matches!(edit, Edit::Slice(_))) {
        inner.number(locals.groups.checked_add(1).ok_or(SliceError::TooLarge)?);
        inner.raw(part(body, locals.range.clone()));
        inner.number(1);
        inner.encode(&ValType::I32);
        done = locals.range.end;
    }
    for (edit, range) in edits {
        inner.raw(part(body, done..range.start));
        done = range.end;
        match edit {
            Edit::Slice(bulk) => {
                let function = added.slow_path(bulk)?;
                branch(locals.count, layout.next_type()?, function, part(body, range), &mut inner);
            }
            Edit::Call(function) => inner.encode(&Instruction::Call(function)),
            Edit::TailCall(function) => inner.encode(&Instruction::ReturnCall(function)),
            Edit::Reference(function) => inner.encode(&Instruction::RefFunc(function)),
            Edit::Check => {
                inner.encode(&Instruction::Loop(BlockType::Empty));
                inner.encode(&Instruction::End);
            }
        }
    }
    inner.raw(part(body, done..body.range().end));
    let inner = inner.into_bytes();
    out.length(inner.len())?;
    out.raw(&inner);
    Ok(Change::Some)
}

/// Writes the two paths of an instruction. The slow one is called with the operands.
fn branch(length: u32, ty: u32, slow_path: u32, instruction: &[u8], out: &mut Writer) {
    out.encode(&Instruction::LocalTee(length));
    out.encode(&Instruction::LocalGet(length));
    out.encode(&Instruction::I32Const(SLICE as i32));
    out.encode(&Instruction::I32GtU);
    out.encode(&Instruction::If(BlockType::FunctionType(ty)));
    out.encode(&Instruction::Call(slow_path));
    out.encode(&Instruction::Else);
    out.raw(instruction);
    out.encode(&Instruction::End);
}

/// A change of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edit {
    /// The instruction gets a second path.
    Slice(Bulk),
    /// The added function of this index is called in place of an imported one.
    Call(u32),
    /// The same for a tail call.
    TailCall(u32),
    /// The same for a reference.
    Reference(u32),
    /// An empty loop is inserted, at whose head the engine checks the epoch.
    Check,
}

/// Returns the changes of a body, each with the place that it replaces.
fn edits(
    body: &FunctionBody<'_>,
    layout: &Layout<'_>,
    added: &mut AddedFunctions<'_>,
) -> Result<Vec<(Edit, Range<usize>)>, SliceError> {
    let mut found = Vec::new();
    let mut operators = body.get_operators_reader()?;
    let mut is_short = false;
    let (mut straight, mut has_calls) = (StraightCode::new(), false);
    while !operators.eof() {
        let (operator, start) = operators.read_with_offset()?;
        // The first call of a function has no call before it, and so a check since the last one.
        let is_unchecked = has_calls && is_indirect(&operator) && layout.checks_indirect_calls();
        if straight.count(&operator)? == Due::Now || is_unchecked {
            found.push((Edit::Check, start..start));
        }
        has_calls |= may_recur(&operator);
        let edit = match is_short {
            false => bulk(&operator, layout).map(Edit::Slice),
            true => None,
        };
        if let Some(edit) = edit.or(use_of_import(&operator, added)?) {
            found.push((edit, start..operators.original_position()));
        }
        is_short = matches!(operator, Operator::I32Const { value } if value as u32 <= SLICE);
    }
    if !has_calls {
        // The head of the function is checked at each call.
        found.retain(|(edit, _)| *edit != Edit::Check);
    }
    Ok(found)
}

/// Returns true if the code behind the operator can run in each frame of a recursion, or if the
/// operator takes long.
fn may_recur(operator: &Operator<'_>) -> bool {
    let is_call = matches!(operator, Operator::Call { .. } | Operator::CallRef { .. });
    is_call || is_indirect(operator) || cost(operator) > 1
}

/// Returns true for a call through a table.
fn is_indirect(operator: &Operator<'_>) -> bool {
    matches!(operator, Operator::CallIndirect { .. } | Operator::ReturnCallIndirect { .. })
}

/// Returns the change of an operator that uses an imported function.
fn use_of_import(
    operator: &Operator<'_>,
    added: &mut AddedFunctions<'_>,
) -> Result<Option<Edit>, SliceError> {
    Ok(match *operator {
        Operator::Call { function_index } => added.import(function_index)?.map(Edit::Call),
        Operator::ReturnCall { function_index } => {
            added.import(function_index)?.map(Edit::TailCall)
        }
        Operator::RefFunc { function_index } => {
            added.reference(function_index)?.map(Edit::Reference)
        }
        _ => None,
    })
}

/// Returns the kind of an operator, if its length may exceed a slice for any operands.
fn bulk(operator: &Operator<'_>, layout: &Layout<'_>) -> Option<Bulk> {
    match *operator {
        Operator::MemoryFill { mem } => Some(Bulk::Fill { memory: mem }),
        Operator::MemoryCopy { dst_mem, src_mem } => {
            Some(Bulk::Copy { to: dst_mem, from: src_mem })
        }
        // Traps before it writes if the length exceeds the segment.
        Operator::MemoryInit { data_index, mem } => {
            let size = layout.passive(data_index).filter(|size| *size > SLICE)?;
            Some(Bulk::Init { memory: mem, segment: data_index, size })
        }
        _ => None,
    }
}

/// The locals of a function.
struct Locals {
    /// The number of locals, parameters included: the index of the next one.
    count: u32,
    /// The number of groups of declared locals of one type.
    groups: u32,
    /// The place of the groups.
    range: Range<usize>,
}

impl Locals {
    fn of(body: &FunctionBody<'_>, parameters: u32) -> Result<Self, SliceError> {
        let mut reader = body.get_locals_reader()?;
        let groups = reader.get_count();
        let start = reader.original_position();
        let mut count = parameters;
        for _ in 0..groups {
            let (more, _) = reader.read()?;
            count = count.checked_add(more).ok_or(SliceError::TooLarge)?;
        }
        Ok(Self { count, groups, range: start..reader.original_position() })
    }
}

/// Returns a part of a body, given its place in the code section.
fn part<'a>(body: &FunctionBody<'a>, place: Range<usize>) -> &'a [u8] {
    let begin = body.range().start;
    let range = place.start.saturating_sub(begin)..place.end.saturating_sub(begin);
    body.as_bytes().get(range).unwrap_or_default()
}
