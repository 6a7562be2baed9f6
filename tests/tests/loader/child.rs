//! The child process that compiles: what limits it, what it sees, what it may answer, and when it
//! ends.

use std::fs;
use std::io::Write as _;
use std::process::Stdio;
use std::time::Duration;

use palisade::sandbox::Freshness;
use palisade::{
    Call, CancellationToken, json,
    sandbox::{ChildCompiler, CompileLimits},
};
use palisade_tests::bomb::{cheap_to_compile, costly_to_compile};
use palisade_tests::case::block_on;
use palisade_tests::guest::LOADER_GOOD;
use palisade_tests::program::executable;
use palisade_tests::{Program, World};

use super::compile::{
    builder, cached, child, configure, listing, marked, runs, wait_until, without_code,
};
use super::says;

#[test]
fn child_limits_itself_before_reading() {
    let mut child = std::process::Command::new(executable());
    child
        .args(["compile-child", "pooled", "optimized", "5", "2000000009"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null());
    let mut child = child.spawn().unwrap();
    // More than a pipe holds: once it is written, the child has begun to read.
    child.stdin.as_mut().unwrap().write_all(&[0; 1 << 20]).unwrap();
    let limits = fs::read_to_string(format!("/proc/{}/limits", child.id())).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let hard_and_soft = |name: &str| -> Vec<String> {
        let line = limits.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.split_whitespace().take(2).map(str::to_owned).collect()
    };
    for (name, soft, hard) in [
        ("Max cpu time", "5", "6"),
        ("Max address space", "2000000009", "2000000009"),
        ("Max file size", "0", "0"),
        ("Max core file size", "0", "0"),
        ("Max processes", "0", "0"),
        ("Max open files", "0", "0"),
    ] {
        assert_eq!(hard_and_soft(name), [soft, hard], "{name}");
    }
}

#[test]
fn call_cancelled_during_recompilation_ends() {
    let world = World::new();
    world.install("small", &cheap_to_compile("small"));
    assert_eq!(
        builder(&world, child()).build().unwrap().plugins()[0].freshness(),
        Freshness::Compiled
    );
    // The cache knows the plugin, but its code is deleted.
    let (begun, gate) = (world.outer().join("begun"), world.outer().join("gate"));
    let script = format!(
        "echo >> {}; until [ -e {} ]; do sleep 0.01; done; exec {} compile-child \"$@\"",
        begun.display(),
        gate.display(),
        executable().display()
    );
    let compiler = ChildCompiler::program("/bin/sh", ["-c", &script, "2000000008"]);
    let host = builder(&world, compiler).build().unwrap();
    assert_eq!(without_code(&world), 1);
    let token = CancellationToken::new();
    let call = Call::new("small", json!({})).with_cancellation(token.clone());
    let (result, next) = block_on(async {
        let cancel = async {
            wait_until(|| runs("2000000008"), "no child was ever started");
            token.cancel();
        };
        let (result, ()) = tokio::join!(host.dispatch(host.session(), call), cancel);
        assert!(runs("2000000008"), "the compilation goes on");
        fs::write(&gate, "").unwrap();
        (result, host.call("small", json!({}), json!({})).await)
    });
    assert_eq!(result.error().map(|error| error.class().as_str()), Some("cancelled"), "{result}");
    assert_eq!(next.output().as_deref(), Some("done"), "{next}");
    assert_eq!(cached(&world), 1);
    assert_eq!(fs::read(&begun).unwrap(), b"\n", "one compilation serves both calls");
}

/// Returns a shell script that plays the compiler.
fn played_by(script: &str) -> ChildCompiler {
    ChildCompiler::program("/bin/sh", ["-c", script])
        .limits(CompileLimits { time: Duration::from_millis(500), ..marked(4) })
}

#[track_caller]
fn reason_with(script: &str) -> String {
    let world = World::new();
    world.install("small", &cheap_to_compile("small"));
    let host = builder(&world, played_by(script)).build().unwrap();
    assert_eq!(cached(&world), 0);
    host.rejected()[0].reason.clone()
}

#[test]
fn child_answers_are_bounded_and_checked() {
    says(&reason_with("cat > /dev/null"), &["the compiler failed on it", "without an answer"]);
    says(&reason_with("exit 3"), &["the compiler failed on it"]);
    says(&reason_with("echo 'it broke\u{202e}' >&2; kill -9 $$"), &["ended by signal 9"]);
    says(&reason_with("cat > /dev/null; echo hello"), &["the compiler failed on it"]);
    says(&reason_with("printf '\\0\\3\\0\\0\\0\\0\\0\\0\\0abc'"), &["the compiler failed on it"]);
    says(
        &reason_with("printf '\\3\\4\\0\\0\\0\\0\\0\\0\\0why\\n'"),
        &["the compiler failed on it: why"],
    );
    says(
        &reason_with("printf '\\1\\4\\0\\0\\0\\0\\0\\0\\0b\\033d\\n'"),
        &["it does not compile: b\\u{1b}d"],
    );
    says(&reason_with("printf '\\2\\0\\0\\0\\0\\0\\0\\0\\0'"), &["more than 2048 MiB"]);
    says(&reason_with("printf '\\7\\0\\0\\0\\0\\0\\0\\0\\0'"), &["makes no sense"]);
    says(&reason_with("cat /dev/zero"), &["more than 256 MiB of code"]);
    says(&reason_with("exec sleep 1000"), &["compilation did not finish within 10s", "try again"]);
    says(&reason_with("exec cat /dev/zero >&2"), &["the compiler failed on it"]);
}

#[test]
fn child_gets_no_environment_or_descriptors() {
    let world = World::new();
    world.install("small", &cheap_to_compile("small"));
    let (seen, open) = (world.outer().join("seen"), fs::File::open(LOADER_GOOD.file()).unwrap());
    // The host may have inherited a file descriptor without `CLOEXEC`.
    rustix::io::fcntl_setfd(&open, rustix::io::FdFlags::empty()).unwrap();
    let script =
        format!("cat > /dev/null; {{ pwd; env; ls -l /proc/$$/fd; }} > {}", seen.display());
    builder(&world, played_by(&script)).build().unwrap();
    let seen = fs::read_to_string(seen).unwrap();
    assert!(seen.starts_with("/\n"), "{seen}");
    for name in ["HOME=", "CARGO", "USER=", "RUST"] {
        assert!(!seen.contains(name), "{seen}");
    }
    assert!(!seen.contains("good.wasm"), "{seen}");
}

#[test]
fn child_does_not_outlive_a_killed_program() {
    let world = World::new();
    world.install("bomb", &costly_to_compile("bomb"));
    configure(&world, "[limits]\ncompile_memory = \"2000000006B\"");
    let mut program = listing(&world).start();
    wait_until(|| runs("2000000006"), "no child was ever started");
    program.kill().unwrap();
    program.wait().unwrap();
    wait_until(|| !runs("2000000006"), "a child is left");
}

#[test]
fn hidden_compile_verb_is_for_the_host_only() {
    let world = World::new();
    Program::new(&world)
        .args(["compile-child"])
        .run()
        .exits_with(2)
        .stderr_contains(&["for palisade itself"]);
    // Only binary components are compiled; text is rejected.
    let order = ["compile-child", "pooled", "optimized", "5", "2000000007"];
    let ran = Program::new(&world).args(order).stdin("(component)").run().exits_with(0);
    assert!(ran.stdout.contains("not a component in binary form"), "{}", ran.stdout);
    assert!(
        !Program::new(&world).args(["--help"]).run().exits_with(0).stdout.contains("compile-child")
    );
}
