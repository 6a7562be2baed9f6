//! Compilation in a child process, within its limits. A failure concerns only its own plugin.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use palisade::sandbox::Freshness;
use palisade::{
    CacheMode, CancellationToken, Host, HostBuilder, json,
    plugins::Shipped,
    sandbox::{ChildCompiler, CompileLimits, CompileStrategy, Compiler},
};
use palisade_tests::bomb::{
    cheap_to_compile, costly_to_compile, large_to_compile, seconds_to_compile,
};
use palisade_tests::case::block_on;
use palisade_tests::guest::LOADER_GOOD;
use palisade_tests::program::executable;
use palisade_tests::wat::Told;
use palisade_tests::{Program, Wat, World};

use super::says;

pub(super) fn child() -> ChildCompiler {
    ChildCompiler::palisade(executable())
}

/// Returns a host of the world's plugins with a cache of its own. Each is compiled once, with
/// optimisation.
pub(super) fn builder(world: &World, compiler: ChildCompiler) -> HostBuilder {
    let base =
        Host::builder().workspace(world.root()).shipped(Shipped::LeftOut).plugins(world.plugins());
    base.cache(CacheMode::Directory(cache(world)))
        .compiler(Compiler::Child(compiler))
        .compile_strategy(CompileStrategy::OptimizedOnly)
}

fn cache(world: &World) -> PathBuf {
    world.outer().join("cache")
}

/// Returns the files of the cache that hold the code of a plugin.
fn code(world: &World) -> Vec<PathBuf> {
    let entries = match fs::read_dir(cache(world)) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Vec::new(),
        entries => entries.unwrap().map(|entry| entry.unwrap().path()),
    };
    entries.filter(|path| path.extension().is_some_and(|extension| extension == "code")).collect()
}

/// Returns the number of plugins in the cache.
pub(super) fn cached(world: &World) -> usize {
    code(world).len()
}

/// Removes the code of every plugin from the cache, which still knows them, and returns their
/// number.
pub(super) fn without_code(world: &World) -> usize {
    code(world).iter().map(|path| fs::remove_file(path).unwrap()).count()
}

/// Returns true if a process has this word on its command line.
pub(super) fn runs(word: &str) -> bool {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|process| fs::read(process.path().join("cmdline")).ok())
        .any(|line| line.split(|byte| *byte == 0).any(|argument| argument == word.as_bytes()))
}

/// Returns limits with a unique amount of address space, which identifies the child process.
pub(super) fn marked(number: u64) -> CompileLimits {
    CompileLimits { memory: CompileLimits::MEMORY + number, ..CompileLimits::default() }
}

#[test]
fn plugin_compiled_by_a_child_runs() {
    let world = World::new();
    fs::copy(LOADER_GOOD.file(), world.plugins().join("good.wasm")).unwrap();
    world.install("small", &cheap_to_compile("small"));
    let host = builder(&world, child()).build().unwrap();
    assert_eq!(host.registry().tool_names(), ["good", "better", "small"], "{:?}", host.rejected());
    assert!(host.plugins().iter().all(|plugin| plugin.freshness() == Freshness::Compiled));
    let result = block_on(host.call("small", json!({}), json!({})));
    assert_eq!(result.output().as_deref(), Some("done"));
}

#[test]
fn cached_plugin_starts_no_child() {
    let world = World::new();
    world.install("small", &cheap_to_compile("small"));
    assert_eq!(builder(&world, child()).build().unwrap().plugins().len(), 1);
    let nowhere = ChildCompiler::palisade("/no/such/program");
    let host = builder(&world, nowhere.clone()).build().unwrap();
    assert_eq!(host.plugins()[0].freshness(), Freshness::Cached);
    world.install("small", &cheap_to_compile("other"));
    let host = builder(&world, nowhere).build().unwrap();
    says(&host.rejected()[0].reason, &["the compiler could not be started"]);
}

#[test]
fn shipped_plugin_starts_no_child() {
    let world = World::new();
    let nowhere =
        builder(&world, ChildCompiler::palisade("/no/such/program")).shipped(Shipped::Included);
    assert_eq!(nowhere.build().unwrap().rejected(), []);
}

#[test]
fn costly_plugin_is_killed_while_others_answer() {
    let (world, busy) = (World::new(), World::new());
    world.install("a-bomb", &costly_to_compile("bomb"));
    world.install("b-small", &cheap_to_compile("small"));
    busy.install("other", &Wat::new(Told::new("other")).build());
    let limits = CompileLimits { time: Duration::from_secs(2), ..marked(1) };
    let answering = builder(&busy, child()).build().unwrap();
    let done = AtomicBool::new(false);
    let (host, answers) = std::thread::scope(|scope| {
        let answers = scope.spawn(|| {
            let mut answers = 0;
            while !done.load(Ordering::SeqCst) {
                let result = block_on(answering.call("other", json!({}), json!({})));
                assert_eq!(result.output().as_deref(), Some("done"));
                answers += 1;
            }
            answers
        });
        let start = Instant::now();
        let host = builder(&world, child().limits(limits)).build();
        done.store(true, Ordering::SeqCst);
        assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
        (host.unwrap(), answers.join().unwrap())
    });
    says(
        &host.rejected()[0].reason,
        &["compilation took more than 2s", "`limits.compile_time`", "`CompileLimits::time`"],
    );
    assert_eq!(
        host.registry().tool_names(),
        ["small"],
        "the other plugin of the directory is there"
    );
    assert!(answers > 10, "{answers} calls were answered in the meantime");
    assert_eq!(cached(&world), 1, "no file of the bomb remains");
    assert!(!runs(&limits.memory.to_string()), "a child is left");
}

#[test]
fn verdict_is_remembered_until_the_limit_is_raised() {
    let world = World::new();
    world.install("bomb", &costly_to_compile("bomb"));
    let within = |compiler: ChildCompiler, seconds| {
        let limits =
            CompileLimits { time: Duration::from_secs(seconds), ..CompileLimits::default() };
        let host = builder(&world, compiler.limits(limits)).build().unwrap();
        host.rejected()[0].reason.clone()
    };
    let nowhere = || ChildCompiler::palisade("/no/such/program");
    says(&within(child(), 2), &["compilation took more than 2s of processor time"]);
    says(&within(nowhere(), 2), &["compilation took more than 2s of processor time"]);
    world.install("renamed", &fs::read(world.plugins().join("bomb.wasm")).unwrap());
    fs::remove_file(world.plugins().join("bomb.wasm")).unwrap();
    says(&within(nowhere(), 1), &["compilation took more than 1s of processor time"]);
    says(&within(nowhere(), 3), &["the compiler could not be started"]);
    world.install("renamed", &costly_to_compile("other"));
    says(&within(nowhere(), 2), &["the compiler could not be started"]);
}

#[test]
fn foreign_compiler_output_is_no_verdict() {
    let world = World::new();
    world.install("small", &cheap_to_compile("small"));
    let junk = r"cat > /dev/null; printf '\000\004\000\000\000\000\000\000\000junk'";
    let other = builder(&world, ChildCompiler::program("/bin/sh", ["-c", junk])).build().unwrap();
    says(&other.rejected()[0].reason, &["the compiler failed on it"]);
    let host = builder(&world, child()).build().unwrap();
    assert_eq!(host.registry().tool_names(), ["small"], "{:?}", host.rejected());
}

#[test]
fn waiting_time_of_a_child_does_not_count() {
    // The child waits for twice its limit on CPU time.
    let world = World::new();
    world.install("small", &cheap_to_compile("small"));
    let limits = CompileLimits { time: Duration::from_secs(1), ..CompileLimits::default() };
    let script = format!("sleep 2; exec {} compile-child \"$@\"", executable().display());
    let late = ChildCompiler::program("/bin/sh", ["-c", &script, "late"]).limits(limits);
    let host = builder(&world, late).build().unwrap();
    assert_eq!(host.registry().tool_names(), ["small"], "{:?}", host.rejected());
}

#[test]
fn library_compiles_within_bounds_without_a_child() {
    let world = World::new();
    world.install("a-slow", &seconds_to_compile("slow"));
    world.install("b-small", &cheap_to_compile("small"));
    let limits = CompileLimits { time: Duration::from_millis(200), ..CompileLimits::default() };
    let base =
        Host::builder().workspace(world.root()).shipped(Shipped::LeftOut).plugins(world.plugins());
    let host = base.cache(CacheMode::Off).compiler(Compiler::InProcess(limits)).build().unwrap();
    assert_eq!(host.registry().tool_names(), ["small"]);
    says(&host.rejected()[0].reason, &["compilation took more than 200ms of processor time"]);
}

#[test]
fn memory_intensive_plugin_is_refused_until_the_limit_is_raised() {
    let world = World::new();
    world.install("large", &large_to_compile("large", 40 << 20));
    let limits = CompileLimits { memory: 100 << 20, ..CompileLimits::default() };
    let host = builder(&world, child().limits(limits)).build().unwrap();
    says(
        &host.rejected()[0].reason,
        &["compilation took more than 100 MiB", "`limits.compile_memory`"],
    );
    assert_eq!(cached(&world), 0);
    let host = builder(&world, child()).build().unwrap();
    assert_eq!(host.registry().tool_names(), ["large"], "{:?}", host.rejected());
}

#[test]
fn cancelled_compilation_is_killed_without_traces() {
    let world = World::new();
    world.install("bomb", &costly_to_compile("bomb"));
    world.install("next", &costly_to_compile("next"));
    let (limits, token) = (marked(3), CancellationToken::new());
    let compiler = child().limits(limits).cancelled_by(token.clone());
    let host = std::thread::scope(|scope| {
        let host = scope.spawn(|| builder(&world, compiler).build().unwrap());
        wait_until(|| runs(&limits.memory.to_string()), "no child was ever started");
        token.cancel();
        host.join().unwrap()
    });
    assert_eq!(host.rejected().len(), 2);
    for rejected in host.rejected() {
        says(&rejected.reason, &["loading was cancelled"]);
    }
    assert_eq!(cached(&world), 0);
    assert!(!runs(&limits.memory.to_string()), "a child is left");
}

#[test]
fn program_kills_a_costly_plugin_and_lists_the_others() {
    let world = World::new();
    world.install("a-bomb", &costly_to_compile("bomb"));
    world.install("b-small", &cheap_to_compile("small"));
    configure(&world, "[limits]\ncompile_time = \"2s\"\ncompile_memory = \"2000000005B\"");
    let ran = listing(&world).run().exits_with(0);
    let listed = ran.json();
    assert_eq!(listed["tools"][0]["name"], "small");
    says(
        listed["rejected"][0]["reason"].as_str().unwrap(),
        &["compilation took more than 2s", "`limits.compile_time`"],
    );
    assert_eq!(cached(&world), 1);
    // The program has ended, and the kernel kills its children shortly after it.
    wait_until(|| !runs("2000000005"), "a child is left");
}

#[track_caller]
pub(super) fn wait_until(holds: impl Fn() -> bool, otherwise: &str) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(60), "{otherwise}");
        std::thread::yield_now();
    }
}

pub(super) fn configure(world: &World, text: &str) {
    let directory = world.home().join(".config/palisade");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("palisade.toml"), text).unwrap();
}

pub(super) fn listing(world: &World) -> Program<'_> {
    let program = Program::new(world).env("PALISADE_CACHE", cache(world));
    program.args(["--no-builtin", "list", "--json", "--plugins"]).args([world.plugins()])
}
