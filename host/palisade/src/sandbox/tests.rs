//! Tests of the whole sandbox, with the shipped plugins and with programs of another project.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod shipped;
mod wasi;
