//! The shipped plugin `calculate`: arithmetic, in a sandbox without any capability.
//!
//! The parser is our own: of the crates that evaluate expressions, `meval` and `fasteval` have had
//! no release for years and `evalexpr` is under the AGPL, while this grammar is small.

mod function;
mod lexer;
mod number;
mod parser;
mod problem;
#[cfg(test)]
mod tests;
mod tool;

use tool::calculate;

palisade_guest::export!(calculate);
