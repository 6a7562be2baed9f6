//! Loading in the background and for one tool: calls do not wait for plugins of other tools, and
//! the owner of a name does not depend on a race.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use palisade::plugins::{Approvals, LoadStep, NotApproved, Plugin, PluginApproval, PluginBytes};
use palisade::{
    CacheMode, Host, HostBuilder, json,
    plugins::Shipped,
    sandbox::{ChildCompiler, CompileLimits, Compiler},
};
use palisade_tests::bomb::costly_to_compile;
use palisade_tests::case::block_on;
use palisade_tests::program::executable;
use palisade_tests::wat::Told;
use palisade_tests::{Program, Wat, World};

use super::compile::{cached, runs};
use super::says;

/// Returns a host of the world's plugins with an empty cache of its own.
fn builder(world: &World) -> HostBuilder {
    let base =
        Host::builder().workspace(world.root()).shipped(Shipped::LeftOut).plugins(world.plugins());
    base.cache(CacheMode::Directory(world.outer().join("cache")))
}

fn plugin(tool: &str) -> Vec<u8> {
    Wat::new(Told::new(tool)).build()
}

fn plugins(world: &World, tools: &[&str]) {
    tools.iter().for_each(|tool| drop(world.install(tool, &plugin(tool))));
}

/// Blocks loading after the plugin `name` is compiled, until the sender sends or is dropped.
fn holding_up(
    builder: HostBuilder,
    name: &'static str,
) -> (HostBuilder, Sender<()>, Receiver<String>) {
    let ((release, released), (tell, told)) = (channel(), channel());
    let (released, tell) = (Mutex::new(released), Mutex::new(tell));
    let observer = move |step: LoadStep<'_>| {
        if let LoadStep::Done(done) = step {
            let _ = tell.lock().unwrap().send(done.to_owned());
            if done == name {
                let _ = released.lock().unwrap().recv();
            }
        }
    };
    (builder.observe_loading(Arc::new(observer)), release, told)
}

#[test]
fn plugin_is_callable_while_later_ones_compile() {
    let world = World::new();
    plugins(&world, &["a", "b", "c"]);
    let (builder, release, _told) = holding_up(builder(&world), "b");
    let host = builder.build_in_background().unwrap();
    block_on(async {
        host.wait_for_tool("a").await;
        assert!(host.call("a", "{}", json!({})).await.is_success());
        assert_eq!((host.registry().tool_names(), host.plugins().len()), (vec!["a".to_owned()], 1));
        assert!(!host.progress().is_complete() && host.progress().of == 3);
        drop(release);
        host.wait_until_loaded().await;
        assert_eq!(host.registry().tool_names(), ["a", "b", "c"]);
        assert!(host.progress().is_complete());
        host.wait_for_tool("nobody has this").await;
    });
}

#[test]
fn cached_plugins_are_ready_and_only_changed_ones_compile() {
    let world = World::new();
    plugins(&world, &["a", "b", "c"]);
    drop(builder(&world).build().unwrap());
    assert_eq!(cached(&world), 3);
    world.install("c", &plugin("changed"));
    let (builder, release, told) = holding_up(builder(&world), "c");
    let host = builder.build_in_background().unwrap();
    assert_eq!(host.registry().tool_names(), ["a", "b"]);
    drop(release);
    block_on(host.wait_until_loaded());
    assert_eq!(host.registry().tool_names(), ["a", "b", "changed"]);
    assert_eq!(told.try_iter().count(), 3);
    let compiled = |plugin: &Plugin| plugin.freshness() == palisade::sandbox::Freshness::Compiled;
    let compiled: Vec<_> = host
        .plugins()
        .into_iter()
        .filter(compiled)
        .map(|plugin| plugin.name().to_owned())
        .collect();
    assert_eq!((compiled, cached(&world)), (vec!["c".to_owned()], 4));
}

#[test]
fn first_file_gets_a_contested_name_regardless_of_speed() {
    let world = World::new();
    world.install("a-slow", &Wat::with_tools(vec![Told::new("same"), Told::new("mine")]).build());
    world.install("b-fast", &Wat::with_tools(vec![Told::new("same"), Told::new("too")]).build());
    world.install("c-last", &plugin("too"));
    world.install("d-other", &plugin("other"));
    let (builder, release, _told) = holding_up(builder(&world), "a-slow");
    let host = builder.build_in_background().unwrap();
    let owner =
        |tool: &str| host.registry().get(tool).unwrap().origin().plugin().map(str::to_owned);
    while host.progress().decided < 3 {
        std::thread::yield_now();
    }
    assert_eq!(
        (owner("same").as_deref(), owner("too").as_deref()),
        (Some("b-fast"), Some("b-fast"))
    );
    drop(release);
    block_on(host.wait_until_loaded());
    assert_eq!(
        (owner("same").as_deref(), owner("too").as_deref()),
        (Some("a-slow"), Some("c-last"))
    );
    assert_eq!(host.registry().tool_names(), ["same", "mine", "too", "other"]);
    assert_eq!(host.rejected().len(), 1, "{:?}", host.rejected());
    says(&host.rejected()[0].file, &["b-fast.wasm"]);
    says(&host.rejected()[0].reason, &["`same` already exists"]);
}

#[test]
fn cached_plugin_is_ready_beside_a_compiling_one() {
    let world = World::new();
    plugins(&world, &["good"]);
    drop(builder(&world).build().unwrap());
    world.install("a-slow", &costly_to_compile("slow"));
    let child = || Compiler::Child(ChildCompiler::palisade(executable()));
    let host = builder(&world).compiler(child()).build_in_background().unwrap();
    assert_eq!(host.registry().tool_names(), ["good"]);
    assert!(block_on(host.call("good", "{}", json!({}))).is_success());
    let compiling: Vec<String> =
        host.compiling().into_iter().map(|compiling| compiling.plugin).collect();
    assert_eq!(compiling, ["a-slow"]);
    let missing = block_on(host.call("slow", "{}", json!({})));
    says(
        &missing.error().unwrap().message(),
        &["there is no tool `slow`", "being compiled: a-slow", "try again"],
    );
    assert_eq!(missing.to_json()["error"]["detail"]["compiling"], json!(["a-slow"]));
    let notes = || {
        let entries = std::fs::read_dir(world.outer().join("cache"))
            .unwrap()
            .flatten()
            .map(|entry| entry.path());
        entries
            .filter(|path| path.extension().is_some_and(|kind| kind == "verdict"))
            .collect::<Vec<_>>()
    };
    let begun = Instant::now();
    while notes().is_empty() {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "the start of a compilation is recorded"
        );
        std::thread::yield_now();
    }
    drop(host);
    // The verdict files are removed, so a new one would show that a call or a list has begun to
    // compile.
    notes().iter().for_each(|note| std::fs::remove_file(note).unwrap());
    let program = || {
        let program = Program::new(&world).env("PALISADE_CACHE", world.outer().join("cache"));
        program.args(["--no-builtin", "--plugins"]).args([world.plugins()])
    };
    assert_eq!(program().args(["call", "good", "{}"]).run().exits_with(0).stdout, "done");
    let reply =
        json!({"content": [{"type": "tool_use", "id": "tu_1", "name": "good", "input": {}}]});
    let dispatch = program().args(["dispatch", "--from", "anthropic"]).stdin(reply.to_string());
    assert!(dispatch.run().exits_with(0).stdout.contains("done"));
    let listed = program().args(["list", "--now", "--json"]).run().exits_with(0).json();
    assert_eq!(
        (&listed["tools"][0]["name"], &listed["compiling"][0]["plugin"]),
        (&json!("good"), &json!("a-slow"))
    );
    assert!(program().args(["list", "--now"]).run().exits_with(0).stdout.contains("compiling"));
    assert_eq!(notes().len(), 0, "a compilation was begun");
}

#[test]
fn compiling_shipped_tool_keeps_its_name() {
    let world = World::new();
    world.install("a-thief", &plugin("search_files"));
    let (builder, release, _told) =
        holding_up(builder(&world).shipped(Shipped::Included), "search");
    let host = builder.build_in_background().unwrap();
    block_on(host.wait_for_tool("calculate"));
    drop(release);
    block_on(host.wait_until_loaded());
    assert_eq!(host.registry().get("search_files").unwrap().origin().plugin(), Some("search"));
    says(&host.rejected()[0].reason, &["`search_files` already exists", "search_files_2"]);
    let first = host.registry().tool_names().into_iter().next();
    assert_eq!(
        first.as_deref(),
        Some("calculate"),
        "the order does not depend on what is compiled first"
    );
}

#[test]
fn dropped_host_cancels_compilation() {
    let world = World::new();
    world.install("bomb", &costly_to_compile("bomb"));
    let limits = CompileLimits { memory: CompileLimits::MEMORY + 77, ..CompileLimits::default() };
    let mark = limits.memory.to_string();
    let child = Compiler::Child(ChildCompiler::palisade(executable()).limits(limits));
    let host = builder(&world).compiler(child).build_in_background().unwrap();
    let until = |expected: bool| {
        let begun = Instant::now();
        while runs(&mark) != expected {
            assert!(begun.elapsed() < Duration::from_secs(30), "a child that runs: {}", !expected);
            std::thread::yield_now();
        }
    };
    until(true);
    drop(host);
    until(false);
}

#[test]
fn call_compiles_only_its_shipped_plugin() {
    let world = World::new();
    let call = |words: &[&str]| {
        Program::new(&world)
            .args(words.to_vec())
            .env("PALISADE_CACHE", world.outer().join("cache"))
            .run()
    };
    let ran = call(&["call", "calculate", r#"{"expression": "6 * 7"}"#]).exits_with(0);
    assert_eq!((ran.stdout.as_str(), cached(&world)), ("42", 1));
    // An unknown tool compiles every shipped plugin, since the nearest name is searched among all
    // tools.
    let ran = call(&["call", "calculat", "{}"]).exits_with(3);
    ran.stderr_contains(&["did you mean `calculate`"]);
    assert_eq!(cached(&world), 3, "the nearest name requires all names");
}

#[test]
fn call_of_a_plugin_file_waits_for_no_other_file() {
    let world = World::new();
    plugins(&world, &["a", "b"]);
    world.install("c", &costly_to_compile("c"));
    let (builder, release, told) = holding_up(builder(&world), "c");
    let host = builder
        .compiler(Compiler::Child(ChildCompiler::palisade(executable())))
        .build_for("b")
        .unwrap();
    assert!(block_on(host.call("b", "{}", json!({}))).is_success());
    assert!(host.registry().has("b") && !host.registry().has("c"));
    assert!(!host.progress().is_complete() && !told.try_iter().any(|done| done == "c"));
    drop(release);
}

#[test]
fn call_does_not_wait_for_a_previously_failed_file() {
    let world = World::new();
    world.install("good", &Wat::new(Told { class: 2, ..Told::new("good") }).build());
    drop(builder(&world).build().unwrap());
    world.install("a-slow", &costly_to_compile("slow"));
    let failing = Compiler::Child(ChildCompiler::palisade("/bin/false"));
    drop(builder(&world).compiler(failing).build().unwrap());
    let program = Program::new(&world).env("PALISADE_CACHE", world.outer().join("cache"));
    let program = program.args(["--no-builtin", "--plugins"]).args([world.plugins()]);
    let ran = program.args(["call", "good", "--allow", "write"]).run().exits_with(0);
    ran.stderr_contains(&[
        "a-slow.wasm stands before that, is not compiled, and may take the name",
    ]);
}

/// Approves every plugin except for the file of this name.
struct AllBut(&'static str);

impl Approvals for AllBut {
    fn of(&self, _: &Plugin) -> PluginApproval {
        PluginApproval::Approved
    }

    fn refusal_of_bytes(&self, bytes: &PluginBytes<'_>) -> Option<NotApproved> {
        (bytes.name == self.0).then(|| NotApproved::new("it is new", "approve it"))
    }
}

#[test]
fn call_does_not_wait_for_a_file_without_approval() {
    let world = World::new();
    world.install("good", &Wat::new(Told { class: 2, ..Told::new("good") }).build());
    drop(builder(&world).build().unwrap());
    let endless = Wat::new(Told::new("endless")).definitions("(loop (br 0)) unreachable");
    world.install("a-endless", &endless.build());
    let waiting = |approvals: AllBut| {
        let host = builder(&world).approvals(Arc::new(approvals)).build_for("good").unwrap();
        assert!(host.registry().has("good"));
        host.compiling().into_iter().map(|compiling| compiling.plugin).collect::<Vec<_>>()
    };
    assert_eq!(waiting(AllBut("a-endless")), ["a-endless"]);
    assert!(waiting(AllBut("another")).is_empty(), "an approved file could take the name");
}

#[test]
fn host_built_for_two_tools_has_both() {
    let world = World::new();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let names: Vec<String> = (0..2 * cores + 2).map(|number| format!("t{number:04}")).collect();
    let tools: Vec<&str> = names.iter().map(String::as_str).collect();
    plugins(&world, &tools);
    let (first, last) = (tools[0], tools[tools.len() - 1]);
    // The other plugins wait here until the first one is done, so the last one is not begun by
    // then.
    let (is_done, done) = (Mutex::new(false), Condvar::new());
    let (expected, released) = (first.to_owned(), Arc::new((is_done, done)));
    let observer = move |step: LoadStep<'_>| {
        let LoadStep::Done(name) = step else { return };
        let mut is_done = released.0.lock().unwrap();
        if name == expected {
            *is_done = true;
            released.1.notify_all();
        }
        drop(released.1.wait_while(is_done, |is_done| !*is_done).unwrap());
    };
    let host =
        builder(&world).observe_loading(Arc::new(observer)).build_for_all(&[first, last]).unwrap();
    for tool in [first, last] {
        assert!(block_on(host.call(tool, "{}", json!({}))).is_success(), "{tool}");
    }
}

#[test]
fn omitted_plugins_are_not_awaited() {
    let world = World::new();
    plugins(&world, &["a", "b", "c", "d"]);
    let host = builder(&world).build_for("a").unwrap();
    block_on(async {
        host.wait_until_loaded().await;
        host.wait_for_tool("nobody has this").await;
    });
    assert!(host.registry().has("a"));
}

#[test]
fn file_other_than_a_plugin_is_reported_without_compiling() {
    let world = World::new();
    world.install("a", &plugin("a"));
    drop(builder(&world).build().unwrap());
    world.install("b-junk", &[0; 64]);
    world.install("c-new", &plugin("c"));
    let host = builder(&world).build_for("a").unwrap();
    says(&host.rejected()[0].reason, &["nothing but zeros"]);
    assert_eq!((host.progress().decided, host.progress().of), (2, 3));
}
