//! Measures calls beside a hostile plugin at full load, and the lateness of such a plugin's calls.

use crate::report::{self, Series, shown};
use crate::road::Road;
use crate::world::World;
use palisade::{Call, CallMode, CancellationToken, HostBuilder, json, plugins::Shipped};
use palisade_tests::guest::{BENCH_CALLS, CANCEL_SLEEP, LIMITS_HANDLES, LIMITS_MEMORY};
use palisade_tests::wat::Told;
use palisade_tests::{Guest, Wat};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

/// Timed calls per scenario.
const CALLS: usize = 3_000;
/// The time for a plugin to reach its full load.
pub(crate) const SETTLING: Duration = Duration::from_millis(500);
/// The factor by which p99 of a read may rise beside a hostile plugin.
pub(crate) const MOST_RISE: f64 = 5.0;
/// The timeout of a call that computes forever.
const TIME: Duration = Duration::from_secs(1);

/// A hostile load: the number of callers, and the call that each of them repeats.
struct Hostile {
    name: &'static str,
    callers: usize,
    tool: &'static str,
    input: &'static str,
}

const HOSTILE: [Hostile; 6] = [
    Hostile { name: "256 that sleep", callers: 256, tool: "sleep", input: "{}" },
    Hostile { name: "64 that compute", callers: 64, tool: "spin", input: "{}" },
    Hostile { name: "32 that fill memory", callers: 32, tool: "take", input: r#"{"mib": 100}"# },
    Hostile { name: "64 that fill without end", callers: 64, tool: "fill", input: "{}" },
    Hostile {
        name: "200 that hold files",
        callers: 200,
        tool: "hold_for_ever",
        input: r#"{"count": 200}"#,
    },
    Hostile {
        name: "512 that call an echo",
        callers: 512,
        tool: "echo",
        input: r#"{"text": "hello"}"#,
    },
];

/// Measures reads of a small file, alone and beside each kind of hostile plugin.
pub(crate) fn run(world: &World) {
    std::fs::write(world.workspace().join("file.txt"), "content").expect("a file");
    let mut too_high: Vec<String> = Vec::new();
    for mode in [CallMode::InPlace, CallMode::OWN_THREADS] {
        let host = world.host().shipped(Shipped::Included).call_mode(mode);
        let host = computing(world).into_iter().fold(host, HostBuilder::plugin_file);
        let guests: [Guest; 4] = [BENCH_CALLS, CANCEL_SLEEP, LIMITS_HANDLES, LIMITS_MEMORY];
        let road = Arc::new(Road::with(
            guests.iter().fold(host, |host, guest| host.plugin_file(guest.file())),
        ));
        let runtime = on_two_threads();
        let timed = |name| {
            let road = road.clone();
            runtime
                .block_on(runtime.spawn(async move { reads(&road, name).await }))
                .expect("a caller")
        };
        drop(timed("to warm up"));
        let alone = timed("alone");
        let beside = HOSTILE.iter().map(|hostile| {
            let stop = CancellationToken::new();
            let callers = begin(&runtime, &road, hostile, &stop);
            std::thread::sleep(SETTLING);
            let series = timed(hostile.name);
            stop.cancel();
            callers
                .into_iter()
                .for_each(|caller| runtime.block_on(caller).expect("a hostile caller"));
            series
        });
        let series: Vec<Series> = std::iter::once(alone).chain(beside).collect();
        report::group(&format!("read_file, {}", called(mode)), &series);
        let [alone, beside @ ..] = series.as_slice() else { continue };
        let rise = |series: &Series| series.at(990).as_secs_f64() / alone.at(990).as_secs_f64();
        let rises: Vec<String> =
            beside.iter().map(|series| format!("× {:.1}", rise(series))).collect();
        report::row("  p99 rises by", &rises);
        let rise_beside = HOSTILE.iter().zip(beside);
        too_high.extend(rise_beside.filter(|(_, series)| rise(series) > MOST_RISE).map(
            |(hostile, series)| {
                format!("{:.1}-fold beside {}, {}", rise(series), hostile.name, called(mode))
            },
        ));
    }
    late(world);
    // Last, so that a rise does not hide the lateness of calls.
    assert!(too_high.is_empty(), "p99 rises {}", too_high.join("; "));
}

/// Measures the lateness of calls that time out or are cancelled among other computing calls.
fn late(world: &World) {
    report::row("\nlateness", &["p50", "longest", "cancelled, p50", "longest"].map(str::to_owned));
    for tool in ["spin", "fill"] {
        for (mode, calls) in [CallMode::InPlace, CallMode::OWN_THREADS]
            .into_iter()
            .flat_map(|mode| [(mode, 64), (mode, 250)])
        {
            let host = world.host().call_mode(mode);
            let host = computing(world).into_iter().fold(host, HostBuilder::plugin_file);
            let road = Arc::new(Road::with(host));
            let runtime = on_two_threads();
            let overdue = Series::of("overdue", runtime.block_on(overdue(&road, tool, calls)));
            let ended = Series::of("cancelled", runtime.block_on(cancelled(&road, tool, calls)));
            let cells = [&overdue, &ended]
                .map(|series| [shown(series.at(500)), shown(series.at(1000))])
                .concat();
            report::row(&format!("  {calls} of `{tool}`, {}", called(mode)), &cells);
        }
    }
}

/// Returns the time by which each call exceeds its timeout.
async fn overdue(road: &Arc<Road>, tool: &'static str, calls: usize) -> Vec<Duration> {
    let none = CancellationToken::new();
    let tasks: Vec<_> = (0..calls).map(|_| endless(road, tool, TIME, &none)).collect();
    let mut late = Vec::new();
    for task in tasks {
        let result = task.await.expect("a call");
        late.push(result.duration().saturating_sub(TIME));
    }
    late
}

/// Returns the time from cancellation to end of the first ten calls, one after the other.
async fn cancelled(road: &Arc<Road>, tool: &'static str, calls: usize) -> Vec<Duration> {
    let tokens: Vec<_> = (0..calls).map(|_| CancellationToken::new()).collect();
    let tasks: Vec<_> = tokens.iter().map(|token| endless(road, tool, TIME * 60, token)).collect();
    tokio::time::sleep(TIME).await;
    let mut late = Vec::new();
    for (number, (token, task)) in tokens.iter().zip(tasks).enumerate() {
        let begun = Instant::now();
        token.cancel();
        if number < 10 {
            task.await.expect("a call");
            late.push(begun.elapsed());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    late
}

fn endless(
    road: &Arc<Road>,
    tool: &'static str,
    time: Duration,
    token: &CancellationToken,
) -> JoinHandle<palisade::ToolResult> {
    let (road, call) =
        (road.clone(), Call::new(tool, "{}").with_timeout(time).with_cancellation(token.clone()));
    tokio::spawn(async move { road.host.dispatch(road.host.session(), call).await })
}

/// Writes plugins that compute forever: in a loop, and in instructions of 100 MiB each, or of 19 MiB
/// if no more memory is free. Their class may read files, so that the call mode applies.
pub(crate) fn computing(world: &World) -> [PathBuf; 2] {
    let fill = "(if (i32.eq (memory.grow (i32.const 1600)) (i32.const -1))
          (then (drop (memory.grow (i32.const 300)))))
        (loop
          (memory.fill (i32.const 65536) (i32.const 7)
            (i32.sub (i32.shl (memory.size) (i32.const 16)) (i32.const 65536)))
          (br 0))
        unreachable";
    [("spin", "(loop (br 0)) unreachable"), ("fill", fill)].map(|(name, code)| {
        let told = Told { class: 1, ..Told::new(name) };
        let file = world.cache().with_file_name(format!("{name}.wasm"));
        std::fs::write(&file, Wat::new(told).execute(code).build()).expect("a plugin");
        file
    })
}

fn begin(
    runtime: &Runtime,
    road: &Arc<Road>,
    hostile: &Hostile,
    stop: &CancellationToken,
) -> Vec<JoinHandle<()>> {
    let caller = |_| {
        let (road, stop, tool, input) = (road.clone(), stop.clone(), hostile.tool, hostile.input);
        runtime.spawn(async move {
            while !stop.is_cancelled() {
                let call = Call::new(tool, input).with_cancellation(stop.clone());
                drop(road.host.dispatch(road.host.session(), call).await);
                tokio::task::yield_now().await;
            }
        })
    };
    (0..hostile.callers).map(caller).collect()
}

/// Times reads. Yields before each call, so that other tasks get the thread.
async fn reads(road: &Road, name: &'static str) -> Series {
    let (mut series, input) = (Series::new(name), json!({"path": "small.txt"}).to_string());
    for _ in 0..CALLS {
        tokio::task::yield_now().await;
        series.time(true, road.call("read_file", &input)).await;
    }
    series
}

fn called(mode: CallMode) -> &'static str {
    if mode == CallMode::InPlace { "in place" } else { "own threads" }
}

fn on_two_threads() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
}
