//! The descriptions of the shipped plugins, which the program has before it compiles them.

use crate::sandbox::stored_description::StoredDescription;
use crate::sandbox::{Cache, Sandbox, Trust};
use crate::tool::Digest;
use std::env;
use std::fs;
use std::path::Path;

/// The variable that makes the test store the descriptions in place of comparing them.
const KEEP: &str = "PALISADE_KEEP_DESCRIPTIONS";

#[test]
fn embedded_descriptions_are_in_the_words_of_the_shipped_plugins() {
    let directory = tempfile::tempdir().unwrap();
    let sandbox = Sandbox::new(Cache::open(&directory.path().join("cache")).unwrap()).unwrap();
    for plugin in palisade_plugins::all() {
        sandbox.prepare(&plugin.bytes(), Trust::Embedded).unwrap();
        let (engine, digest) = (&sandbox.runtime.engine, Digest::from_bytes(plugin.digest));
        let own = StoredDescription::from(&sandbox.cache.description(engine, digest).unwrap());
        if env::var_os(KEEP).is_some() {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins/descriptions");
            let text = serde_json::to_string_pretty(&own).unwrap() + "\n";
            fs::write(folder.join(format!("{}.json", plugin.name)), text).unwrap();
            continue;
        }
        let embedded = StoredDescription::parse(plugin.description).unwrap();
        assert_eq!(
            StoredDescription::from(&embedded),
            own,
            "{} has changed: run this test with {KEEP}=1, and commit plugins/descriptions",
            plugin.name
        );
    }
}
