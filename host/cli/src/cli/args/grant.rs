//! The arguments of `palisade grant`.

use clap::{Args as ClapArgs, Subcommand};

#[derive(ClapArgs)]
pub(in crate::cli) struct Grant {
    /// The plugin: its name as `palisade list` shows it, or the path of its `.wasm` file
    pub(in crate::cli) plugin: Option<String>,
    /// Grant to each approved version of the plugin that the same key has signed, and not to this version alone
    #[arg(long)]
    pub(in crate::cli) signer: bool,
    #[command(subcommand)]
    pub(in crate::cli) action: GrantAction,
}

#[derive(Subcommand)]
pub(in crate::cli) enum GrantAction {
    /// Let the plugin send requests, such as "GET,POST https://api.example.org" or "GET http://localhost:3000 private"
    Net {
        /// Methods and one URL without a path; `*.example.org` stands for all names below a domain, `private` for a host of a private network
        #[arg(required = true)]
        rules: Vec<String>,
    },
    /// Let the plugin read environment variables of the host
    Env {
        /// The names of the variables
        #[arg(required = true)]
        names: Vec<String>,
    },
    /// Let the host add a secret to the plugin's requests, which the plugin cannot read
    Secret {
        /// The environment variable of the host that has the secret
        name: String,
        /// The only host that gets the secret, such as api.example.org
        #[arg(long = "for", value_name = "HOST")]
        host: String,
        /// The header that carries it, such as `x-api-key` or `Authorization: Bearer`
        #[arg(long)]
        header: String,
    },
    /// Let the plugin call other tools, each call as if the client had made it
    Tools {
        /// Names such as read_file, beginnings such as `search_*`, or `*` for all; several with commas between them
        #[arg(required = true, value_delimiter = ',')]
        patterns: Vec<String>,
    },
    /// Show all grants, or those of one plugin
    List {
        /// The plugin, if it is not named before `list`
        #[arg(value_name = "PLUGIN")]
        of: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Take back a grant as `list` shows it, or all grants of the plugin
    Revoke {
        /// The grant, such as "net GET https://api.example.org"
        grant: Option<String>,
    },
}
