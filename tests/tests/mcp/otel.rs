//! OpenTelemetry export: its contents, its conditions, and that no call waits for the collector.

use super::{call, serving, text};
use palisade_tests::collector::{Collector, Manner};
use palisade_tests::guest::CONTRACT_ERRORS;
use palisade_tests::mcp::{Client, LEGACY};
use palisade_tests::program::Ran;
use palisade_tests::{Program, World};
use serde_json::{Map, Value, json};
use std::time::{Duration, Instant};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN: &str = "00f067aa0ba902b7";
/// The text that the guest's tool receives and returns.
const SECRET: &str = "a-secret-of-the-caller";

fn sending<'w>(world: &'w World, address: &str) -> Program<'w> {
    serving(world, CONTRACT_ERRORS).env("OTEL_EXPORTER_OTLP_ENDPOINT", address)
}

/// Selects JSON, so that the test can read the requests.
fn readable<'w>(world: &'w World, collector: &Collector) -> Program<'w> {
    sending(world, collector.address()).env("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")
}

/// Calls the tool so that it returns its input.
fn call_it(client: &mut Client, flags: &str) {
    let mut params = call("fail", json!({"with": SECRET}));
    params["_meta"] =
        json!({"traceparent": format!("00-{TRACE}-{SPAN}-{flags}"), "tracestate": "vendor=value"});
    let answer = client.request("tools/call", &params);
    assert!(text(&answer).contains(SECRET), "{answer}");
}

/// Returns the exported spans and metrics; checks that no request contains the secret.
#[track_caller]
fn sent(collector: &Collector) -> (Vec<Value>, Vec<Value>) {
    let (mut spans, mut metrics) = (Vec::new(), Vec::new());
    for request in collector.rest() {
        let whole = String::from_utf8_lossy(&request.body);
        assert!(!whole.contains(SECRET), "{whole}");
        match request.path.as_str() {
            "/v1/traces" => {
                spans.extend(parts(&request.json(), &["resourceSpans", "scopeSpans", "spans"]))
            }
            "/v1/metrics" => metrics
                .extend(parts(&request.json(), &["resourceMetrics", "scopeMetrics", "metrics"])),
            other => panic!("unknown path: {other}"),
        }
    }
    (spans, metrics)
}

/// Returns the elements of nested lists.
fn parts(of: &Value, lists: &[&str]) -> Vec<Value> {
    let Some((first, rest)) = lists.split_first() else { return vec![of.clone()] };
    of[*first].as_array().into_iter().flatten().flat_map(|one| parts(one, rest)).collect()
}

/// Returns attributes as a map of names to values.
fn attributes(of: &Value) -> Value {
    let all = of["attributes"].as_array().cloned().unwrap_or_default();
    let pair = |one: &Value| {
        let value = one["value"].as_object().and_then(|value| value.values().next().cloned());
        (one["key"].as_str().unwrap_or_default().to_owned(), value.unwrap_or_default())
    };
    Value::Object(all.iter().map(pair).collect::<Map<_, _>>())
}

#[track_caller]
fn end_well(client: Client) -> Ran {
    let (ran, _) = client.end();
    assert_eq!(ran.code, 0, "{ran:?}");
    ran
}

#[test]
fn call_span_joins_the_callers_trace_without_contents() {
    let (world, collector) = (World::new(), Collector::start(Manner::Takes));
    // The log level has no influence on the export.
    let program = readable(&world, &collector).env("PALISADE_LOG", "off");
    let mut client = Client::legacy(program, &json!({}));
    call_it(&mut client, "01");
    end_well(client);
    let (spans, _) = sent(&collector);
    let [span] = spans.as_slice() else { panic!("{spans:?}") };
    assert_eq!((&span["traceId"], &span["parentSpanId"]), (&json!(TRACE), &json!(SPAN)), "{span}");
    assert_eq!((&span["name"], &span["kind"]), (&json!("tools/call fail"), &json!(2)), "{span}");
    assert_eq!(span["traceState"], "vendor=value", "{span}");
    assert!(span["events"].as_array().is_none_or(Vec::is_empty), "{span}");
    let mut known = attributes(span);
    assert!(
        known["mcp.session.id"].as_str().is_some_and(|session| session.starts_with("mcp-")),
        "{known}"
    );
    known.as_object_mut().unwrap().remove("mcp.session.id");
    let expected = json!({
        "mcp.method.name": "tools/call",
        "mcp.protocol.version": LEGACY,
        "jsonrpc.request.id": "2",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "fail",
        "network.transport": "pipe",
    });
    assert_eq!(known, expected);
}

#[test]
fn call_without_a_trace_starts_one_with_its_error() {
    let (world, collector) = (World::new(), Collector::start(Manner::Takes));
    let mut client = Client::legacy(readable(&world, &collector), &json!({}));
    client.request("tools/call", &call("fail", json!({"with": "failed"})));
    client.request("tools/call", &call("no_such_tool", json!({})));
    end_well(client);
    let (spans, _) = sent(&collector);
    let [failed, unknown] = spans.as_slice() else { panic!("{spans:?}") };
    for (span, error) in [(failed, "tool_error"), (unknown, "-32602")] {
        assert_eq!(span["status"]["code"], 2, "{span}");
        assert_eq!(attributes(span)["error.type"], error, "{span}");
        assert!(span["parentSpanId"].as_str().is_none_or(str::is_empty), "{span}");
    }
    assert_ne!(failed["traceId"], unknown["traceId"]);
    assert_eq!(attributes(unknown)["rpc.response.status_code"], "-32602", "{unknown}");
}

#[test]
fn unsampled_call_is_measured_and_not_traced() {
    let (world, collector) = (World::new(), Collector::start(Manner::Takes));
    let mut client = Client::legacy(readable(&world, &collector), &json!({}));
    call_it(&mut client, "00");
    client.request("tools/call", &call("no_such_tool", json!({})));
    end_well(client);
    let (spans, metrics) = sent(&collector);
    assert_eq!(spans.len(), 1, "only the call without a sampling decision: {spans:?}");
    let [metric] = metrics.as_slice() else { panic!("{metrics:?}") };
    assert_eq!(
        (&metric["name"], &metric["unit"]),
        (&json!("mcp.server.operation.duration"), &json!("s"))
    );
    let points = metric["histogram"]["dataPoints"].as_array().unwrap();
    let (named, unnamed): (Vec<Value>, Vec<Value>) = points
        .iter()
        .map(attributes)
        .partition(|attributes| attributes["gen_ai.tool.name"] == "fail");
    assert_eq!((named.len(), unnamed.len()), (1, 1), "{points:?}");
    assert_eq!(unnamed[0]["error.type"], "-32602");
    assert!(unnamed[0].get("gen_ai.tool.name").is_none(), "unbounded client names: {unnamed:?}");
}

#[test]
fn protobuf_is_the_default_protocol() {
    let (world, collector) = (World::new(), Collector::start(Manner::Takes));
    let program = sending(&world, collector.address())
        .env("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20abc");
    let mut client = Client::legacy(program, &json!({}));
    call_it(&mut client, "01");
    end_well(client);
    let requests = collector.rest();
    let request = requests.iter().find(|request| request.path == "/v1/traces").unwrap();
    for line in
        ["content-type: application/x-protobuf", "authorization: bearer abc", "host: 127.0.0.1:"]
    {
        assert!(request.head.contains(line), "{line}: {}", request.head);
    }
    let body = String::from_utf8_lossy(&request.body);
    assert!(
        body.contains("tools/call fail") && body.contains("palisade") && !body.contains(SECRET),
        "{body}"
    );
}

/// Lists the names of the exporter's threads.
#[cfg(target_os = "linux")]
fn senders(client: &Client) -> Vec<String> {
    let threads = std::fs::read_dir(format!("/proc/{}/task", client.process())).unwrap().flatten();
    let names =
        threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("comm")).ok());
    names.filter(|name| name.starts_with("OpenTelemetry")).collect()
}

#[cfg(target_os = "linux")]
#[test]
fn no_exporter_exists_without_a_collector() {
    let (world, collector) = (World::new(), Collector::start(Manner::Takes));
    let none = serving(&world, CONTRACT_ERRORS).env("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json");
    let off = readable(&world, &collector).env("OTEL_SDK_DISABLED", "true");
    for (program, is_there) in [(none, false), (off, false), (readable(&world, &collector), true)] {
        let heard = collector.rest();
        assert!(heard.is_empty(), "{heard:?}");
        let mut client = Client::legacy(program, &json!({}));
        call_it(&mut client, "01");
        assert_eq!(!senders(&client).is_empty(), is_there);
        end_well(client);
    }
}

#[test]
fn hanging_collector_delays_no_call_and_shutdown_one_second() {
    let (world, collector) = (World::new(), Collector::start(Manner::Hangs));
    let soon = readable(&world, &collector)
        .env("OTEL_BSP_SCHEDULE_DELAY", "1")
        .env("OTEL_METRIC_EXPORT_INTERVAL", "1");
    let mut client = Client::legacy(soon, &json!({}));
    call_it(&mut client, "01");
    while collector.next().path != "/v1/traces" {}
    // From here on the exporter thread hangs, for ten seconds a request.
    let start = Instant::now();
    for _ in 0..50 {
        call_it(&mut client, "01");
    }
    assert!(start.elapsed() < Duration::from_secs(9), "{:?}", start.elapsed());
    let start = Instant::now();
    end_well(client);
    assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
}

#[test]
fn missing_collector_is_reported_once() {
    let world = World::new();
    let address = "http://127.0.0.1:1";
    let program = sending(&world, address).env("OTEL_BSP_SCHEDULE_DELAY", "1");
    let mut client = Client::legacy(program, &json!({}));
    for _ in 0..3 {
        call_it(&mut client, "01");
    }
    let ran = end_well(client);
    assert_eq!(ran.stderr.matches("did not take it").count(), 1, "{}", ran.stderr);
}

#[test]
fn unsupported_collector_address_is_reported_and_ignored() {
    let world = World::new();
    let mut client = Client::legacy(sending(&world, "https://user:pass@127.0.0.1:1"), &json!({}));
    call_it(&mut client, "01");
    let ran = end_well(client);
    assert!(
        ran.stderr.contains("no telemetry is sent: `OTEL_EXPORTER_OTLP_ENDPOINT`"),
        "{}",
        ran.stderr
    );
    assert!(!ran.stderr.contains("pass"), "{}", ran.stderr);
}
