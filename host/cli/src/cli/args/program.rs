//! The arguments of `palisade run`, and whether programs call tools.

use super::{Caller, Running};
use clap::Args as ClapArgs;
use std::path::PathBuf;

#[derive(ClapArgs)]
pub(in crate::cli) struct Run {
    /// The file with the program, or `-` to read it from standard input
    pub(in crate::cli) program: PathBuf,
    /// Print the whole result as JSON
    #[arg(long)]
    pub(in crate::cli) json: bool,
    #[command(flatten)]
    pub(in crate::cli) running: Running,
    #[command(flatten)]
    pub(in crate::cli) caller: Caller,
}

/// Whether programs call tools: the shipped plugin `code`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::cli) enum Programs {
    /// As far as the grants of the user say.
    #[default]
    AsGranted,
    /// Programs call all tools.
    Granted,
    /// Programs call all tools, and clients are shown no others.
    InPlaceOfTools,
}
