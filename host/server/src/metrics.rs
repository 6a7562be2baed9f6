//! The metrics of a host, for Prometheus. Every label has a bounded number of values.

mod labels;

use labels::{CallLabels, LimitLabels, PluginLabels, ReasonLabels, TimeLabels, Tools};
use palisade::sandbox::Freshness;
use palisade::{
    BoxFuture, CallEnd, CallRecorder, CallStart, ErrorKind, Host, NotRecorded, ToolResult,
};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use std::fmt;
use std::sync::Arc;

/// The upper bounds of the latency histogram, in seconds: from the shortest calls of an embedder to
/// the longest time limit.
const BUCKETS: [f64; 16] = [
    0.000_1, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0,
    120.0, 600.0,
];

/// The metrics of a host. Clones share them.
#[derive(Clone)]
pub struct Metrics(Arc<Inner>);

struct Inner {
    registry: Registry,
    tools: Tools,
    calls: Family<CallLabels, Counter>,
    durations: Family<TimeLabels, Histogram, fn() -> Histogram>,
    denials: Family<ReasonLabels, Counter>,
    limits: Family<LimitLabels, Counter>,
    plugins: Family<PluginLabels, Gauge>,
    rejected: Gauge,
    readers: Gauge,
    operators: Gauge,
    questions: Gauge,
    sessions: Gauge,
    journal_lost: Gauge,
    journal_waiting: Gauge,
}

/// The values that are looked up when the metrics are read, because nothing counts them before.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Levels {
    pub(crate) operators: usize,
    pub(crate) questions: usize,
    pub(crate) sessions: usize,
    pub(crate) journal_lost: u64,
    pub(crate) journal_waiting: u64,
}

/// Counts one reader of an event stream until it is dropped.
pub(crate) struct CountedReader(Gauge);

impl Drop for CountedReader {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Default for Metrics {
    fn default() -> Self {
        let mut inner = Inner {
            registry: Registry::with_prefix("palisade"),
            tools: Tools::default(),
            calls: Family::default(),
            durations: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            denials: Family::default(),
            limits: Family::default(),
            plugins: Family::default(),
            rejected: Gauge::default(),
            readers: Gauge::default(),
            operators: Gauge::default(),
            questions: Gauge::default(),
            sessions: Gauge::default(),
            journal_lost: Gauge::default(),
            journal_waiting: Gauge::default(),
        };
        inner.register();
        Self(Arc::new(inner))
    }
}

impl Inner {
    fn register(&mut self) {
        let to = &mut self.registry;
        to.register("calls", "Calls that ended", self.calls.clone());
        to.register(
            "call_duration_seconds",
            "Run time of calls that ran, without queues and questions",
            self.durations.clone(),
        );
        to.register("denials", "Refused calls", self.denials.clone());
        to.register(
            "limits_hit",
            "Calls that reached a limit other than their time",
            self.limits.clone(),
        );
        to.register("plugins", "Loaded plugins, from the cache or compiled", self.plugins.clone());
        to.register("plugins_rejected", "Rejected plugin files", self.rejected.clone());
        to.register("event_readers", "Attached readers of events", self.readers.clone());
        to.register("operators_attached", "Attached operators", self.operators.clone());
        to.register("questions_open", "Calls that wait for an answer", self.questions.clone());
        to.register("sessions_open", "Open sessions, also of MCP clients", self.sessions.clone());
        to.register(
            "journal_events_lost",
            "Events that the journal had no room for",
            self.journal_lost.clone(),
        );
        to.register(
            "journal_records_waiting",
            "Records that wait to be written",
            self.journal_waiting.clone(),
        );
    }
}

impl Metrics {
    /// Returns a recorder that counts each call, and passes it on to another recorder.
    #[must_use]
    pub fn counting(&self, inner: Arc<dyn CallRecorder>) -> Arc<dyn CallRecorder> {
        Arc::new(Counting { metrics: self.clone(), inner })
    }

    pub(crate) fn count_reader(&self) -> CountedReader {
        self.0.readers.inc();
        CountedReader(self.0.readers.clone())
    }

    /// Returns the metrics in the text format of OpenMetrics.
    pub(crate) fn text(&self, host: &Host, levels: Levels) -> Result<String, fmt::Error> {
        let set = |gauge: &Gauge, value: u64| {
            gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        };
        let Inner { operators, questions, sessions, journal_lost, journal_waiting, .. } = &*self.0;
        set(operators, levels.operators as u64);
        set(questions, levels.questions as u64);
        set(sessions, levels.sessions as u64);
        set(journal_lost, levels.journal_lost);
        set(journal_waiting, levels.journal_waiting);
        set(&self.0.rejected, host.rejected().len() as u64);
        let plugins = host.plugins();
        let cached = plugins.iter().filter(|plugin| plugin.freshness() == Freshness::Cached);
        let cached = cached.count();
        for (from, count) in [("cache", cached), ("compiler", plugins.len() - cached)] {
            set(&self.0.plugins.get_or_create(&PluginLabels { from }), count as u64);
        }
        let mut text = String::new();
        encode(&mut text, &self.0.registry)?;
        Ok(text)
    }

    fn count(&self, end: &CallEnd<'_>) {
        let class = end.subject.side_effects.map_or("unknown", |class| class.as_str());
        // The caller chooses a name that no tool has, so it would make labels without bound.
        let tool = match end.subject.side_effects {
            Some(_) => self.0.tools.label(&end.subject.tool),
            None => self.0.tools.other(),
        };
        let outcome = match end.result {
            None => "abandoned",
            Some(result) => result.error().map_or("succeeded", |error| error.class().as_str()),
        };
        self.0.calls.get_or_create(&CallLabels { tool: tool.clone(), class, outcome }).inc();
        let Some(result) = end.result else { return };
        // A call that did not run has no duration.
        if !result.duration().is_zero() {
            let labels = TimeLabels { tool, class };
            self.0.durations.get_or_create(&labels).observe(result.duration().as_secs_f64());
        }
        self.count_denial_or_limit(result);
    }

    fn count_denial_or_limit(&self, result: &ToolResult) {
        let Some(error) = result.error() else { return };
        let reason = match error.kind() {
            ErrorKind::PermissionDenied { reason, .. } => reason.as_str(),
            ErrorKind::UserDenied | ErrorKind::NoAnswer => "user",
            ErrorKind::ConfirmationTimeout { .. } => "confirmation_timeout",
            ErrorKind::ResourceExhausted { limit, .. } => {
                self.0.limits.get_or_create(&LimitLabels { limit: limit.as_str() }).inc();
                return;
            }
            _ => return,
        };
        self.0.denials.get_or_create(&ReasonLabels { reason }).inc();
    }
}

/// Counts the calls that another recorder records.
struct Counting {
    metrics: Metrics,
    inner: Arc<dyn CallRecorder>,
}

impl CallRecorder for Counting {
    fn before_run<'a>(&'a self, start: CallStart<'a>) -> BoxFuture<'a, Result<(), NotRecorded>> {
        self.inner.before_run(start)
    }

    fn ended(&self, end: CallEnd<'_>) {
        self.metrics.count(&end);
        self.inner.ended(end);
    }
}
