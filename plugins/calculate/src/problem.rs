//! Why an expression has no value.

use crate::function;

/// Why an expression has no value. Places are characters, counted from 1.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(crate) enum Problem {
    /// Nothing but blanks.
    #[error("the expression is empty; write one such as `2 * (3 + 4)`")]
    Empty,
    /// Longer than the parser is willing to read.
    #[error("the expression is {bytes} bytes long, and {limit} is the most; split it and calculate the parts")]
    TooLong { bytes: usize, limit: usize },
    /// Nested deeper than the stack of a guest is sure to hold.
    #[error(
        "character {at} is nested deeper than {limit} levels of parentheses, functions, signs and powers; \
         split the expression"
    )]
    TooDeep { at: usize, limit: usize },
    /// Something stands where something else belongs.
    #[error("expected {wanted} at character {at}, found {found}")]
    Unexpected { at: usize, found: String, wanted: &'static str },
    /// Digits that are no number.
    #[error(
        "`{text}` at character {at} is not a number; numbers look like 12, .5, 1e-3 or 1_000 and stay below 1.8e308"
    )]
    BadNumber { at: usize, text: String },
    /// A name that is neither a function nor a constant.
    #[error(
        "`{name}` at character {at} is not known; the functions are {} and the constants are pi and e",
        function::names()
    )]
    UnknownName { at: usize, name: String },
    /// A function was given too many arguments, or too few.
    #[error("`{name}` at character {at} takes {wanted}, not {got}")]
    Arguments { at: usize, name: &'static str, wanted: &'static str, got: usize },
    /// `/` or `%` by zero, or zero to a negative power.
    #[error("division by zero: the right side of `{operator}` at character {at} makes it so")]
    DivisionByZero { at: usize, operator: char },
    /// The value exists and does not fit.
    #[error("the result of `{what}` at character {at} is larger than a double holds, which is about 1.8e308")]
    Overflow { at: usize, what: String },
    /// The value does not exist, such as the square root of -1.
    #[error("`{what}` at character {at} has no finite real value")]
    NoValue { at: usize, what: String },
}
