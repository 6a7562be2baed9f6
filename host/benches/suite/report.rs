//! Medians, percentiles and ratios, printed.

use std::future::Future;
use std::time::{Duration, Instant};

/// The times of one kind of call.
pub(crate) struct Series {
    name: &'static str,
    times: Vec<Duration>,
}

impl Series {
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name, times: Vec::new() }
    }

    /// Times one call; those of the first round only warm up.
    pub(crate) async fn time<T>(&mut self, counts: bool, call: impl Future<Output = T>) {
        let start = Instant::now();
        let value = call.await;
        let elapsed = start.elapsed();
        std::hint::black_box(value);
        if counts {
            self.times.push(elapsed);
        }
    }

    pub(crate) fn run(&mut self, call: impl FnOnce()) {
        let start = Instant::now();
        call();
        self.times.push(start.elapsed());
    }

    fn at(&self, permille: usize) -> Duration {
        let mut sorted = self.times.clone();
        sorted.sort();
        sorted[(sorted.len() - 1) * permille / 1000]
    }
}

/// What the figures were taken on.
#[allow(clippy::print_stdout, reason = "a benchmark prints")]
pub(crate) fn machine() {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let backtrace = if std::env::var_os("RUST_BACKTRACE").is_some() { "set" } else { "not set" };
    println!("{cores} cores, kernel {}, RUST_BACKTRACE {backtrace}\n", kernel.trim());
}

/// Prints a group; ratios are to its first member.
#[allow(clippy::print_stdout, reason = "a benchmark prints")]
pub(crate) fn group(name: &str, members: &[Series]) {
    println!("{name}");
    let base = members.first().map_or(1.0, |first| first.at(500).as_secs_f64());
    for member in members {
        let [p50, p90, p99] = [500, 900, 990].map(|permille| member.at(permille));
        println!(
            "  {:24} p50 {p50:>10.2?}  p90 {p90:>10.2?}  p99 {p99:>10.2?}  × {:.2}",
            member.name,
            p50.as_secs_f64() / base
        );
    }
    println!();
}

/// Calls per second of so many callers.
pub(crate) async fn rate<F: Future<Output = ()> + Send + 'static>(
    callers: usize,
    calls: usize,
    call: impl Fn() -> F + Clone + Send + 'static,
) -> f64 {
    let start = Instant::now();
    let tasks: Vec<_> = (0..callers)
        .map(|_| {
            let call = call.clone();
            tokio::spawn(async move {
                for _ in 0..calls {
                    call().await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("a caller");
    }
    (callers * calls) as f64 / start.elapsed().as_secs_f64()
}

/// Prints the throughput of so many callers.
#[allow(clippy::print_stdout, reason = "a benchmark prints")]
pub(crate) fn rates(callers: usize, floor: f64, road: f64) {
    println!("read 700 B, {callers} caller(s): hand-written {floor:.0}/s, palisade {road:.0}/s, × {:.2}", road / floor);
}
