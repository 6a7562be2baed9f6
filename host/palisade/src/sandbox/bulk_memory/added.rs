//! The functions that a rewritten module has in addition, behind its own.

use super::error::SliceError;
use super::layout::Layout;
use super::slow_path::Bulk;
use std::collections::{BTreeMap, BTreeSet};
use wasm_encoder::Function;

/// The most slow paths of one module: one for each memory and kind of instruction, and one for each
/// large data segment. A compiler needs two, and one for each of at most 256 large segments.
const MOST_SLOW_PATHS: usize = 1_024;
/// The most operators of all functions for imports of one module. An import with 10 parameters
/// takes 12. Interpreters have some hundred imports.
const MOST_IMPORT_OPERATORS: u32 = 1 << 16;

/// An added function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Added {
    /// The slow path of a bulk memory instruction.
    SlowPath(Bulk),
    /// The function that calls the imported one of this index, and whose head is a check of the
    /// epoch. The module uses it wherever the original used the imported function, so that no call
    /// of the host comes without a check: neither a call through a table nor a tail call.
    Import(u32),
}

/// The added functions of a module, in the order of their first use.
pub(super) struct AddedFunctions<'a> {
    layout: &'a Layout<'a>,
    indices: BTreeMap<Added, u32>,
    functions: Vec<Added>,
    /// The functions for imports that code refers to without calling them.
    referenced: BTreeSet<u32>,
    slow_paths: usize,
    import_operators: u32,
}

impl<'a> AddedFunctions<'a> {
    /// Creates an empty set.
    pub(super) fn new(layout: &'a Layout<'a>) -> Self {
        Self {
            layout,
            indices: BTreeMap::new(),
            functions: Vec::new(),
            referenced: BTreeSet::new(),
            slow_paths: 0,
            import_operators: 0,
        }
    }

    /// Returns the index of the slow path of this instruction.
    pub(super) fn slow_path(&mut self, bulk: Bulk) -> Result<u32, SliceError> {
        let (index, is_new) = self.index(Added::SlowPath(bulk))?;
        self.slow_paths += usize::from(is_new);
        match self.slow_paths > MOST_SLOW_PATHS {
            true => Err(SliceError::SlowPaths { max: MOST_SLOW_PATHS }),
            false => Ok(index),
        }
    }

    /// Returns the index to use in place of a function's, if the function is imported.
    pub(super) fn import(&mut self, function: u32) -> Result<Option<u32>, SliceError> {
        let Some(import) = self.layout.import(function) else { return Ok(None) };
        let (index, is_new) = self.index(Added::Import(function))?;
        if is_new {
            let operators = import.parameters.saturating_add(2);
            self.import_operators = self.import_operators.saturating_add(operators);
        }
        match self.import_operators > MOST_IMPORT_OPERATORS {
            true => Err(SliceError::Imports { max: MOST_IMPORT_OPERATORS }),
            false => Ok(Some(index)),
        }
    }

    /// Returns the index to refer to in place of a function's, if the function is imported.
    pub(super) fn reference(&mut self, function: u32) -> Result<Option<u32>, SliceError> {
        let index = self.import(function)?;
        self.referenced.extend(index);
        Ok(index)
    }

    /// Returns the index of an added function, and whether it is new.
    fn index(&mut self, added: Added) -> Result<(u32, bool), SliceError> {
        if let Some(index) = self.indices.get(&added) {
            return Ok((*index, false));
        }
        let number = u32::try_from(self.functions.len()).map_err(|_| SliceError::TooLarge)?;
        let first = self.layout.next_function()?;
        let index = first.checked_add(number).ok_or(SliceError::TooLarge)?;
        self.indices.insert(added, index);
        self.functions.push(added);
        Ok((index, true))
    }

    /// Returns the added functions.
    pub(super) fn all(&self) -> &[Added] {
        &self.functions
    }

    /// Returns the indices of the added functions that code refers to without calling them.
    pub(super) fn referenced(&self) -> Vec<u32> {
        self.referenced.iter().copied().collect()
    }

    /// Returns the type of an added function.
    pub(super) fn type_of(&self, added: Added) -> Result<u32, SliceError> {
        match added {
            Added::SlowPath(_) => self.layout.next_type(),
            Added::Import(function) => {
                self.layout.import(function).map(|it| it.ty).ok_or(SliceError::NoType)
            }
        }
    }

    /// Returns the body of an added function.
    pub(super) fn body(&self, added: Added) -> Vec<u8> {
        match added {
            Added::SlowPath(bulk) => bulk.body(),
            Added::Import(function) => {
                let parameters = self.layout.import(function).map_or(0, |it| it.parameters);
                let mut body = Function::new([]);
                let mut code = body.instructions();
                for parameter in 0..parameters {
                    code.local_get(parameter);
                }
                // A tail call, so that a loop of tail calls between modules needs no stack.
                code.return_call(function).end();
                body.into_raw_body()
            }
        }
    }
}
