//! Native tools of the host, for work that the WebAssembly sandbox cannot do.

pub mod shell;

pub use shell::{Confinement, Shell, ShellHelper, ShellLimits, ShellOptions};
