//! The tiers of compiled code: a plugin answers with code that was compiled quickly, and later
//! calls use its optimised code.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use palisade::events::Event;
use palisade::sandbox::{ChildCompiler, CompileStrategy, Freshness};
use palisade::{Call, CancellationToken, Host, json};
use palisade_tests::bomb::cheap_to_compile;
use palisade_tests::case::block_on;
use palisade_tests::guest::CANCEL_SLEEP;
use palisade_tests::program::executable;
use palisade_tests::wat::{Told, Wat};
use palisade_tests::{Recorder, World};

use super::compile::{builder, child, wait_until};

/// Returns the numbers of cache entries with quickly compiled and with optimised code.
fn code(world: &World) -> (usize, usize) {
    let entries = fs::read_dir(world.outer().join("cache")).unwrap();
    let names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    let of = |end: &str| names.iter().filter(|name| name.ends_with(end)).count();
    (of(".baseline.code"), of(".code") - of(".baseline.code"))
}

fn tiered(world: &World, compiler: ChildCompiler) -> Host {
    let host = builder(world, compiler).compile_strategy(CompileStrategy::BaselineFirst);
    let host = host.build().unwrap();
    assert_eq!(host.rejected(), []);
    host
}

/// Returns a compiler that runs `script` before it optimises code. `$2` is the tier.
fn before_optimizing(script: &str) -> ChildCompiler {
    let program = executable();
    let script = format!(
        "if [ $2 = optimized ]; then {script}; fi; exec {} compile-child \"$@\"",
        program.display()
    );
    ChildCompiler::program("/bin/sh", ["-c", &script, "sh"])
}

/// Returns a compiler that optimises code once this file exists.
fn gated(gate: &Path) -> ChildCompiler {
    before_optimizing(&format!("until [ -e {} ]; do sleep 0.01; done", gate.display()))
}

fn says_done(host: &Host) {
    let result = block_on(host.call("small", json!({}), json!({})));
    assert_eq!(result.output().as_deref(), Some("done"), "{result}");
}

#[test]
fn plugin_answers_before_its_optimised_code_is_compiled() {
    let world = World::new();
    world.install("small", &cheap_to_compile("small"));
    let gate = world.outer().join("gate");
    let host = tiered(&world, gated(&gate));
    says_done(&host);
    assert_eq!(code(&world), (1, 0));
    fs::write(&gate, "").unwrap();
    wait_until(|| code(&world) == (0, 1), "the optimised code is never compiled");
    says_done(&host);
    let host = tiered(&world, ChildCompiler::palisade("/no/such/program"));
    assert_eq!(host.plugins()[0].freshness(), Freshness::Cached);
    says_done(&host);
}

#[test]
fn call_keeps_the_code_that_it_began_with() {
    let world = World::new();
    fs::copy(CANCEL_SLEEP.file(), world.plugins().join("sleep.wasm")).unwrap();
    let gate = world.outer().join("gate");
    let recorder = Recorder::default();
    let host = builder(&world, gated(&gate))
        .compile_strategy(CompileStrategy::BaselineFirst)
        .subscriber(Arc::new(recorder.clone()))
        .build()
        .unwrap();
    let token = CancellationToken::new();
    let call = || {
        host.dispatch(
            host.session(),
            Call::new("sleep", json!({})).with_cancellation(token.clone()),
        )
    };
    // The guest reports when it runs.
    let running = |number: usize| {
        let told = |event: &&Event| event.name() == "tool.output_delta";
        recorder.until(move |events| events.iter().filter(told).count() == number)
    };
    let results = block_on(async {
        let swap = async {
            running(1).await;
            fs::write(&gate, "").unwrap();
            while code(&world) != (0, 1) {
                tokio::task::yield_now().await;
            }
            tokio::join!(call(), async {
                running(2).await;
                token.cancel();
            })
        };
        tokio::join!(call(), swap)
    });
    let (first, (second, ())) = results;
    for result in [first, second] {
        let class = result.error().map(|error| error.class().as_str().to_owned());
        assert_eq!(class.as_deref(), Some("cancelled"), "{result}");
    }
}

#[test]
fn plugin_without_optimised_code_goes_on_and_is_not_tried_again() {
    let world = World::new();
    world.install("a-small", &cheap_to_compile("small"));
    world.install("b-other", &cheap_to_compile("other"));
    let failed = world.outer().join("failed");
    // Only the first optimisation fails.
    let failing = before_optimizing(&format!(
        "if [ ! -e {0} ]; then touch {0}; kill -XCPU $$; fi",
        failed.display()
    ));
    let host = tiered(&world, failing.clone());
    wait_until(|| code(&world) == (1, 1), "the next plugin is never optimised");
    says_done(&host);
    drop(host);
    world.install("c-third", &cheap_to_compile("third"));
    let host = tiered(&world, failing);
    wait_until(|| code(&world) == (1, 2), "the new plugin is never optimised");
    says_done(&host);
}

#[test]
fn optimized_only_waits_for_optimised_code() {
    let world = World::new();
    world.install("small", &cheap_to_compile("small"));
    drop(tiered(&world, before_optimizing("exit 1")));
    assert_eq!(code(&world), (1, 0));
    let host = builder(&world, child()).compile_strategy(CompileStrategy::OptimizedOnly);
    let host = host.build().unwrap();
    assert_eq!(host.plugins()[0].freshness(), Freshness::Compiled);
    assert_eq!(code(&world), (0, 1));
}

/// Returns a plugin that recurses this deep, through a function with as many branches as the loop
/// of an interpreter has.
fn recursing(tool: &str, depth: usize, branches: usize) -> Vec<u8> {
    let run = format!("(drop (call $deep (i32.const {depth}))) {}", Wat::DONE);
    let deep = deep("deep", branches, "(i32.const 0)");
    Wat::new(Told::new(tool)).extra(&deep).execute(&run).build()
}

/// Returns a function that calls itself as often as its argument says, and `last` at the end.
fn deep(name: &str, branches: usize, last: &str) -> String {
    let branch = |number: usize| {
        format!(
            "(if (i32.gt_u (local.get $sum) (i32.const {number}))
               (then (local.set $sum (i32.mul (local.get $sum) (local.get $left)))))"
        )
    };
    format!(
        "(func ${name} (param $left i32) (result i32) (local $sum i32)
           (if (i32.eqz (local.get $left)) (then (return {last})))
           {}
           (i32.add (local.get $sum) (call ${name} (i32.sub (local.get $left) (i32.const 1)))))",
        (0..branches).map(branch).collect::<String>()
    )
}

/// A recursion of an interpreter.
const DEEP: usize = 500;
/// A recursion that optimised code has room for, and no interpreter makes.
const DEEPER: usize = 4_000;

#[test]
fn quickly_compiled_code_has_room_to_recurse() {
    let world = World::new();
    world.install("deep", &recursing("deep", DEEP, 400));
    let host = tiered(&world, before_optimizing("exit 1"));
    assert_eq!(code(&world), (1, 0));
    let result = block_on(host.call("deep", json!({}), json!({})));
    assert_eq!(result.output().as_deref(), Some("done"), "{result}");
}

#[test]
fn recursion_beyond_the_stack_of_quick_code_fits_once_it_is_optimised() {
    let world = World::new();
    world.install("deep", &recursing("deep", DEEPER, 400));
    let gate = world.outer().join("gate");
    let host = tiered(&world, gated(&gate));
    let call = || block_on(host.call("deep", json!({}), json!({})));
    let error = call().error().map(|error| error.class().as_str().to_owned());
    assert_eq!(error.as_deref(), Some("execution_error"));
    fs::write(&gate, "").unwrap();
    // The code takes its place a moment after it is in the cache.
    let is_done = || call().output().as_deref() == Some("done");
    wait_until(is_done, "the optimised code never takes the place of the other");
    assert_eq!(code(&world), (0, 1));
}

/// Returns a plugin that recurses `depth` deep, and then asks the host for random bytes. The host
/// calls the allocator of the plugin for these, which recurses `again` deep.
fn recursing_in_its_allocator(depth: usize, again: usize) -> Vec<u8> {
    let random = r#"(import "wasi:random/random@0.2.0" (instance $random
          (export "get-random-bytes" (func (param "len" u64) (result (list u8))))))
        (core module $shim
          (type $bytes (func (param i64 i32)))
          (table (export "table") 1 1 funcref)
          (func (export "bytes") (param i64 i32)
            (call_indirect (type $bytes) (local.get 0) (local.get 1) (i32.const 0))))
        (core instance $shim (instantiate $shim))"#;
    // The lowered function needs the memory and the allocator of the main module, so that it is put
    // into the table afterwards.
    let after = r#"(with "random" (instance (export "bytes" (func $shim "bytes"))))))
        (core func $bytes (canon lower (func $random "get-random-bytes")
          (memory (core memory $main "memory")) (realloc (core func $main "cabi_realloc"))))
        (core module $fill
          (import "" "table" (table 1 1 funcref))
          (import "" "bytes" (func $bytes (param i64 i32)))
          (elem (i32.const 0) func $bytes))
        (core instance (instantiate $fill (with "" (instance
          (export "table" (table $shim "table"))
          (export "bytes" (func $bytes))))"#;
    let ask = "(call $bytes (i64.const 8) (i32.const 512)) (i32.const 0)";
    let fields = format!(
        "(global $recurses (mut i32) (i32.const 0)) (func $ask (result i32) {ask}) {} {}",
        deep("deep", 400, "(call $ask)"),
        deep("again", 400, "(i32.const 0)")
    );
    let run = format!(
        "(global.set $recurses (i32.const 1)) (drop (call $deep (i32.const {depth}))) {}",
        Wat::DONE
    );
    let recurse = format!("(drop (call $again (i32.const {again})))");
    let allocate = format!("(if (global.get $recurses) (then {recurse})) (i32.const 4096)");
    let plugin = Wat::new(Told::new("deep")).importing(random).with(after);
    let plugin =
        plugin.core_importing(r#"(import "random" "bytes" (func $bytes (param i64 i32)))"#);
    plugin.extra(&fields).realloc(&allocate).execute(&run).build()
}

#[test]
fn recursion_in_the_allocator_of_a_deep_guest_has_a_stack_of_its_own() {
    for (again, fits) in [(DEEP, true), (DEEPER, false)] {
        let world = World::new();
        world.install("deep", &recursing_in_its_allocator(DEEP, again));
        let host = tiered(&world, before_optimizing("exit 1"));
        assert_eq!(code(&world), (1, 0));
        let result = block_on(host.call("deep", json!({}), json!({})));
        assert_eq!(result.is_success(), fits, "{again}: {result}");
    }
}
