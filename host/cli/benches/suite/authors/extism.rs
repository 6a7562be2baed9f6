//! Extism's PDK for C and its host library for Python, beside the project in C: a tool that counts
//! the words of a text, since Extism gives a plugin no files unless a host adds them.

use crate::report::{self, shown, size};
use palisade_tests::toolchain;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// The variable with the directory of `extism-pdk.h`: a clone of <https://github.com/extism/c-pdk>.
const PDK: &str = "EXTISM_C_PDK";
const TOOL: &str = include_str!("extism/word_count.c");
const HOST: &str = include_str!("extism/host.py");

/// Prints the row of Extism, or what is missing.
pub(super) fn run() {
    match measured() {
        Ok(cells) => report::row("extism, c", &cells),
        Err(why) => report::skipped("extism, c", why),
    }
}

fn measured() -> Result<[String; 6], &'static str> {
    let pdk = pdk().ok_or("EXTISM_C_PDK names no clone of github.com/extism/c-pdk")?;
    if !toolchain::has("clang", (14, 0)) {
        return Err("clang is missing");
    }
    let has_host = Command::new("python3").args(["-c", "import extism"]).output();
    if !has_host.is_ok_and(|output| output.status.success()) {
        return Err("the package `extism` of python3 is missing");
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    fs::write(directory.path().join("word_count.c"), TOOL).expect("a source");
    fs::write(directory.path().join("host.py"), HOST).expect("a program");
    let [first, again] = [(), ()].map(|()| build(directory.path(), &pdk));
    let calls = calls(directory.path());
    let time =
        |name: &str| shown(Duration::from_secs_f64(calls[name].as_f64().unwrap_or_default()));
    let bytes = fs::metadata(directory.path().join("plugin.wasm")).map_or(0, |file| file.len());
    let program = "–".to_owned();
    Ok([shown(first), shown(again), time("first"), program, time("fresh"), size(bytes as f64)])
}

fn pdk() -> Option<PathBuf> {
    let directory = PathBuf::from(std::env::var_os(PDK)?);
    directory.join("extism-pdk.h").is_file().then_some(directory)
}

/// Compiles the plugin as the PDK's page says, and returns the time.
fn build(directory: &Path, pdk: &Path) -> Duration {
    let mut clang = Command::new("clang");
    clang.args(["-O2", "--target=wasm32-unknown-unknown", "-ffreestanding", "-nostdlib"]);
    clang.args(["-Wl,--no-entry", "-o", "plugin.wasm", "word_count.c", "-I"]).arg(pdk);
    let begun = Instant::now();
    toolchain::run(clang.current_dir(directory));
    begun.elapsed()
}

/// Returns the times of the calls in seconds: the first, with its compilation, and the median of
/// those in an instance of their own.
fn calls(directory: &Path) -> Value {
    let mut host = Command::new("python3");
    // Without a cache, as in the first answer of the others.
    host.args(["host.py", "plugin.wasm"]).env("EXTISM_CACHE_CONFIG", "");
    let printed = toolchain::run(host.current_dir(directory));
    serde_json::from_str(&printed).expect("the times of the calls")
}
