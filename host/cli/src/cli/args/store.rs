//! The arguments of the subcommands that get plugins and give them.

use super::trust::Consent;
use clap::Args as ClapArgs;
use palisade::tool::Digest;
use palisade_store::parse_digest;
use std::path::PathBuf;

#[derive(ClapArgs)]
pub(in crate::cli) struct Add {
    /// A path, https://HOST/FILE.wasm, or oci://HOST/REPOSITORY:TAG
    pub(in crate::cli) source: String,
    /// The name of the plugin; that of its file or repository without it
    #[arg(long)]
    pub(in crate::cli) name: Option<String>,
    /// Accept these bytes only: `sha256:` and 64 hexadecimal digits
    #[arg(long, value_name = "DIGEST", value_parser = parse_digest)]
    pub(in crate::cli) digest: Option<Digest>,
    #[command(flatten)]
    pub(in crate::cli) consent: Consent,
}

#[derive(ClapArgs)]
pub(in crate::cli) struct Remove {
    /// The name of the plugin
    pub(in crate::cli) plugin: String,
}

#[derive(ClapArgs)]
pub(in crate::cli) struct Update {
    /// The names of the plugins; without one, all that were added
    #[arg(value_name = "PLUGIN")]
    pub(in crate::cli) names: Vec<String>,
    /// Show what would change, and change nothing
    #[arg(long)]
    pub(in crate::cli) dry_run: bool,
    #[command(flatten)]
    pub(in crate::cli) consent: Consent,
}

#[derive(ClapArgs)]
pub(in crate::cli) struct Publish {
    /// The `.wasm` file; a signature beside it, FILE.minisig, goes with it
    pub(in crate::cli) file: PathBuf,
    /// The place: oci://HOST/REPOSITORY:TAG
    pub(in crate::cli) reference: String,
    /// Move the tag, if it has other bytes
    #[arg(long)]
    pub(in crate::cli) replace: bool,
}
