//! Tests of the whole sandbox, with programs of another project.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod wasi;
