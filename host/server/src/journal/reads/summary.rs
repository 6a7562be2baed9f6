//! Sums up the calls of a time by tool, from an index that has all that is needed.

use super::{count, time};
use crate::journal::rows::{CallState, Latency, Summary, ToolSummary};
use crate::journal::time::Timestamp;
use rusqlite::{Connection, Result, params};
use std::collections::BTreeMap;
use std::time::Duration;

/// The most calls that a summary looks at: the newest.
const CALLS: usize = 20_000;
/// The most tools of a summary. Callers may name tools that do not exist.
const TOOLS: usize = 1_000;

/// Returns the calls since this time, by tool.
pub(in crate::journal) fn since(conn: &Connection, since: Timestamp) -> Result<Summary> {
    let mut select = conn.prepare_cached(
        "SELECT created, tool, state, error_class, started, duration FROM calls
         WHERE created >= ?1 ORDER BY created DESC LIMIT ?2",
    )?;
    let most = i64::try_from(CALLS).unwrap_or(i64::MAX);
    let mut rows = select.query(params![since.micros(), most])?;
    let mut tools: BTreeMap<String, (ToolSummary, Vec<Duration>)> = BTreeMap::new();
    let (mut seen, mut oldest) = (0, since);
    while let Some(row) = rows.next()? {
        (seen, oldest) = (seen + 1, time(row.get(0)?));
        let tool: String = row.get(1)?;
        if tools.len() >= TOOLS && !tools.contains_key(&tool) {
            continue;
        }
        let (summary, times) = tools.entry(tool).or_default();
        let state: String = row.get(2)?;
        *summary.states.entry(state.parse().unwrap_or(CallState::Unknown)).or_default() += 1;
        if let Some(class) = row.get(3)? {
            *summary.errors.entry(class).or_default() += 1;
        }
        let has_run = row.get::<_, Option<i64>>(4)?.is_some();
        times.extend(row.get::<_, Option<i64>>(5)?.filter(|_| has_run).map(micros));
    }
    let tools = tools.into_iter().map(|(tool, (summary, times))| ToolSummary {
        tool,
        latency: latency(times),
        ..summary
    });
    let since = if seen == CALLS { oldest } else { since };
    Ok(Summary { since, tools: tools.collect() })
}

fn micros(stored: i64) -> Duration {
    Duration::from_micros(count(stored))
}

fn latency(mut times: Vec<Duration>) -> Option<Latency> {
    times.sort_unstable();
    let max = *times.last()?;
    // The smallest time that so many of a hundred do not exceed.
    let share = |percent: usize| {
        let rank = (times.len() * percent).div_ceil(100).saturating_sub(1);
        times.get(rank).copied().unwrap_or(max)
    };
    Some(Latency { p50: share(50), p90: share(90), p99: share(99), max })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentile_is_reached_by_its_share_of_the_calls() {
        let times = (1..=100).rev().map(Duration::from_micros).collect();
        let at = Duration::from_micros;
        let expected = Latency { p50: at(50), p90: at(90), p99: at(99), max: at(100) };
        assert_eq!(latency(times), Some(expected));
        let one = latency(vec![at(7)]);
        assert_eq!(one, Some(Latency { p50: at(7), p90: at(7), p99: at(7), max: at(7) }));
        assert_eq!(latency(Vec::new()), None);
    }
}
