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
    let branch = |number: usize| {
        format!(
            "(if (i32.gt_u (local.get $sum) (i32.const {number}))
               (then (local.set $sum (i32.mul (local.get $sum) (local.get $left)))))"
        )
    };
    let deep = format!(
        "(func $deep (param $left i32) (result i32) (local $sum i32)
           (if (i32.eqz (local.get $left)) (then (return (i32.const 0))))
           {}
           (i32.add (local.get $sum) (call $deep (i32.sub (local.get $left) (i32.const 1)))))",
        (0..branches).map(branch).collect::<String>()
    );
    let run = format!("(drop (call $deep (i32.const {depth}))) {}", Wat::DONE);
    Wat::new(Told::new(tool)).extra(&deep).execute(&run).build()
}

#[test]
fn quickly_compiled_code_takes_no_more_stack() {
    let world = World::new();
    world.install("deep", &recursing("deep", 4_000, 400));
    let host = tiered(&world, before_optimizing("exit 1"));
    assert_eq!(code(&world), (1, 0));
    let result = block_on(host.call("deep", json!({}), json!({})));
    assert_eq!(result.output().as_deref(), Some("done"), "{result}");
}
