//! Measures the start of a host with 1, 10, 100 and 1,000 distinct plugins, compiled and from the
//! cache.

use crate::floor::Floor;
use crate::report::{self, shown};
use crate::spawned;
use crate::world::World;
use palisade::{CacheMode, Host, plugins::Shipped};
use palisade_tests::wat::{Told, Wat};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The placeholder in the guest that a name with a number replaces.
const PLACE: &[u8] = b"bench_named_0000";
/// Starts from the cache per measurement; the median is reported.
const STARTS: usize = 5;

pub(crate) fn run(world: &World) {
    let columns = ["compiled", "from the cache", "program, cached", "by hand, mapped", "ratio"];
    report::row("\nplugins", &columns.map(str::to_owned));
    for count in [1, 10, 100] {
        fresh(world, &format!("  {count} of 61 KB, in Rust"), &directory(count));
    }
    // A thousand plugins in Rust would take minutes to compile.
    for count in [100, 1_000] {
        fresh(world, &format!("  {count} of 2 KB, by hand"), &small(count));
    }
    for language in ["python", "javascript"] {
        match world.interpreted(language) {
            Ok(guest) => interpreted(world, language, &guest),
            Err(why) => report::skipped(&format!("one in {language}"), &why),
        }
    }
}

/// Measures plugins that are in no cache yet.
fn fresh(world: &World, name: &str, plugins: &TempDir) {
    let cache = tempfile::tempdir().expect("a temporary directory");
    let compiled = start(world, plugins.path(), cache.path());
    row(world, name, shown(compiled), plugins.path(), cache.path());
}

/// Writes plugins in WebAssembly text, each with a tool name and a digest of its own.
fn small(count: usize) -> TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for number in 0..count {
        let name = format!("bench_small_{number:04}");
        let plugin = Wat::new(Told::new(&name)).build();
        fs::write(directory.path().join(format!("{name}.wasm")), plugin)
            .expect("a plugin can be written");
    }
    directory
}

/// Measures the large plugin alone and among a hundred others. It is compiled once, since that
/// takes most of a minute.
fn interpreted(world: &World, language: &str, guest: &Path) {
    let cache = tempfile::tempdir().expect("a temporary directory");
    for (name, others) in
        [(format!("  one in {language}"), 0), (format!("  100, one of them in {language}"), 99)]
    {
        let plugins = directory(others);
        fs::copy(guest, plugins.path().join("guest.wasm")).expect("a copy of the guest");
        let compiled = start(world, plugins.path(), cache.path());
        let compiled = if others == 0 { shown(compiled) } else { "-".to_owned() };
        row(world, &name, compiled, plugins.path(), cache.path());
    }
}

/// Prints a row, with measurements of everything but the compilation.
fn row(world: &World, name: &str, compiled: String, plugins: &Path, cache: &Path) {
    let cached = middle(|| start(world, plugins, cache));
    let program = middle(|| program(world, plugins, cache));
    let floor = Floor::new(world);
    let code = by_hand(&floor, plugins);
    let mapped = middle(|| timed(|| code.iter().for_each(|file| floor.load(file))));
    let ratio = format!("× {:.2}", cached.as_secs_f64() / mapped.as_secs_f64());
    report::row(name, &[compiled, shown(cached), shown(program), shown(mapped), ratio]);
}

/// Writes plugins, each with a tool name and a digest of its own.
pub(crate) fn directory(count: usize) -> TempDir {
    let original =
        fs::read(palisade_tests::guest::BENCH_NAMED.file()).expect("the benchmark's guest");
    let places: Vec<usize> = original
        .windows(PLACE.len())
        .enumerate()
        .filter(|(_, at)| *at == PLACE)
        .map(|(at, _)| at)
        .collect();
    assert!(!places.is_empty(), "the guest does not hold its name");
    let directory = tempfile::tempdir().expect("a temporary directory");
    for number in 0..count {
        let (mut bytes, name) = (original.clone(), format!("bench_named_{number:04}"));
        places.iter().for_each(|at| bytes[*at..*at + PLACE.len()].copy_from_slice(name.as_bytes()));
        fs::write(directory.path().join(format!("{name}.wasm")), bytes)
            .expect("a plugin can be written");
    }
    directory
}

/// Returns a directory that does not exist yet: the cache creates it with private permissions.
fn private(directory: &Path) -> PathBuf {
    directory.join("cache")
}

/// Times the start of a host in this process, whose engine exists already.
fn start(world: &World, plugins: &Path, cache: &Path) -> Duration {
    let host = Host::builder()
        .workspace(world.workspace())
        .shipped(Shipped::LeftOut)
        .plugins(plugins)
        .cache(CacheMode::Directory(private(cache)));
    let mut made = None;
    let taken = timed(|| made = Some(host.build().expect("a host")));
    assert_eq!(made.map(|host| host.rejected().len()), Some(0));
    taken
}

/// Times the whole process.
fn program(world: &World, plugins: &Path, cache: &Path) -> Duration {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_palisade"));
    command
        .env("PALISADE_CACHE", private(cache))
        .args(["list", "--no-builtin", "--workspace"])
        .arg(world.workspace());
    command.arg("--plugins").arg(plugins);
    timed(|| _ = spawned::finish(&mut command))
}

/// Returns the files with the compiled code of the plugins for the hand-written host.
fn by_hand(floor: &Floor, plugins: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(plugins).expect("a directory").flatten();
    files.map(|file| floor.compiled(&fs::read(file.path()).expect("a plugin"))).collect()
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn middle(mut once: impl FnMut() -> Duration) -> Duration {
    let mut times: Vec<Duration> = (0..STARTS).map(|_| once()).collect();
    times.sort();
    times.get(STARTS / 2).copied().unwrap_or_default()
}
