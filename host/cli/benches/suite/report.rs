//! Prints percentiles, ratios and a description of the machine.
#![allow(clippy::print_stdout, reason = "a benchmark prints")]

use std::future::Future;
use std::time::{Duration, Instant};

/// The durations of one kind of call.
pub(crate) struct Series {
    name: &'static str,
    times: Vec<Duration>,
}

impl Series {
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name, times: Vec::new() }
    }

    pub(crate) fn of(name: &'static str, times: Vec<Duration>) -> Self {
        Self { name, times }
    }

    /// Times one call; calls that do not count only warm up.
    pub(crate) async fn time<T>(&mut self, counts: bool, call: impl Future<Output = T>) {
        let start = Instant::now();
        let value = call.await;
        let elapsed = start.elapsed();
        std::hint::black_box(value);
        if counts {
            self.times.push(elapsed);
        }
    }

    pub(crate) fn run<T>(&mut self, call: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let value = call();
        self.times.push(start.elapsed());
        value
    }

    /// Discards the durations so far.
    pub(crate) fn forget(&mut self) {
        self.times.clear();
    }

    /// Returns the duration at a percentile, given in thousandths.
    pub(crate) fn at(&self, permille: usize) -> Duration {
        let mut sorted = self.times.clone();
        sorted.sort();
        sorted.get(sorted.len().saturating_sub(1) * permille / 1000).copied().unwrap_or_default()
    }
}

/// Prints a description of the machine.
pub(crate) fn machine() {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let model = read("/proc/cpuinfo");
    let model = model
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .unwrap_or("an unknown processor");
    let kernel = read("/proc/sys/kernel/osrelease");
    let load = read("/proc/loadavg");
    let load = load.split_whitespace().next().unwrap_or("unknown").to_owned();
    let backtrace = if std::env::var_os("RUST_BACKTRACE").is_some() { "set" } else { "not set" };
    println!(
        "palisade {} on {cores} cores of {}",
        env!("CARGO_PKG_VERSION"),
        model.trim_matches([' ', '\t', ':'])
    );
    println!(
        "{} {}, load {load} before the run, RUST_BACKTRACE {backtrace}",
        std::env::consts::OS,
        kernel.trim()
    );
}

/// Prints a group; the ratios are relative to its first member.
pub(crate) fn group(name: &str, members: &[Series]) {
    println!(
        "\n{name:<34} {:>10} {:>10} {:>10} {:>10}  {:>9}",
        "p50", "p90", "p99", "p99.9", "ratio"
    );
    let base = members.first().map_or(1.0, |first| first.at(500).as_secs_f64());
    for member in members {
        let [p50, p90, p99, worst] =
            [500, 900, 990, 999].map(|permille| shown(member.at(permille)));
        let ratio = member.at(500).as_secs_f64() / base;
        println!("  {:<32} {p50:>10} {p90:>10} {p99:>10} {worst:>10}  × {ratio:>7.2}", member.name);
    }
}

/// Prints the reason why a measurement was skipped.
pub(crate) fn skipped(what: &str, why: &str) {
    println!("\n{what}\n  skipped: {}", why.trim());
}

/// Prints a row of a table whose first column is a name.
pub(crate) fn row(name: &str, cells: &[String]) {
    let cells: String = cells.iter().map(|cell| format!(" {cell:>14}")).collect();
    println!("{name:<34}{cells}");
}

/// Formats a duration with three digits and its unit.
pub(crate) fn shown(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    let (value, unit) = match seconds {
        s if s < 1e-3 => (s * 1e6, "µs"),
        s if s < 1.0 => (s * 1e3, "ms"),
        s => (s, "s"),
    };
    let digits = usize::from(value < 100.0) + usize::from(value < 10.0);
    format!("{value:.digits$} {unit}")
}

/// Formats a number of bytes with its unit.
pub(crate) fn size(bytes: f64) -> String {
    if bytes < 1024.0 * 1024.0 {
        format!("{:.0} KiB", bytes / 1024.0)
    } else {
        format!("{:.1} MiB", bytes / 1024.0 / 1024.0)
    }
}
