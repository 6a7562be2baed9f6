//! Tests that a good plugin is loaded, a bad one is rejected with a useful reason, and a bad file
//! never affects a good plugin.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[path = "loader/background.rs"]
mod background;
#[path = "loader/child.rs"]
mod child;
#[path = "loader/compile.rs"]
mod compile;
#[path = "loader/component.rs"]
mod component;
#[path = "loader/definitions.rs"]
mod definitions;
#[path = "loader/description_room.rs"]
mod description_room;
#[path = "loader/directory.rs"]
mod directory;
#[path = "loader/duplicates.rs"]
mod duplicates;
#[path = "loader/file.rs"]
mod file;
#[path = "loader/generated.rs"]
mod generated;
#[path = "loader/cache.rs"]
mod loader_cache;
#[path = "loader/replaced.rs"]
mod replaced;
#[path = "loader/rescan.rs"]
mod rescan;
#[path = "loader/smith.rs"]
mod smith;
#[path = "loader/tiers.rs"]
mod tiers;
#[path = "loader/watch.rs"]
mod watch;

use std::fs;
use std::path::Path;

use palisade::{CacheMode, Host, plugins::Shipped};
use palisade_tests::guest::{
    LOADER_EXCESS_PROMPTS, LOADER_GOOD, LOADER_UNSTABLE, LOADER_UNSTABLE_PROMPTS, cache,
};
use palisade_tests::{Program, World, is_tested};
use serde_json::Value;

palisade_tests::foreach_loader!(is_tested);

/// The outcome of loading a directory of plugins: its tools, and the reason for each rejected file
/// by name. The library and the program have to agree on it.
struct Loaded {
    tools: Vec<String>,
    rejected: Vec<(String, String)>,
}

impl Loaded {
    /// Returns the reason for the only rejected file.
    #[track_caller]
    fn reason(&self) -> &str {
        assert_eq!(self.rejected.len(), 1, "{:?}", self.rejected);
        &self.rejected[0].1
    }
}

/// Loads the plugins of a world, through the library and through the program.
#[track_caller]
fn load(world: &World) -> Loaded {
    let builder =
        Host::builder().workspace(world.root()).shipped(Shipped::LeftOut).plugins(world.plugins());
    let host = builder.cache(CacheMode::Directory(cache())).build().unwrap();
    let ran = Program::new(world)
        .args(["--no-builtin", "list", "--json", "--plugins"])
        .args([world.plugins()])
        .run();
    let listed = ran.exits_with(0).json();
    let loaded = Loaded {
        tools: host.registry().tool_names(),
        rejected: host.rejected().iter().map(|r| (name_of(&r.file), r.reason.clone())).collect(),
    };
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let tools: Vec<String> =
        listed["tools"].as_array().unwrap().iter().map(|tool| text(&tool["name"])).collect();
    let entries = listed["rejected"].as_array().unwrap().iter();
    let rejected: Vec<_> =
        entries.map(|r| (name_of(&text(&r["file"])), text(&r["reason"]))).collect();
    assert_eq!(
        (&tools, &rejected),
        (&loaded.tools, &loaded.rejected),
        "the library and the program differ"
    );
    loaded
}

fn name_of(file: &str) -> String {
    Path::new(file).file_name().unwrap().to_string_lossy().into_owned()
}

/// Creates a world with a good plugin and one more file, whose name sorts first.
fn with_file(bytes: &[u8]) -> World {
    let world = with_good();
    fs::write(world.plugins().join("a-bad.wasm"), bytes).unwrap();
    world
}

/// Creates a world with a good plugin.
fn with_good() -> World {
    let world = World::new();
    fs::copy(LOADER_GOOD.file(), world.plugins().join("good.wasm")).unwrap();
    world
}

/// Returns why these bytes are rejected; checks that the good plugin beside them is loaded.
#[track_caller]
fn refused(bytes: &[u8]) -> String {
    let loaded = load(&with_file(bytes));
    assert_eq!(loaded.tools, ["good", "better"]);
    loaded.reason().to_owned()
}

#[track_caller]
fn says(reason: &str, parts: &[&str]) {
    for part in parts {
        assert!(reason.contains(part), "the reason does not say {part:?}: {reason}");
    }
}

#[test]
fn loader_good() {
    let loaded = load(&with_good());
    assert_eq!(
        (loaded.tools, loaded.rejected),
        (vec!["good".to_owned(), "better".to_owned()], vec![])
    );
}

#[test]
fn loader_unstable() {
    let reason = refused(&fs::read(LOADER_UNSTABLE.file()).unwrap());
    says(&reason, &["two ways", "always give the same answer"]);
}

#[test]
fn loader_unstable_prompts() {
    let reason = refused(&fs::read(LOADER_UNSTABLE_PROMPTS.file()).unwrap());
    says(&reason, &["two ways", "always give the same answer"]);
}

#[test]
fn loader_excess_prompts() {
    let reason = refused(&fs::read(LOADER_EXCESS_PROMPTS.file()).unwrap());
    says(&reason, &["257 documents, templates and prompts", "256 are accepted"]);
}

mod loader_early_requirement {
    use super::{refused, says};
    use palisade_tests::guest::LOADER_EARLY_REQUIREMENT;
    use std::fs;

    #[test]
    fn plugin_requiring_a_client_at_load_is_rejected() {
        let reason = refused(&fs::read(LOADER_EARLY_REQUIREMENT.file()).unwrap());
        says(&reason, &["it needs a client, and there is none while it is described"]);
    }
}

mod loader_early_question {
    use palisade::{CacheMode, Host, plugins::Shipped};
    use palisade_tests::World;
    use palisade_tests::guest::{LOADER_EARLY_QUESTION, cache};
    use std::fs;

    #[test]
    fn question_at_load_is_unavailable() {
        let world = World::new();
        fs::copy(LOADER_EARLY_QUESTION.file(), world.plugins().join("asking.wasm")).unwrap();
        let builder = Host::builder()
            .workspace(world.root())
            .shipped(Shipped::LeftOut)
            .plugins(world.plugins());
        let host = builder.cache(CacheMode::Directory(cache())).build().unwrap();
        let described = host.plugins()[0].definitions()[0].description().to_owned();
        assert_eq!(described, "0 kinds, Err(AskError::Unavailable)");
    }
}
