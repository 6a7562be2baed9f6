//! Tests of the parts of the build support that need no compiler and no network.

#[path = "../build/guests.rs"]
mod guests;

use std::path::{Path, PathBuf};

use guests::{Error, Selection, script};

#[test]
fn every_refusal_is_one_line() {
    let path = || PathBuf::from("guests/files.wasm");
    let names = ["files", "search"].map(str::to_owned).to_vec();
    for refusal in [
        Error::Guests { names },
        Error::Missing { path: path() },
        Error::Snapshot { name: "code", reason: "it calls now of wasi:clocks".to_owned() },
        Error::NoPlugins { folder: path() },
        Error::Target(palisade_wasip2::Error::NoMirror),
    ] {
        assert_eq!(refusal.to_string().lines().count(), 1, "{refusal}");
    }
}

#[test]
fn packages_are_built_as_components_with_their_features() {
    let packages = Selection::Packages(&["plugin-a", "plugin-b"]).runs();
    let run = |name| format!("rustc --package {name} --lib --crate-type cdylib");
    assert_eq!(
        packages.iter().map(|run| run.arguments.join(" ")).collect::<Vec<_>>(),
        [run("plugin-a"), run("plugin-b")]
    );
    let examples =
        Selection::Examples { package: "guests", names: &["echo", "spin"], features: &["slow"] };
    let runs: Vec<String> = examples.runs().iter().map(|run| run.arguments.join(" ")).collect();
    assert_eq!(runs, ["build --package guests --example echo --example spin --features slow"]);
}

#[test]
fn target_directory_is_found_with_or_without_a_platform() {
    let found = |out: &str| script::target_directory(Path::new(out), "x86_64-unknown-linux-gnu");
    assert_eq!(found("/p/target/debug/build/palisade-plugins-1a/out"), Path::new("/p/target"));
    assert_eq!(
        found("/p/target/x86_64-unknown-linux-gnu/guest/build/a-1/out"),
        Path::new("/p/target")
    );
    assert_eq!(found("/p/my build/release/build/tests/1a/out"), Path::new("/p/my build"));
}
