//! The components in `tests/compat`, which the SDKs of earlier versions made: every later version
//! loads them, and their calls return what they returned.

use palisade::SideEffects;
use palisade_tests::toolchain::repository;
use palisade_tests::{Case, Observed, Plugins, Program, World};
use serde_json::{Value, json};
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

const CORPUS: &str = "tests/compat";
/// The components of the first version. A later version adds its own.
const FIRST: [&str; 4] = ["0.1.0/c", "0.1.0/javascript", "0.1.0/python", "0.1.0/rust"];

/// Returns the folders of all components.
fn components() -> Vec<PathBuf> {
    let versions = entries(&repository(CORPUS)).into_iter().filter(|path| path.is_dir());
    versions.flat_map(|version| entries(&version)).collect()
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn json_of(file: &Path) -> Value {
    let text = fs::read_to_string(file).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// Returns the bytes of a component. A large one is compressed.
fn bytes_of(component: &Path) -> Vec<u8> {
    let compressed = component.join("plugin.wasm.gz");
    if !compressed.exists() {
        return fs::read(component.join("plugin.wasm")).unwrap();
    }
    let mut bytes = Vec::new();
    let file = fs::File::open(compressed).unwrap();
    flate2::read::GzDecoder::new(file).read_to_end(&mut bytes).unwrap();
    bytes
}

/// Calls a tool of a component as the recorded case says. A class that needs a question is allowed.
fn called(component: &Path, recorded: &Value) -> Observed {
    let plugin = Plugins::Component("plugin".to_owned(), bytes_of(component));
    let files = recorded["workspace"].as_object().cloned().unwrap_or_default();
    Case::new(plugin, recorded["tool"].as_str().unwrap())
        .input(recorded["input"].clone())
        .arrange(move |world| {
            for (path, text) in &files {
                world.file(path, text.as_str().unwrap());
            }
        })
        .allow(SideEffects::Write)
        .check()
}

/// Returns the result with the members that a recorded one has.
fn result(seen: &Observed) -> Value {
    let mut result = seen.result.clone();
    if let Some(error) = result["error"].as_object_mut() {
        let kind = error.get("detail").map_or(Value::Null, |detail| detail["kind"].clone());
        error.insert("kind".to_owned(), kind);
    }
    result
}

/// Checks that everything recorded is as it was; new members of an object are accepted.
#[track_caller]
fn same(place: &str, recorded: &Value, actual: &Value) {
    match (recorded, actual) {
        (Value::Object(recorded), Value::Object(actual)) => {
            for (key, value) in recorded {
                let found = actual.get(key).unwrap_or(&Value::Null);
                same(&format!("{place}/{key}"), value, found);
            }
        }
        (Value::Array(recorded), Value::Array(actual)) if recorded.len() == actual.len() => {
            for (index, (value, found)) in recorded.iter().zip(actual).enumerate() {
                same(&format!("{place}/{index}"), value, found);
            }
        }
        _ => assert_eq!(recorded, actual, "{place}"),
    }
}

#[test]
fn calls_of_earlier_components_return_what_they_did() {
    for component in components() {
        let cases = entries(&component.join("cases"));
        assert!(cases.len() >= 5, "{}", component.display());
        for file in cases {
            let recorded = json_of(&file);
            let seen = called(&component, &recorded);
            same(&file.display().to_string(), &recorded["result"], &result(&seen));
            for (path, text) in recorded["changes"].as_object().into_iter().flatten() {
                seen.left(path, text.as_str()).modified(&[path]);
            }
        }
    }
}

#[test]
fn earlier_components_describe_the_same_tools() {
    let world = World::new();
    for component in components() {
        let file = world.outer().join("plugin.wasm");
        fs::write(&file, bytes_of(&component)).unwrap();
        let inspected = Program::new(&world).args(["inspect", "--json"]).args([file]).run();
        let recorded = json_of(&component.join("description.json"));
        same(&component.display().to_string(), &recorded, &inspected.exits_with(0).json());
    }
}

#[test]
fn earlier_components_report_progress_and_text_while_they_run() {
    for component in components() {
        let recorded = json!({
            "tool": "words", "input": {"path": "a.txt"}, "workspace": {"a.txt": "one three two\n"},
        });
        let seen = called(&component, &recorded);
        let text = format!("{:?}", seen.events);
        assert!(text.contains("\"half\"") && text.contains("\"counting\""), "{text}");
    }
}

#[test]
fn corpus_keeps_the_components_of_the_first_version() {
    let kept = components();
    for folder in FIRST {
        assert!(kept.contains(&repository(CORPUS).join(folder)), "{folder}");
    }
}
