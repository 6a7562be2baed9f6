//! The tools that the host ships as code of its own, because no sandbox for guests can hold what they do.

pub mod shell;

pub use shell::{Confinement, Shell, ShellHelper, ShellLimits, ShellOptions};
