//! The results table: a row per server and cell, and the cells in which Palisade is not ahead.

use std::fmt;
use std::time::Duration;

/// One server in one cell.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    server: &'static str,
    /// The transport, the tool, and the number of concurrent callers.
    cell: (&'static str, &'static str, usize),
    /// Calls per second.
    rate: f64,
    /// Latencies in milliseconds: the median, and the 99th percentile.
    p50: f64,
    p99: f64,
}

impl Row {
    /// Returns the row of calls that ended within this time.
    pub(super) fn new(
        server: &'static str,
        cell: (&'static str, &'static str, usize),
        mut latencies: Vec<Duration>,
        time: Duration,
    ) -> Self {
        latencies.sort_unstable();
        let rate = latencies.len() as f64 / time.as_secs_f64();
        Self {
            server,
            cell,
            rate,
            p50: percentile(&latencies, 50),
            p99: percentile(&latencies, 99),
        }
    }

    /// Returns the medians of each column over the rounds of one server in one cell.
    pub(super) fn middle(rounds: &[Self]) -> Option<Self> {
        let middle = |column: fn(&Self) -> f64| median(rounds.iter().map(column).collect());
        let (rate, p50, p99) =
            (middle(|row| row.rate)?, middle(|row| row.p50)?, middle(|row| row.p99)?);
        rounds.first().map(|row| Self { rate, p50, p99, ..row.clone() })
    }
}

/// Returns the median of an odd number of values; `None` if there are none.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// Returns a percentile of sorted latencies, in milliseconds; infinite without any response.
fn percentile(latencies: &[Duration], percent: usize) -> f64 {
    let rank = (latencies.len() * percent).div_ceil(100).saturating_sub(1);
    latencies.get(rank).map_or(f64::INFINITY, |latency| latency.as_secs_f64() * 1e3)
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (way, tool, callers) = self.cell;
        let Self { server, rate, p50, p99, .. } = self;
        let many = if callers == 1 { "caller " } else { "callers" };
        write!(
            f,
            "{way:<6} {tool:<9} {callers} {many}  {server:<11} {rate:>8.0} calls/s  p50 {p50:>7.3} ms  p99 {p99:>7.3} ms"
        )
    }
}

/// Returns the cells in which another server has a higher rate or a lower 99th percentile.
pub(super) fn behind(rows: &[Row], ours: &str) -> Vec<String> {
    let mut behind = Vec::new();
    for own in rows.iter().filter(|row| row.server == ours) {
        for other in rows.iter().filter(|row| row.cell == own.cell && row.server != ours) {
            if other.rate >= own.rate || other.p99 <= own.p99 {
                behind.push(format!("{own}\n  against\n{other}"));
            }
        }
    }
    behind
}

#[cfg(test)]
mod tests {
    use super::*;

    const CELL: (&str, &str, usize) = ("stdio", "echo", 8);

    fn row(
        server: &'static str,
        cell: (&'static str, &'static str, usize),
        rate: f64,
        p99: f64,
    ) -> Row {
        Row { server, cell, rate, p50: 0.1, p99 }
    }

    #[test]
    fn row_counts_and_ranks_its_calls() {
        let latencies = (1..=200).rev().map(Duration::from_millis).collect();
        let row = Row::new("ours", CELL, latencies, Duration::from_secs(2));
        assert_eq!(row, Row { server: "ours", cell: CELL, rate: 100.0, p50: 100.0, p99: 198.0 });
        assert_eq!(Row::new("ours", CELL, Vec::new(), Duration::from_secs(2)).p99, f64::INFINITY);
    }

    #[test]
    fn median_of_each_column_counts() {
        let rounds =
            [(3.0, 9.0), (1.0, 1.0), (2.0, 8.0)].map(|(rate, p99)| row("ours", CELL, rate, p99));
        assert_eq!(Row::middle(&rounds), Some(row("ours", CELL, 2.0, 8.0)));
        assert_eq!(Row::middle(&[]), None);
    }

    #[test]
    fn verdict_requires_faster_calls_and_p99_in_every_cell() {
        let other = ("HTTP", "echo", 8);
        let rows =
            [row("ours", CELL, 2.0, 1.0), row("a", CELL, 1.0, 2.0), row("a", other, 9.0, 0.5)];
        assert!(behind(&rows, "ours").is_empty());
        for faster in [row("b", CELL, 3.0, 2.0), row("b", CELL, 1.0, 0.9)] {
            assert_eq!(behind(&[row("ours", CELL, 2.0, 1.0), faster], "ours").len(), 1);
        }
    }
}
