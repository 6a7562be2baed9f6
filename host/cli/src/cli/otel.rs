//! Exports spans and metrics to an OpenTelemetry collector if the standard variables name one.
//! Otherwise nothing is built and nothing connects.

mod collector;
mod conventions;
mod settings;

use super::args::Args;
use super::{log, log_filter, start_log};
use collector::Collector;
use conventions::Conventions;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry::{KeyValue, global};
use opentelemetry_http::HttpClient;
use opentelemetry_otlp::{
    ExporterBuildError, MetricExporter, Protocol, SpanExporter, WithExportConfig as _,
    WithHttpConfig as _,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider};
use opentelemetry_sdk::resource::{EnvResourceDetector, TelemetryResourceDetector};
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, SdkTracer, SdkTracerProvider,
};
use settings::{Signal, Unsupported, protocol};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};
use tracing::{Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Maximum number of queued spans. Further spans are dropped, so that no call blocks.
const QUEUE: usize = 2048;
/// Maximum number of spans per request.
const BATCH: usize = 256;
/// Maximum size of a request, in bytes.
const LARGEST: usize = 4 << 20;
/// The deadline for the final flush at the end of the program.
const LAST: Duration = Duration::from_secs(1);

/// The exporters, which run until the end of the program.
#[derive(Default)]
pub(super) struct Telemetry {
    spans: Option<SdkTracerProvider>,
    durations: Option<SdkMeterProvider>,
}

/// The reason why requested telemetry is not sent.
#[derive(Debug, thiserror::Error)]
pub(super) enum TelemetryError {
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    // The source is left out of the message: it repeats the URL, which may contain a password.
    #[error("a variable `OTEL_EXPORTER_OTLP_*` cannot be understood")]
    Exporter(ExporterBuildError),
    #[error("cannot start the exporter: {0}")]
    Io(#[from] std::io::Error),
}

impl Telemetry {
    /// Starts the log, and the exporters that the variables ask for.
    pub(super) fn start(args: &Args) -> Self {
        let started = Self::from_environment();
        match started.as_ref().ok().and_then(Self::tracer) {
            Some(tracer) => {
                let log = log().with_filter(log_filter(args));
                let _ = tracing_subscriber::registry().with(log).with(layer(tracer)).try_init();
            }
            None => start_log(args),
        }
        started.unwrap_or_else(|error| {
            tracing::warn!("no telemetry is sent: {error}");
            Self::default()
        })
    }

    fn from_environment() -> Result<Self, TelemetryError> {
        let for_spans = protocol(Signal::Traces)?;
        let for_durations = protocol(Signal::Metrics)?;
        if for_spans.or(for_durations).is_none() {
            return Ok(Self::default());
        }
        let collector: Arc<dyn HttpClient> = Arc::new(Collector::new()?);
        let spans = for_spans.map(|protocol| spans(protocol, collector.clone())).transpose()?;
        let durations = for_durations.map(|protocol| durations(protocol, collector)).transpose()?;
        if let Some(provider) = &durations {
            global::set_meter_provider(provider.clone());
        }
        Ok(Self { spans, durations })
    }

    fn tracer(&self) -> Option<SdkTracer> {
        self.spans.as_ref().map(|provider| provider.tracer("palisade"))
    }

    /// Flushes the exporters within [`LAST`]. If the collector hangs, the remaining data is lost.
    pub(super) fn finish(self) {
        let (done, is_done) = channel();
        let shut_spans = self.spans.map(|spans| move || spans.shutdown_with_timeout(LAST));
        let shut_durations = self.durations.map(|durations| move || durations.shutdown());
        let begun = [
            shut_spans.map(|shut| aside(shut, &done)),
            shut_durations.map(|shut| aside(shut, &done)),
        ];
        let end = Instant::now() + LAST;
        for _ in begun.into_iter().flatten() {
            let _ = is_done.recv_timeout(end.saturating_duration_since(Instant::now()));
        }
    }
}

/// Runs work on a separate thread, because the metrics shutdown of the library has no timeout below
/// five seconds.
fn aside<T>(work: impl FnOnce() -> T + Send + 'static, done: &Sender<()>) {
    let done = done.clone();
    let _ = std::thread::Builder::new().name("palisade-telemetry".to_owned()).spawn(move || {
        work();
        let _ = done.send(());
    });
}

/// Exports spans of calls, independently of the log filter. Events stay in the log, because they
/// may contain text of plugins.
fn layer<S>(tracer: SdkTracer) -> impl Layer<S> + Send + Sync
where
    S: Subscriber + for<'span> LookupSpan<'span> + Send + Sync,
{
    let is_call = |metadata: &Metadata<'_>| {
        metadata.is_span() && metadata.target().starts_with("palisade_mcp")
    };
    tracing_opentelemetry::layer()
        .with_tracer(tracer)
        .with_location(false)
        .with_threads(false)
        .with_target(false)
        .with_level(false)
        .with_tracked_inactivity(false)
        .with_filter(filter_fn(is_call))
}

fn spans(
    protocol: Protocol,
    collector: Arc<dyn HttpClient>,
) -> Result<SdkTracerProvider, TelemetryError> {
    let exporter = SpanExporter::builder()
        .with_http()
        .with_shared_http_client(collector)
        .with_max_request_body_size(LARGEST)
        .with_protocol(protocol)
        .build()
        .map_err(TelemetryError::Exporter)?;
    let bounds = BatchConfigBuilder::default()
        .with_max_queue_size(QUEUE)
        .with_max_export_batch_size(BATCH)
        .build();
    let batches = BatchSpanProcessor::builder(exporter).with_batch_config(bounds).build();
    Ok(SdkTracerProvider::builder()
        .with_span_processor(Conventions(batches))
        .with_resource(resource())
        .build())
}

fn durations(
    protocol: Protocol,
    collector: Arc<dyn HttpClient>,
) -> Result<SdkMeterProvider, TelemetryError> {
    let exporter = MetricExporter::builder()
        .with_http()
        .with_shared_http_client(collector)
        .with_max_request_body_size(LARGEST)
        .with_protocol(protocol)
        .build()
        .map_err(TelemetryError::Exporter)?;
    let reader = PeriodicReader::builder(exporter).build();
    Ok(SdkMeterProvider::builder().with_reader(reader).with_resource(resource()).build())
}

/// Describes this program as the resource. `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` take
/// precedence.
fn resource() -> Resource {
    let own = [
        KeyValue::new("service.name", "palisade"),
        KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
    ];
    let resource = Resource::builder_empty().with_attributes(own).with_detectors(&[
        Box::new(TelemetryResourceDetector),
        Box::new(EnvResourceDetector::new()),
    ]);
    match settings::variable("OTEL_SERVICE_NAME") {
        Some(name) => resource.with_service_name(name).build(),
        None => resource.build(),
    }
}
