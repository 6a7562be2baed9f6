//! What holds of the sandbox as a whole, tried with programs that others have written.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod wasi;
