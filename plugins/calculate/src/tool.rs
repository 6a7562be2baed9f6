//! The `calculate` tool.

use crate::{number, parser};
use palisade_guest::{Error, Result, tool};
use schemars::JsonSchema;
use serde::Deserialize;

/// The calculation.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// The expression, such as `(3 + 4) * 2 ^ 10 / sqrt(2)`. One expression of at most 4096 bytes;
    /// multiplication is always written `*`.
    expression: String,
}

/// Works out one arithmetic expression and returns the number, so that no arithmetic has to be done
/// by guessing.
///
/// Operators, from weakest to strongest: `+ -`, then `* / %`, then a sign, then `^` (a power; it
/// groups from the right, so `-2^2` is -4). `%` is the remainder and has the sign of its left side.
/// Functions: sqrt, abs, floor, ceil, round, min, max, sin, cos, tan, ln, log10, log2, exp, pow;
/// angles are in radians, round goes half away from zero. Constants: pi, e. Numbers: 12, .5, 1e-3,
/// 1_000. All numbers are double precision: whole numbers are exact up to 2^53. Division by zero
/// and results that are not finite are errors. There are no variables, units or assignments.
#[tool(side_effects = "none", title = "Calculate", idempotent)]
pub(crate) fn calculate(args: Args) -> Result<String> {
    let value = parser::evaluate(&args.expression)
        .map_err(|problem| Error::invalid_input("expression", problem.to_string()))?;
    Ok(number::show(value))
}
