//! Calls of a tool with drawn inputs, and what was seen.

use super::draw::{self, Dice, Manner};
use super::{Options, seeds};
use crate::case::{self, Content};
use crate::trial::{Bounds, Trial, TrialError};
use palisade::{Definition, ErrorClass, ToolResult};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Every so many inputs, one is drawn plainly.
const PLAIN: usize = 4;
/// The number of calls of a tool that may reach the deadline.
const PATIENCE: usize = 1;

/// One call, and what it did.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) input: Value,
    pub(super) result: ToolResult,
    pub(super) took: Duration,
    /// The files that the call changed, with `None` for a removed file.
    pub(super) changes: BTreeMap<String, Option<Content>>,
    /// The paths that the input declares to change.
    pub(super) declared: Vec<String>,
}

/// The calls of a tool.
#[derive(Debug)]
pub(super) struct Probed<'a> {
    pub(super) definition: &'a Definition,
    pub(super) seen: Vec<Seen>,
}

/// Calls a tool with drawn inputs, each with the same files before it. It ends early with a call
/// that reaches the deadline.
pub(super) fn tool<'a>(
    trial: &Trial,
    definition: &'a Definition,
    options: &Options,
) -> Result<Probed<'a>, TrialError> {
    let mut dice = Dice::new(options.seed);
    let mut probed = Probed { definition, seen: Vec::new() };
    let mut hung = 0;
    for number in 0..options.inputs {
        let manner = match number {
            0 => Manner::Plain,
            _ if number % PLAIN == 0 => Manner::Plain,
            _ if number % 2 == 0 => Manner::Ordinary,
            _ => Manner::Hostile,
        };
        let Some(input) = draw::input(definition, &mut dice, manner) else { continue };
        let seen = call(trial, definition, input, options.timeout)?;
        hung += usize::from(seen.class() == Some(ErrorClass::Timeout));
        probed.seen.push(seen);
        if hung >= PATIENCE {
            break;
        }
    }
    Ok(probed)
}

fn call(
    trial: &Trial,
    definition: &Definition,
    input: Value,
    timeout: Duration,
) -> Result<Seen, TrialError> {
    let name = definition.name().as_str();
    let before = seeds::files();
    trial.reset(&before)?;
    let declared = trial.declared(name, &input);
    let begun = Instant::now();
    let result = trial.call(name, &input, Bounds::within(timeout));
    let took = begun.elapsed();
    let changes = case::changes(&before, &trial.files()?);
    Ok(Seen { input, result, took, changes, declared })
}

impl Seen {
    /// Returns the class of the call's error.
    pub(super) fn class(&self) -> Option<ErrorClass> {
        self.result.error().map(palisade::ToolError::class)
    }
}
