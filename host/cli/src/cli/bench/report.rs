//! Renders the result of a benchmark as text and as JSON.

use super::load::Load;
use super::measure::{Series, Taken};
use crate::cli::output::{self, Cell};
use crate::cli::style;
use crate::cli::wrap::{columns, width};
use palisade::Host;
use palisade::sandbox::Allocation;
use palisade::tool::text::elided;
use serde_json::{Value, json};
use std::time::Duration;

/// The reported percentiles, in thousandths.
const PERCENTILES: [(&str, usize); 4] = [("p50", 500), ("p90", 900), ("p99", 990), ("p99.9", 999)];

pub(super) struct Report<'a> {
    pub(super) tool: &'a str,
    pub(super) taken: &'a Taken,
    pub(super) spawned: Option<&'a (&'static str, Series)>,
    pub(super) load: Option<&'a Load>,
    pub(super) host: &'a Host,
}

impl Report<'_> {
    pub(super) fn to_json(&self) -> Value {
        let spawned = self.spawned.map(|(program, series)| {
            let mut value = series_json(series);
            value["program"] = json!(program);
            value
        });
        let loading = self.load.map(|load| {
            json!({"plugin": load.plugin, "bytes": load.bytes, "compiled_ms": ms(load.compiled), "cached_ms": ms(load.cached)})
        });
        json!({
            "tool": self.tool,
            "warm_up": self.taken.warm_up,
            "one_caller": series_json(&self.taken.one),
            "many_callers": series_json(&self.taken.many),
            "spawned_process": spawned,
            "times_faster_than_process": self.times_faster(),
            "peak_memory_bytes": self.taken.peak_memory,
            "loading": loading,
            "machine": {
                "cores": cores(),
                "system": system(),
                "architecture": std::env::consts::ARCH,
                "palisade": env!("CARGO_PKG_VERSION"),
                "build": build(),
                "memory": self.memory(),
            },
        })
    }

    pub(super) fn to_text(&self) -> String {
        let mut text = format!(
            "{}  {}\n\n",
            style::heading(self.tool),
            style::faint(&format!(
                "{} calls, after {} to warm up",
                self.taken.one.len(),
                self.taken.warm_up
            ))
        );
        text.push_str(&self.series(columns(std::io::stdout())));
        let mut facts = Vec::new();
        if let (Some(times), Some((program, _))) = (self.times_faster(), self.spawned) {
            facts.push([
                "compared".to_owned(),
                format!("{times:.1} × as fast as spawning `{program}`"),
            ]);
        }
        if self.taken.peak_memory > 0 {
            facts.push([
                "memory".to_owned(),
                format!("{} in the guest at most", size(self.taken.peak_memory)),
            ]);
        }
        if let Some(load) = self.load {
            let name = elided(&load.plugin, 64);
            facts.push([
                "loading".to_owned(),
                format!("{} compiled, {} from the cache", shown(load.compiled), shown(load.cached))
                    + &format!(" (`{name}`, {})", size(load.bytes)),
            ]);
        }
        let cores = cores();
        let plural = if cores == 1 { "" } else { "s" };
        let ran = format!("{cores} core{plural}, {}, memory {}", system(), self.memory());
        facts.push(["ran on".to_owned(), ran]);
        facts.push(["palisade".to_owned(), format!("{}, {}", env!("CARGO_PKG_VERSION"), build())]);
        let facts: Vec<Vec<Cell>> =
            facts.into_iter().map(|[key, value]| vec![key.into(), Cell::sentence(value)]).collect();
        text + "\n" + &output::table(&facts)
    }

    /// Returns the table of the measured series. Where it does not fit, the name of each stands on
    /// a line of its own.
    fn series(&self, room: usize) -> String {
        let callers = format!("{} callers at once", self.taken.many.callers);
        let mut all = vec![("one caller".to_owned(), &self.taken.one), (callers, &self.taken.many)];
        all.extend(self.spawned.map(|(program, series)| (format!("spawning `{program}`"), series)));
        let table = |names: &dyn Fn(&str) -> String| {
            let rows = all.iter().map(|(name, series)| row(&names(name), series));
            let rows: Vec<Vec<Cell>> = std::iter::once(head()).chain(rows).collect();
            output::table_within(&rows, usize::MAX)
        };
        let whole = table(&str::to_owned);
        if whole.lines().all(|line| width(line) <= room) {
            return whole;
        }
        let narrow = table(&|_| String::new());
        let names = std::iter::once(None).chain(all.iter().map(|(name, _)| Some(name)));
        let lines = narrow.lines().zip(names).map(|(line, name)| {
            let name = name.map(|name| format!("{name}\n")).unwrap_or_default();
            format!("{name}{line}\n")
        });
        lines.collect()
    }

    /// Returns how many calls one caller makes in the time of one spawned process.
    fn times_faster(&self) -> Option<f64> {
        let (_, series) = self.spawned?;
        let call = self.taken.one.at(500).as_secs_f64();
        (call > 0.0).then(|| (series.at(500).as_secs_f64() / call * 10.0).round() / 10.0)
    }

    fn memory(&self) -> &'static str {
        match self.host.sandbox().allocation() {
            Allocation::Pooled => "pooled",
            Allocation::OnDemand => "mapped for each call",
            Allocation::Scarce => "mapped for each call, and copied as it grows",
        }
    }
}

fn head() -> Vec<Cell> {
    let names = PERCENTILES.iter().map(|(name, _)| format!("{name:>8}"));
    let all = [String::new()].into_iter().chain(names).chain(["calls/s".to_owned()]);
    all.map(Cell::from).collect()
}

fn row(name: &str, series: &Series) -> Vec<Cell> {
    let percentiles =
        PERCENTILES.iter().map(|(_, permille)| format!("{:>8}", shown(series.at(*permille))));
    let all = [name.to_owned()]
        .into_iter()
        .chain(percentiles)
        .chain([format!("{:>7.0}", series.per_second())]);
    all.map(Cell::from).collect()
}

fn series_json(series: &Series) -> Value {
    let us = |permille: usize| (series.at(permille).as_secs_f64() * 1e8).round() / 100.0;
    json!({
        "callers": series.callers,
        "calls": series.len(),
        "p50_us": us(500),
        "p90_us": us(900),
        "p99_us": us(990),
        "p99_9_us": us(999),
        "per_second": series.per_second().round(),
    })
}

fn ms(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

fn size(bytes: u64) -> String {
    bytesize::ByteSize(bytes).display().iec().to_string()
}

/// Formats a duration with three digits and its unit.
fn shown(time: Duration) -> String {
    let (value, unit) = match time.as_secs_f64() {
        seconds if seconds < 1e-3 => (seconds * 1e6, "µs"),
        seconds if seconds < 1.0 => (seconds * 1e3, "ms"),
        seconds => (seconds, "s"),
    };
    let digits = usize::from(value < 100.0) + usize::from(value < 10.0);
    format!("{value:.digits$} {unit}")
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Returns the kind of build: the figures of an unoptimised build say nothing about an optimised
/// one.
fn build() -> &'static str {
    if cfg!(debug_assertions) { "not optimised" } else { "optimised" }
}

fn system() -> String {
    let told = rustix::system::uname();
    format!("{} {}", told.sysname().to_string_lossy(), told.release().to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_has_three_digits() {
        let times = [8_421, 12_345, 123_456, 1_234_567, 123_456_789, 12_345_678_901]
            .map(Duration::from_nanos);
        assert_eq!(
            times.map(shown),
            ["8.42 µs", "12.3 µs", "123 µs", "1.23 ms", "123 ms", "12.3 s"]
        );
    }
}
