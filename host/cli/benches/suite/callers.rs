//! Measures throughput and latency of one caller and of concurrent callers, with a worker thread
//! per core.

use crate::floor::Floor;
use crate::report::{self, Series, shown};
use crate::road::Road;
use crate::world::World;
use palisade::json;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Calls per turn, shared among the callers.
const CALLS: usize = 4_000;
/// Turns of each kind, one after the other.
const TURNS: usize = 4;

pub(crate) fn run(world: &World) {
    let bytes =
        std::fs::read(palisade_tests::guest::BENCH_CALLS.file()).expect("the benchmark's guest");
    let floor = Arc::new(Floor::new(world).with(&["echo", "read"], &bytes));
    let road = Arc::new(Road::new(world));
    for (name, tool, input) in [
        ("echo", "echo", json!({"text": "hello"})),
        ("read 1 KiB", "read", json!({"path": "small.txt"})),
    ] {
        let input: Arc<str> = input.to_string().into();
        head(name);
        for callers in [1, 2, 8, 64] {
            let by_hand = {
                let (floor, input) = (floor.clone(), input.clone());
                move || {
                    let (floor, input) = (floor.clone(), input.clone());
                    async move { _ = floor.call(tool, &input).await }
                }
            };
            let through = {
                let (road, input) = (road.clone(), input.clone());
                move || {
                    let (road, input) = (road.clone(), input.clone());
                    async move { _ = road.call(tool, &input).await }
                }
            };
            let (mut by_hands, mut throughs) = (Vec::new(), Vec::new());
            for _ in 0..TURNS {
                by_hands.push(together(callers, by_hand.clone()));
                throughs.push(together(callers, through.clone()));
            }
            let (by_hand, through) = (Taken::sum(by_hands), Taken::sum(throughs));
            line(callers, &by_hand, &through);
        }
    }
}

fn head(name: &str) {
    let columns =
        ["calls/s by hand", "palisade", "ratio", "p50", "p99", "p50 queued", "p99 queued"];
    report::row(&format!("\n{name}"), &columns.map(str::to_owned));
}

fn line(callers: usize, by_hand: &Taken, through: &Taken) {
    let cells = [
        format!("{:.0}", by_hand.rate),
        format!("{:.0}", through.rate),
        format!("× {:.2}", through.rate / by_hand.rate),
        shown(through.calls.at(500)),
        shown(through.calls.at(990)),
        shown(through.queued.at(500)),
        shown(through.queued.at(990)),
    ];
    report::row(&format!("  {callers} caller{}", if callers == 1 { "" } else { "s" }), &cells);
}

/// The figures of one number of callers.
struct Taken {
    /// Calls per second of all callers together.
    rate: f64,
    /// The durations of the calls.
    calls: Series,
    /// The durations of the calls, including the wait for a worker thread.
    queued: Series,
}

/// The durations of one turn, without and with the wait for a thread, and the total time.
type Turn = (Vec<(Duration, Duration)>, Duration);

impl Taken {
    fn sum(turns: Vec<Turn>) -> Self {
        let whole: Duration = turns.iter().map(|(_, whole)| *whole).sum();
        let times: Vec<_> = turns.into_iter().flat_map(|(times, _)| times).collect();
        Self {
            rate: times.len() as f64 / whole.as_secs_f64(),
            calls: Series::of("calls", times.iter().map(|(call, _)| *call).collect()),
            queued: Series::of("queued", times.iter().map(|(_, all)| *all).collect()),
        }
    }
}

/// Runs concurrent callers. Each caller yields before each call: otherwise it would occupy its
/// worker thread, and the wait of other callers would not be measured.
fn together<F: Future<Output = ()> + Send + 'static>(
    callers: usize,
    call: impl Fn() -> F + Clone + Send + 'static,
) -> Turn {
    let runtime = crate::on_every_core();
    let start = Instant::now();
    let tasks: Vec<_> =
        (0..callers).map(|_| runtime.spawn(one(CALLS / callers, call.clone()))).collect();
    let times =
        tasks.into_iter().flat_map(|task| runtime.block_on(task).expect("a caller")).collect();
    (times, start.elapsed())
}

async fn one<F: Future<Output = ()>>(
    calls: usize,
    call: impl Fn() -> F,
) -> Vec<(Duration, Duration)> {
    let mut times = Vec::with_capacity(calls);
    for _ in 0..calls {
        let wanted = Instant::now();
        tokio::task::yield_now().await;
        let begun = Instant::now();
        call().await;
        times.push((begun.elapsed(), wanted.elapsed()));
    }
    times
}
