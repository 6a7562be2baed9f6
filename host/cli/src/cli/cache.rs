//! `palisade cache`: shows, fills and clears the cache of compiled plugins.

use super::args::{Cache as Args, CacheAction, Common};
use super::exit::{Exit, Failure};
use super::output;
use super::setup;
use palisade::CacheMode;
use palisade::internal::{default_cache, open_cache};
use palisade::sandbox::{Cache, CacheUsage, CompileStrategy};
use serde_json::{Value, json};
use std::path::PathBuf;

pub(super) fn run(common: &Common, args: &Args) -> Result<Exit, Failure> {
    let directory = match setup::cache_mode() {
        CacheMode::Off => None,
        CacheMode::Directory(directory) => Some(directory),
        CacheMode::Default => default_cache(),
    };
    let (clears, json) = match args.action {
        CacheAction::Show { json } => (false, json),
        CacheAction::Warm { json } => {
            warm(common)?;
            (false, json)
        }
        CacheAction::Clear { json } => (true, json),
    };
    let cache = open(directory.as_ref())?;
    let usage = if clears { cache.clear() } else { cache.usage() };
    let usage = usage.map_err(|error| {
        Failure::new(Exit::Internal, format!("the cache cannot be read: {error}"))
    })?;
    let told = Told { directory, usage, clears };
    if json { output::json(&told.to_json()) } else { output::text(&told.to_text()) }?;
    Ok(Exit::Ok)
}

/// Compiles the plugins of the configuration with optimisation.
fn warm(common: &Common) -> Result<(), Failure> {
    let settings = setup::settings(common)?;
    let builder = setup::builder(common, &settings)?;
    let host = builder.compile_strategy(CompileStrategy::OptimizedOnly).build()?;
    setup::show_missing(&host);
    setup::show_rejected(&host.rejected());
    Ok(())
}

/// Opens the cache, if it exists: to look at a cache creates none.
fn open(directory: Option<&PathBuf>) -> Result<Cache, Failure> {
    match directory.filter(|directory| directory.exists()) {
        Some(directory) => Ok(open_cache(directory, None)?),
        None => Ok(Cache::off()),
    }
}

/// The cache, and what it has or had.
struct Told {
    directory: Option<PathBuf>,
    usage: CacheUsage,
    clears: bool,
}

impl Told {
    fn to_json(&self) -> Value {
        let CacheUsage { plugins, bytes } = self.usage;
        if self.clears {
            json!({"directory": self.directory, "removed_plugins": plugins, "removed_bytes": bytes})
        } else {
            json!({"directory": self.directory, "plugins": plugins, "bytes": bytes, "limit_bytes": CacheUsage::BOUND})
        }
    }

    fn to_text(&self) -> String {
        let Some(directory) = &self.directory else {
            return "There is no cache: every start compiles.\n".to_owned();
        };
        let size = |bytes: u64| bytesize::ByteSize(bytes).display().iec();
        let CacheUsage { plugins, bytes } = self.usage;
        let held = format!(
            "compiled code of {plugins} plugin{}, {}",
            if plugins == 1 { "" } else { "s" },
            size(bytes)
        );
        let cells = |key: &str, value: String| vec![key.into(), value.into()];
        let first = cells("directory", directory.display().to_string());
        let rows = if self.clears {
            vec![first, cells("removed", held)]
        } else {
            let limit = format!(
                "{}; beyond it the least recently used are removed",
                size(CacheUsage::BOUND)
            );
            vec![first, cells("holds", held), cells("limit", limit)]
        };
        output::table(&rows)
    }
}
