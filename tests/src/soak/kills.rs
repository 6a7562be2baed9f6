//! A soak test for programs that are killed while they write: files have their old or their new
//! contents, never a mix.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant, SystemTime};

use palisade::sandbox::Freshness;
use palisade::{CacheMode, plugins::Shipped};
use serde_json::json;

use super::Report;
use crate::dice::Dice;
use crate::wat::Told;
use crate::{Program, Wat, World};

/// The number of runs after which the cache is deleted, so that its key is created again.
const ANEW: usize = 5;
/// The number of functions in each plugin, so that writing its code takes a while.
const FUNCTIONS: usize = 2_000;
/// The size of the written file, in bytes.
const TEXT: usize = 512 << 10;
/// The time for the last programs, which are not killed, so that some are done on a busy machine as
/// well.
const UNHURRIED: Duration = Duration::from_secs(60);
/// The interval between two looks whether a program is done.
const POLL: Duration = Duration::from_millis(1);
/// The age given to leftover temporary files, beyond the 24 hours after which the cache removes
/// them.
const OLD: Duration = Duration::from_secs(48 * 60 * 60);

/// Kills `count` programs that compile a plugin into the cache, and `count` programs that write a
/// file.
///
/// # Panics
///
/// If a program cannot be started, or fails without being killed.
pub fn kills(count: usize) -> Report {
    let (world, mut dice) = (World::new(), Dice::new(count as u64));
    let mut outcomes = Outcomes::default();
    install(&world, count);
    let listing = took(|| list(&world).run().exits_with(0));
    let writing = took(|| write(&world, 0).run().exits_with(0));
    for number in 0..count {
        let is_last = number + 1 == count;
        let mut delay = |whole| if is_last { UNHURRIED } else { delay(&mut dice, whole) };
        compiled(&world, number, delay(listing), &mut outcomes);
        written(&world, number, delay(writing), &mut outcomes);
    }
    let left = temporaries(&cache(&world));
    age(&left);
    // The next write to the cache removes old temporary files, so provide a plugin that is not
    // cached.
    install(&world, count + 1);
    let _ = list(&world).run().exits_with(0);
    let cleared = temporaries(&cache(&world)).is_empty();
    Report::new(&format!("{outcomes:?}, {} files left by the killed", left.len()))
        .bound("what was written is old or new, never torn", outcomes.torn.is_empty())
        .bound("the next program does its work", outcomes.failed.is_empty())
        .bound("what they left is cleared once it is old", cleared)
        .bound(
            "some were killed before they were done, and some after",
            outcomes.before > 0 && outcomes.after > 0,
        )
}

/// The state after the programs were killed.
#[derive(Debug, Default)]
struct Outcomes {
    before: usize,
    after: usize,
    torn: Vec<String>,
    failed: Vec<String>,
}

fn took<T>(work: impl FnOnce() -> T) -> Duration {
    let start = Instant::now();
    drop(work());
    start.elapsed()
}

/// Returns a random time up to 1.2 times `whole`, so that some programs finish.
fn delay(dice: &mut Dice, whole: Duration) -> Duration {
    whole.mul_f64(dice.roll(1200) as f64 / 1000.0)
}

fn cache(world: &World) -> PathBuf {
    world.outer().join("cache")
}

fn list(world: &World) -> Program<'_> {
    let program = Program::new(world).env("PALISADE_CACHE", cache(world));
    program.args(["--no-builtin", "list", "--json", "--plugins"]).args([world.plugins()])
}

fn write(world: &World, number: usize) -> Program<'_> {
    let input = json!({"path": "file.txt", "content": text(number)}).to_string();
    Program::new(world).args(["call", "write_file", "-", "--allow", "write"]).stdin(input)
}

/// Returns contents that consist of one letter, selected by the number.
fn text(number: usize) -> String {
    char::from(b'a' + (number % 26) as u8).to_string().repeat(TEXT)
}

fn killed(program: Program<'_>, after: Duration) {
    let mut child = program.stdout(Stdio::null()).start();
    // Killed at an arbitrary point of its work, on purpose.
    let end = Instant::now() + after;
    while Instant::now() < end && matches!(child.try_wait(), Ok(None)) {
        std::thread::park_timeout(POLL);
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// Writes a plugin that is not in the cache.
fn install(world: &World, number: usize) {
    let function = |n: usize| {
        format!(
            "(func (param i32) (result i32) (i32.add (local.get 0) (i32.const {})))",
            n + number
        )
    };
    let plugin =
        Wat::new(Told::new("tool")).extra(&(0..FUNCTIONS).map(function).collect::<String>());
    world.install("p", &plugin.build());
}

/// Kills a program that compiles a new plugin, and then loads the plugin in this process.
fn compiled(world: &World, number: usize, after: Duration, outcomes: &mut Outcomes) {
    if number.is_multiple_of(ANEW) {
        let _ = fs::remove_dir_all(cache(world));
    }
    install(world, number);
    killed(list(world), after);
    let entries = entries(&cache(world));
    // With code of either kind, as the program.
    let builder = palisade::Host::builder()
        .workspace(world.root())
        .shipped(Shipped::LeftOut)
        .plugins(world.plugins());
    let host = match builder.cache(CacheMode::Directory(cache(world))).build() {
        Ok(host) if host.rejected().is_empty() => host,
        Ok(host) => return outcomes.failed.push(format!("{number}: {:?}", host.rejected())),
        Err(error) => return outcomes.failed.push(format!("{number}: {error}")),
    };
    let plugin = &host.plugins()[0];
    let was_there = entries.iter().any(|name| name.starts_with(&plugin.digest().hex()));
    // An entry that exists must load. Otherwise it is torn.
    if was_there && plugin.freshness() != Freshness::Cached {
        outcomes.torn.push(format!("{number}: {entries:?}"));
    }
    outcomes.after += usize::from(was_there);
    outcomes.before += usize::from(!was_there);
}

/// Kills a program that writes a file, and then checks the file.
fn written(world: &World, number: usize, after: Duration, outcomes: &mut Outcomes) {
    killed(write(world, number + 1), after);
    let found = world.read("file.txt").unwrap_or_default();
    let is_new = found == text(number + 1);
    let letters: std::collections::BTreeSet<char> = found.chars().collect();
    if found.len() != TEXT || letters.len() != 1 {
        outcomes.torn.push(format!("{number}: a file of {} bytes and {letters:?}", found.len()));
    }
    outcomes.after += usize::from(is_new);
    outcomes.before += usize::from(!is_new);
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

fn entries(directory: &Path) -> Vec<String> {
    names(directory).into_iter().filter(|name| name.ends_with(".code")).collect()
}

/// Returns the unfinished files of killed programs.
fn temporaries(directory: &Path) -> Vec<PathBuf> {
    let begun = names(directory).into_iter().filter(|name| name.starts_with(".tmp"));
    begun.map(|name| directory.join(name)).collect()
}

fn age(files: &[PathBuf]) {
    for file in files {
        let opened = fs::File::options().write(true).open(file).expect("it is there");
        opened.set_modified(SystemTime::now() - OLD).expect("its time can be set");
    }
}
