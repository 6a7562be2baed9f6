//! The arguments of the subcommands for authors of plugins.

use super::named;
use clap::Args as ClapArgs;
use palisade::SideEffects;
use palisade_author::Language;
use std::path::PathBuf;

#[derive(ClapArgs)]
pub(in crate::cli) struct New {
    /// The directory to make; its last part is the name of the plugin, such as `word-count`
    pub(in crate::cli) name: PathBuf,
    /// rust, python, js (JavaScript or TypeScript) or c
    #[arg(long, short = 'l', value_name = "LANGUAGE", value_parser = named::<Language>(Language::ALL.map(Language::as_str)), hide_possible_values = true)]
    pub(in crate::cli) lang: Language,
    /// The SDK that the project depends on: a checkout of Palisade, or the SDK of the language. Without it, the one beside this program
    #[arg(long, value_name = "PATH", env = "PALISADE_SDK")]
    pub(in crate::cli) sdk: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(ClapArgs)]
pub(in crate::cli) struct Build {
    /// The directory of the project
    #[arg(default_value = ".")]
    pub(in crate::cli) directory: PathBuf,
    /// rust, python, js or c, for a project that may be in several
    #[arg(long, short = 'l', value_name = "LANGUAGE", value_parser = named::<Language>(Language::ALL.map(Language::as_str)), hide_possible_values = true)]
    pub(in crate::cli) lang: Option<Language>,
    /// Print JSON
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(ClapArgs)]
pub(in crate::cli) struct Dev {
    /// The directory of the project
    #[arg(default_value = ".")]
    pub(in crate::cli) directory: PathBuf,
    /// rust, python, js or c, for a project that may be in several
    #[arg(long, short = 'l', value_name = "LANGUAGE", value_parser = named::<Language>(Language::ALL.map(Language::as_str)), hide_possible_values = true)]
    pub(in crate::cli) lang: Option<Language>,
    /// Replay the recorded case of this name; can be given several times [default: all]
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) case: Vec<String>,
    /// Stop a call after this time, such as 30s or 500ms (at most 600s)
    #[arg(long, value_name = "TIME", value_parser = super::parse_time, default_value = "5s")]
    pub(in crate::cli) timeout: std::time::Duration,
}

#[derive(ClapArgs)]
pub(in crate::cli) struct Check {
    /// The `.wasm` file, or the directory of a project that is built
    #[arg(default_value = ".")]
    pub(in crate::cli) subject: PathBuf,
    /// The directory of the recorded cases [default: tests, beside the plugin's directory `dist`]
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) cases: Option<PathBuf>,
    /// Check the functions of a component of another world, as tools of this class
    #[arg(long, value_name = "CLASS")]
    pub(in crate::cli) class: Option<SideEffects>,
    /// Draw the inputs from this seed; the same seed draws the same inputs
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(in crate::cli) seed: u64,
    /// How many inputs are drawn for each tool
    #[arg(long, value_name = "NUMBER", default_value_t = 32, value_parser = clap::value_parser!(u16).range(0..=10_000))]
    pub(in crate::cli) inputs: u16,
    /// Stop a call after this time, such as 30s or 500ms (at most 600s)
    #[arg(long, value_name = "TIME", value_parser = super::parse_time, default_value = "5s")]
    pub(in crate::cli) timeout: std::time::Duration,
    /// Record one call as the case of this name, and check nothing
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) record: Option<String>,
    /// The tool of the recorded call, if the plugin has several
    #[arg(long, value_name = "TOOL", requires = "record")]
    pub(in crate::cli) tool: Option<String>,
    /// The input of the recorded call: a JSON object, `@FILE` to read it from a file, or `-` to read it from standard input
    #[arg(long, value_name = "JSON", requires = "record", default_value = "{}")]
    pub(in crate::cli) input: String,
    /// The directory with the files before the recorded call
    #[arg(long, value_name = "DIR", requires = "record")]
    pub(in crate::cli) files: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(ClapArgs)]
pub(in crate::cli) struct Adapt {
    /// The `.wasm` file of the component
    pub(in crate::cli) file: PathBuf,
    /// The class of the tools, which bounds the sandbox: none, read, write, execute or network
    #[arg(long, value_name = "CLASS")]
    pub(in crate::cli) class: SideEffects,
    /// The directory of its WIT, whose comments describe the tools
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) wit: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(in crate::cli) json: bool,
}
