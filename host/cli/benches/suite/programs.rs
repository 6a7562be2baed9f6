//! Measures programs that call tools: a nested call against the same call alone, an empty program
//! against a spawned interpreter, and programs at the same time.

use crate::report::{self, Series, shown};
use crate::spawned;
use crate::world::World;
use palisade::tool::Digest;
use palisade::{CacheMode, Call, Host, json};
use palisade_net::{Grants, Network, PluginGrants};
use palisade_tests::tasks::{TASKS, repository};
use std::sync::Arc;
use std::time::Instant;

/// Calls of each kind.
const CALLS: usize = 300;
/// Processes of each kind.
const SPAWNS: usize = 20;
/// Runs of all tasks of each kind.
const ROUNDS_OF_TASKS: usize = 50;
/// Programs that run at the same time, together.
const PROGRAMS: usize = 400;

const EMPTY: &str = "return 1";
const ONE: &str = "return tools.read_file({path: 'small.txt'}).length";
const HUNDRED: &str = "let n = 0; for (let i = 0; i < 100; i++) n += tools.read_file({path: 'small.txt'}).length; return n";
const HUNDRED_AND_ONE: &str = "let n = 0; for (let i = 0; i < 101; i++) n += tools.read_file({path: 'small.txt'}).length; return n";

pub(crate) fn run(world: &World) {
    let host = Arc::new(host(world));
    let runtime = crate::on_one_thread();
    let mut alone = Series::new("read_file alone");
    let mut programs = [
        ("an empty program", EMPTY),
        ("a program with 1 read", ONE),
        ("a program with 100 reads", HUNDRED),
        ("a program with 101 reads", HUNDRED_AND_ONE),
    ]
    .map(|(name, code)| (Series::new(name), code));
    runtime.block_on(async {
        for round in 0..CALLS + 20 {
            let counts = round >= 20;
            for _ in 0..10 {
                alone.time(counts, call(&host, "read_file", json!({"path": "small.txt"}))).await;
            }
            for (series, code) in &mut programs {
                series.time(counts, call(&host, "run_js", json!({"code": code}))).await;
            }
        }
    });
    let [empty, one, hundred, hundred_and_one] = programs.map(|(series, _)| series);
    let nested = (hundred_and_one.at(500) - one.at(500)) / 100;
    let ratio = nested.as_secs_f64() / alone.at(500).as_secs_f64();
    report::group("programs", &[alone, one, hundred]);
    report::row("a nested read", &[shown(nested), format!("× {ratio:.2} of one alone")]);
    report::group(
        "an empty program",
        &[empty, process("node", "-e", "0"), process("python3", "-c", "0")],
    );
    let [singly, by_program] = tasks(world);
    report::row("\nten tasks", &["median".to_owned()]);
    report::row("  by single calls", &[shown(singly.at(500))]);
    report::row("  by programs", &[shown(by_program.at(500))]);
    report::row("\nprograms at once, with 10 reads", &["programs/s".to_owned()]);
    for callers in [1, 2, 8] {
        report::row(&format!("  {callers}"), &[format!("{:.0}", together(&host, callers))]);
    }
}

/// Measures the ten tasks of `docs/code-mode.md`, without the model's time: all of them by single
/// calls, and by programs.
fn tasks(world: &World) -> [Series; 2] {
    for (path, text) in repository() {
        let file = world.workspace().join(path);
        std::fs::create_dir_all(file.parent().expect("it is in a folder")).expect("a folder");
        std::fs::write(file, text).expect("a file");
    }
    let host = host(world);
    let runtime = crate::on_one_thread();
    let (mut singly, mut by_program) = (Series::new("calls"), Series::new("programs"));
    runtime.block_on(async {
        for round in 0..ROUNDS_OF_TASKS + 2 {
            let counts = round >= 2;
            let calls = async {
                for (tool, input) in TASKS.iter().flat_map(|task| (task.calls)()) {
                    call(&host, tool, input).await;
                }
            };
            singly.time(counts, calls).await;
            let programs = async {
                for task in &TASKS {
                    call(&host, "run_js", json!({"code": task.program})).await;
                }
            };
            by_program.time(counts, programs).await;
        }
    });
    [singly, by_program]
}

fn host(world: &World) -> Host {
    let code = palisade_plugins::all().iter().find(|plugin| plugin.name == "code");
    let digest = Digest::from_bytes(code.expect("the plugin of programs").digest);
    let granted = PluginGrants::default().with_tools(vec!["*".parse().expect("a pattern")]);
    let grants = Grants::new(Network::default()).plugin(digest, granted);
    Host::builder()
        .workspace(world.workspace())
        .cache(CacheMode::Directory(world.cache()))
        .powers(Arc::new(grants))
        .build()
        .expect("a host")
}

async fn call(host: &Host, tool: &str, input: serde_json::Value) {
    let result = host.dispatch(host.session(), Call::new(tool, input)).await;
    assert!(result.error().is_none(), "{result}");
}

/// Spawns an interpreter that does nothing.
fn process(program: &'static str, option: &str, code: &str) -> Series {
    let mut series = Series::new(program);
    for _ in 0..SPAWNS * usize::from(spawned::is_there(program)) {
        series.run(|| {
            let ended = std::process::Command::new(program).args([option, code]).status();
            assert!(ended.is_ok_and(|status| status.success()), "{program}");
        });
    }
    series
}

/// Returns the programs per second of this many callers.
fn together(host: &Arc<Host>, callers: usize) -> f64 {
    let runtime = crate::on_every_core();
    let code = HUNDRED.replace("100", "10");
    let start = Instant::now();
    let tasks: Vec<_> = (0..callers)
        .map(|_| {
            let (host, code) = (host.clone(), code.clone());
            runtime.spawn(async move {
                for _ in 0..PROGRAMS / callers {
                    call(&host, "run_js", json!({"code": code})).await;
                }
            })
        })
        .collect();
    tasks.into_iter().for_each(|task| runtime.block_on(task).expect("a caller"));
    PROGRAMS as f64 / start.elapsed().as_secs_f64()
}
