//! Tests what the program does for authors of plugins: `new`, `build` and `check`.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[path = "authors/files.rs"]
mod authors_defects;
#[path = "authors/build.rs"]
mod build;
#[path = "authors/cases.rs"]
mod cases;
#[path = "authors/defects.rs"]
mod defects;
#[path = "authors/examples.rs"]
mod examples;
#[path = "authors/languages.rs"]
mod languages;
#[path = "authors/new.rs"]
mod new;

use palisade_tests::{Program, World, is_tested};

palisade_tests::foreach_authors!(is_tested);

/// Returns the program with these arguments.
fn program<'w>(world: &'w World, words: &[&str]) -> Program<'w> {
    Program::new(world).args(words)
}
