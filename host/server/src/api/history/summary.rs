//! The calls of a time, by tool.

use crate::api::state::App;
use crate::journal::{CallState, Latency, Summary, Timestamp, ToolSummary};
use serde::Serialize;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// The number of tools that are listed.
const TOOLS: usize = 200;

/// The calls of a time, by tool.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Summary)]
pub(in crate::api) struct SummaryView {
    /// The beginning of the time: the requested one, or a later one if there are too many calls.
    since: String,
    until: String,
    /// The tools, the one with the most calls first; at most 200.
    tools: Vec<ToolSummaryView>,
}

/// The calls of a tool.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ToolSummary)]
struct ToolSummaryView {
    tool: String,
    plugin: Option<String>,
    class: Option<&'static str>,
    calls: u64,
    /// The number of calls by `succeeded`, `unknown` or class of error; open calls are not counted.
    outcomes: BTreeMap<String, u64>,
    /// The run time of the calls that ran; `null` if none did.
    latency_ms: Option<LatencyView>,
}

/// The distribution of run times, in milliseconds.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Latency)]
struct LatencyView {
    p50: f64,
    p90: f64,
    p99: f64,
    max: f64,
}

impl From<Latency> for LatencyView {
    fn from(latency: Latency) -> Self {
        let millis = |time: std::time::Duration| time.as_secs_f64() * 1e3;
        let Latency { p50, p90, p99, max } = latency;
        Self { p50: millis(p50), p90: millis(p90), p99: millis(p99), max: millis(max) }
    }
}

impl SummaryView {
    pub(super) fn of(app: &App, summary: Summary, until: Timestamp) -> Self {
        let mut tools: Vec<_> =
            summary.tools.into_iter().map(|tool| ToolSummaryView::of(app, tool)).collect();
        tools.sort_by(|a, b| b.calls.cmp(&a.calls).then_with(|| a.tool.cmp(&b.tool)));
        tools.truncate(TOOLS);
        Self { since: summary.since.to_string(), until: until.to_string(), tools }
    }
}

impl ToolSummaryView {
    fn of(app: &App, summary: ToolSummary) -> Self {
        let known = app.host.registry().get(&summary.tool).ok();
        let mut outcomes = summary.errors;
        for state in [CallState::Succeeded, CallState::Unknown] {
            if let Some(count) = summary.states.get(&state).filter(|count| **count > 0) {
                outcomes.insert(state.as_str().to_owned(), *count);
            }
        }
        Self {
            plugin: known.as_ref().and_then(|tool| tool.origin().plugin().map(str::to_owned)),
            class: known.as_ref().map(|tool| tool.definition().side_effects().as_str()),
            calls: summary.states.values().sum(),
            outcomes,
            latency_ms: summary.latency.map(LatencyView::from),
            tool: summary.tool,
        }
    }
}
