//! The arguments of the subcommands about approvals and signatures.

use clap::Args as ClapArgs;
use palisade::tool::Digest;
use palisade_store::parse_digest;
use std::path::PathBuf;

/// The answer that a command line gives in place of a person.
#[derive(ClapArgs, Debug, Clone, Copy)]
pub(in crate::cli) struct Consent {
    /// Approve without asking, for scripts. A plugin without its signature, of a new signer, revoked, or older than the approved one is refused
    #[arg(long)]
    pub(in crate::cli) yes: bool,
    /// Accept that the signer of an approved plugin has changed
    #[arg(long)]
    pub(in crate::cli) new_signer: bool,
}

#[derive(ClapArgs)]
pub(in crate::cli) struct Approve {
    /// The names of the plugins; without one, all that are new or have changed
    #[arg(value_name = "PLUGIN")]
    pub(in crate::cli) names: Vec<String>,
    /// Look at all plugins that are new or have changed, as without a name; --yes needs it or names
    #[arg(long, conflicts_with = "names")]
    pub(in crate::cli) all: bool,
    #[command(flatten)]
    pub(in crate::cli) consent: Consent,
    /// The directory of the plugin, if several directories have one of this name
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) source: Option<PathBuf>,
    /// Approve the bytes with this digest, which --json prints, without asking; a plugin with more
    /// words than a terminal shows needs it
    #[arg(long, value_name = "DIGEST", value_parser = parse_digest)]
    pub(in crate::cli) digest: Option<Digest>,
    /// Print JSON: what there is to approve. Nothing is asked or approved
    #[arg(long, conflicts_with = "yes")]
    pub(in crate::cli) json: bool,
}

#[derive(ClapArgs)]
pub(in crate::cli) struct Revoke {
    /// The name of the plugin
    pub(in crate::cli) plugin: String,
    /// The directory of the plugin, if several directories have one of this name
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) source: Option<PathBuf>,
}

#[derive(ClapArgs)]
pub(in crate::cli) struct Sign {
    /// The `.wasm` file; its signature is written beside it, as FILE.minisig
    #[arg(required_unless_present = "generate")]
    pub(in crate::cli) file: Option<PathBuf>,
    /// The secret key, in the form of minisign
    #[arg(long, value_name = "FILE", default_value = "minisign.key")]
    pub(in crate::cli) key: PathBuf,
    /// Make a new pair of keys: the secret one in the file of --key, the public one in that name with `.pub`
    #[arg(long, conflicts_with = "file")]
    pub(in crate::cli) generate: bool,
    /// Protect a new secret key with no password, for a machine that signs alone
    #[arg(long, requires = "generate")]
    pub(in crate::cli) no_password: bool,
}
