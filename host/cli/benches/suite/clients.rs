//! Measures the calls of one client of a running server beside another client at full load.

use crate::fair::{MOST_RISE, SETTLING, computing};
use crate::report::{self, Series};
use crate::server::connection::Address;
use crate::server::served::Served;
use crate::world::World;
use palisade::{CancellationToken, json};
use palisade_tests::guest::{BENCH_CALLS, LIMITS_MEMORY};
use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::time::Instant;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

/// Timed calls per scenario.
const CALLS: usize = if cfg!(debug_assertions) { 50 } else { 3_000 };

/// The load of the other client: the number of its calls in flight, and the call that it repeats,
/// each on a connection of its own.
struct Load {
    name: &'static str,
    calls: usize,
    tool: &'static str,
    input: &'static str,
}

/// The loads. A server admits 256 connections of one machine.
const LOADS: [Load; 5] = [
    Load { name: "64 that compute", calls: 64, tool: "spin", input: "{}" },
    Load { name: "32 that fill memory", calls: 32, tool: "take", input: r#"{"mib": 100}"# },
    Load { name: "64 that fill without end", calls: 64, tool: "fill", input: "{}" },
    Load { name: "200 that call an echo", calls: 200, tool: "echo", input: r#"{"text": "hello"}"# },
    Load {
        name: "200 that read a file of 1 MiB",
        calls: 200,
        tool: "read_file",
        input: r#"{"path": "large.txt"}"#,
    },
];

/// Measures reads of a small file, alone and beside each load.
pub(crate) fn run(world: &World) {
    let plugins = plugins(world);
    let more = ["--timeout", "1s", "--plugins"].map(OsStr::new);
    let more = more.into_iter().chain([plugins.as_os_str()]).collect::<Vec<_>>();
    let server = match Served::start(world, &more) {
        Ok(server) => server,
        Err(why) => return report::skipped("clients", &why),
    };
    let (own, others) = (crate::on_one_thread(), crate::on_every_core());
    let address = server.clients();
    own.block_on(open_sessions(&address));
    let timed = |name| own.block_on(reads(&address, name));
    drop(timed("to warm up"));
    let alone = timed("alone");
    let beside = LOADS.iter().map(|load| {
        let stop = CancellationToken::new();
        let callers = begin(&others, &address, load, &stop);
        std::thread::sleep(SETTLING);
        let series = timed(load.name);
        stop.cancel();
        callers.into_iter().for_each(|caller| others.block_on(caller).expect("a caller"));
        series
    });
    let series: Vec<Series> = std::iter::once(alone).chain(beside).collect();
    report::group("read_file of one client", &series);
    let [alone, beside @ ..] = series.as_slice() else { return };
    let rise = |series: &Series| series.at(990).as_secs_f64() / alone.at(990).as_secs_f64();
    let rises: Vec<String> = beside.iter().map(|series| format!("× {:.1}", rise(series))).collect();
    report::row("  p99 rises by", &rises);
    let highest = beside.iter().map(rise).fold(0.0, f64::max);
    assert!(highest <= MOST_RISE, "p99 rises {highest:.1}-fold");
}

/// Makes a directory with the plugins of the other client.
fn plugins(world: &World) -> PathBuf {
    let directory = world.cache().with_file_name("clients");
    fs::create_dir_all(&directory).expect("a directory");
    let guests = [BENCH_CALLS, LIMITS_MEMORY].map(palisade_tests::Guest::file);
    for file in computing(world).into_iter().chain(guests) {
        let name = file.file_name().expect("the name of a plugin");
        fs::copy(&file, directory.join(name)).expect("a plugin");
    }
    directory
}

/// Opens a session for each client.
async fn open_sessions(address: &Address) {
    let mut connection = address.connect().await;
    for id in ["own", "other"] {
        connection.post("/sessions", &json!({"id": id}).to_string()).await;
    }
}

/// Times reads, each of which has to succeed.
async fn reads(address: &Address, name: &'static str) -> Series {
    let mut connection = address.connect().await;
    let body = json!({"tool": "read_file", "input": {"path": "small.txt"}}).to_string();
    let mut times = Vec::with_capacity(CALLS);
    for _ in 0..CALLS {
        let begun = Instant::now();
        let result = connection.post("/sessions/own/calls", &body).await;
        times.push(begun.elapsed());
        assert!(result.contains(r#""success":true"#), "{name}: {result}");
    }
    Series::of(name, times)
}

/// Begins the load of the other client. Its own calls may fail: they reach its limits.
fn begin(
    runtime: &Runtime,
    address: &Address,
    load: &Load,
    stop: &CancellationToken,
) -> Vec<JoinHandle<()>> {
    let body = format!(r#"{{"tool": "{}", "input": {}}}"#, load.tool, load.input);
    let caller = |_| {
        let (address, stop, body) = (address.clone(), stop.clone(), body.clone());
        runtime.spawn(async move {
            let mut connection = address.connect().await;
            while !stop.is_cancelled() {
                connection.post("/sessions/other/calls", &body).await;
            }
        })
    };
    (0..load.calls).map(caller).collect()
}
