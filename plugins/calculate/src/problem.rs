//! The errors of expressions.

use crate::function;

/// The reason why an expression has no value. Positions are characters, counted from 1.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(crate) enum Problem {
    /// The expression is blank.
    #[error("the expression is empty; write one such as `2 * (3 + 4)`")]
    Empty,
    /// The expression is longer than the limit of the parser.
    #[error(
        "the expression is {bytes} bytes long, and {limit} is the most; split it and calculate the parts"
    )]
    TooLong { bytes: usize, limit: usize },
    /// The nesting is deeper than the stack of a guest is sure to support.
    #[error(
        "character {at} is nested deeper than {limit} levels of parentheses, functions, signs and powers; \
         split the expression"
    )]
    TooDeep { at: usize, limit: usize },
    /// A token is not valid at its position.
    #[error("expected {wanted} at character {at}, found {found}")]
    Unexpected { at: usize, found: String, wanted: &'static str },
    /// Digits that do not form a number.
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
    /// A function has the wrong number of arguments.
    #[error("`{name}` at character {at} takes {wanted}, not {got}")]
    Arguments { at: usize, name: &'static str, wanted: &'static str, got: usize },
    /// `/` or `%` by zero, or zero to a negative power.
    #[error("division by zero: the right side of `{operator}` at character {at} makes it so")]
    DivisionByZero { at: usize, operator: char },
    /// The value overflows a double.
    #[error(
        "the result of `{what}` at character {at} is larger than a double holds, which is about 1.8e308"
    )]
    Overflow { at: usize, what: String },
    /// The value does not exist, such as the square root of -1.
    #[error("`{what}` at character {at} has no finite real value")]
    NoValue { at: usize, what: String },
}
