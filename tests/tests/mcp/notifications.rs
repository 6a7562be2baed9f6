//! Notifications during a call: progress for clients that asked for it, and logs from the requested
//! level up.

use super::{call, plain};
use palisade_tests::World;
use palisade_tests::guest::{CONTRACT_ERRORS, CONTRACT_HOST, LIMITS_OUTPUT};
use palisade_tests::program::Program;
use serde_json::{Value, json};

/// The output of the tool `speak`, which arrives in any number of parts.
const OUTPUT: &str = "first second";

/// Returns the levels and texts of the log messages of `speak`, without its output.
fn logged(messages: &[&Value]) -> Vec<(String, String)> {
    let field = |message: &Value, name: &str| message["params"][name].as_str().unwrap().to_owned();
    let all = messages.iter().map(|message| (field(message, "level"), field(message, "data")));
    all.filter(|(_, text)| !OUTPUT.contains(text)).collect()
}

fn pairs(of: &[(&str, &str)]) -> Vec<(String, String)> {
    of.iter().map(|(level, text)| ((*level).to_owned(), (*text).to_owned())).collect()
}

#[test]
fn progress_has_the_calls_token_and_precedes_its_answer() {
    let world = World::new();
    for token in [json!("a-token"), json!(7)] {
        let mut client = plain(&world, CONTRACT_HOST);
        let mut params = call("speak", json!({}));
        params["_meta"] = json!({"progressToken": token});
        let answer = client.request("tools/call", &params);
        assert!(answer["result"].is_object(), "{answer}");
        // Logs arrive as well.
        let before = std::mem::take(&mut client.pending);
        let told = before.iter().filter(|message| message["method"] == "notifications/progress");
        let is_output =
            |params: &&Value| params["message"].as_str().is_some_and(|text| OUTPUT.contains(text));
        let told = told.map(|message| &message["params"]).filter(|params| !is_output(params));
        let told: Vec<&Value> = told.collect();
        let expected = [
            json!({"progressToken": token, "progress": 1.0}),
            json!({"progressToken": token, "progress": 2.0, "total": 4.0, "message": "half"}),
        ];
        assert_eq!(told, expected.iter().collect::<Vec<_>>());
        let (_, rest) = client.end();
        assert!(rest.is_empty(), "nothing comes after the answer: {rest:?}");
    }
}

/// Returns the text that the messages of a call have in this place.
fn merged(client: &palisade_tests::mcp::Client, method: &str, place: &str) -> String {
    let text = |message: &&Value| message.pointer(place)?.as_str().map(str::to_owned);
    client.received(method).iter().filter_map(text).collect()
}

#[test]
fn output_arrives_as_progress_with_increasing_values() {
    let world = World::new();
    let mut client = plain(&world, LIMITS_OUTPUT);
    let mut params = call("emit", json!({"bytes": 8 << 10}));
    params["_meta"] = json!({"progressToken": 1});
    client.request("tools/call", &params);
    let steps = client.received("notifications/progress");
    let values: Vec<f64> =
        steps.iter().map(|step| step["params"]["progress"].as_f64().unwrap()).collect();
    assert!(values.windows(2).all(|pair| pair[0] < pair[1]), "{values:?}");
    let output = merged(&client, "notifications/progress", "/params/message");
    assert_eq!(output, "m".repeat(8 << 10));
    assert_eq!(merged(&client, "notifications/message", "/params/data"), "");
}

#[test]
fn output_arrives_in_the_log_without_a_token() {
    let world = World::new();
    let mut client = plain(&world, LIMITS_OUTPUT);
    client.request("tools/call", &call("emit", json!({"bytes": 8 << 10})));
    let output = merged(&client, "notifications/message", "/params/data");
    assert_eq!(output, "m".repeat(8 << 10));
    client.pending.clear();
    client.request("logging/setLevel", &json!({"level": "warning"}));
    client.request("tools/call", &call("emit", json!({"bytes": 8 << 10})));
    assert!(client.received("notifications/message").is_empty(), "output is of level info");
}

#[test]
fn output_flood_is_merged_and_its_omissions_counted() {
    let world = World::new();
    let mut client = plain(&world, LIMITS_OUTPUT);
    let mut params = call("emit", json!({"bytes": 1 << 20}));
    params["_meta"] = json!({"progressToken": 1});
    client.request("tools/call", &params);
    let steps = client.received("notifications/progress").len();
    assert!((1..=100).contains(&steps), "{steps} messages");
    let output = merged(&client, "notifications/progress", "/params/message");
    let omitted = output.split('[').filter_map(|part| part.split_once(" bytes left out]"));
    let omitted: usize = omitted.map(|(count, _)| count.parse::<usize>().unwrap()).sum();
    assert_eq!(output.matches('m').count() + omitted, 1 << 20);
}

#[test]
fn log_of_a_tool_reaches_the_log_of_the_server() {
    let world = World::new();
    let said = |program: Program<'_>| {
        let mut client = palisade_tests::mcp::Client::legacy(program, &json!({}));
        client.request("tools/call", &call("speak", json!({})));
        client.end().0.stderr
    };
    let serving = || super::serving(&world, CONTRACT_HOST);
    let usual = said(serving());
    for line in ["WARN four call=", "ERROR five call=", "tool=\"speak\""] {
        assert!(usual.contains(line), "{line}: {usual}");
    }
    assert!(!usual.contains("three"), "{usual}");
    let all = said(serving().env("PALISADE_LOG", "palisade::tool=trace"));
    for line in ["TRACE", "one", "DEBUG", "two", "INFO", "three"] {
        assert!(all.contains(line), "{line}: {all}");
    }
    let verbose = said(serving().args(["--verbose"]));
    assert_eq!(verbose.matches("five").count(), 1, "{verbose}");
}

#[test]
fn progress_requires_a_token() {
    let world = World::new();
    let mut client = plain(&world, CONTRACT_HOST);
    client.request("tools/call", &call("speak", json!({})));
    assert!(client.received("notifications/progress").is_empty());
}

#[test]
fn legacy_client_gets_the_log_from_its_level() {
    let world = World::new();
    let mut client = plain(&world, CONTRACT_HOST);
    client.request("tools/call", &call("speak", json!({})));
    let usual = [("info", "three"), ("warning", "four"), ("error", "five")];
    assert_eq!(logged(&client.received("notifications/message")), pairs(&usual));
    assert_eq!(client.received("notifications/message")[0]["params"]["logger"], "contract_host");
    for (level, heard) in [
        (
            "debug",
            &[
                ("debug", "one"),
                ("debug", "two"),
                ("info", "three"),
                ("warning", "four"),
                ("error", "five"),
            ][..],
        ),
        ("notice", &[("warning", "four"), ("error", "five")]),
        ("critical", &[]),
    ] {
        assert_eq!(
            client.request("logging/setLevel", &json!({"level": level}))["result"],
            json!({})
        );
        client.pending.clear();
        client.request("tools/call", &call("speak", json!({})));
        assert_eq!(logged(&client.received("notifications/message")), pairs(heard), "{level}");
    }
    assert_eq!(
        client.request("logging/setLevel", &json!({"level": "loud"}))["error"]["code"],
        -32602
    );
}

#[test]
fn modern_client_gets_the_log_of_the_requesting_call() {
    let world = World::new();
    let mut client = palisade_tests::mcp::Client::start(super::serving(&world, CONTRACT_HOST));
    client.request_modern("tools/call", call("speak", json!({})), &json!({}));
    assert!(client.received("notifications/message").is_empty());
    let mut params = call("speak", json!({}));
    params["_meta"] = json!({"io.modelcontextprotocol/logLevel": "warning"});
    client.request_modern("tools/call", params, &json!({}));
    assert_eq!(
        logged(&client.received("notifications/message")),
        pairs(&[("warning", "four"), ("error", "five")])
    );
}

#[test]
fn message_flood_is_cut_and_the_answer_arrives() {
    let world = World::new();
    let mut client = plain(&world, LIMITS_OUTPUT);
    let answer = client.request("tools/call", &call("log", json!({"bytes": 1 << 20})));
    assert!(answer["result"].is_object(), "{answer}");
    let heard = client.received("notifications/message").len();
    assert!((1..=120).contains(&heard), "{heard} messages");
}

#[test]
fn unread_log_of_a_verbose_server_delays_no_answer() {
    let world = World::new();
    let program = super::serving(&world, LIMITS_OUTPUT).args(["--verbose"]);
    // Its standard error is a pipe that is read only at the end.
    let mut client = palisade_tests::mcp::Client::legacy(program, &json!({}));
    for _ in 0..4 {
        let answer = client.request("tools/call", &call("log", json!({"bytes": 1 << 20})));
        assert!(answer["result"].is_object(), "{answer}");
        assert!(client.request("ping", &json!({}))["result"].is_object());
    }
    let said = client.end().0.stderr;
    assert!(said.len() < 128 << 10, "{} bytes", said.len());
}

#[test]
fn verbose_server_logs_requests_without_contents() {
    let world = World::new();
    let verbose = super::serving(&world, CONTRACT_ERRORS).args(["--verbose"]);
    let said = said_of_two_calls(verbose);
    for line in [
        "initialize: ok, ",
        "tools/list: ok, ",
        "tools/call fail: execution_error, ",
        "tools/call surely_not: error -32602, ",
    ] {
        assert!(
            said.lines().any(|it| it.trim_start().starts_with(&format!("DEBUG {line}"))),
            "{line}: {said}"
        );
    }
    assert!(!said.contains("not-found") && !said.contains("no such thing"), "{said}");
    let quiet = said_of_two_calls(super::serving(&world, CONTRACT_ERRORS));
    assert!(!quiet.contains("tools/call"), "{quiet}");
}

/// Returns standard error after a list, a failing call, and a call of an unknown tool.
fn said_of_two_calls(program: Program<'_>) -> String {
    let mut client = palisade_tests::mcp::Client::legacy(program, &json!({}));
    client.request("tools/list", &json!({}));
    client.request("tools/call", &call("fail", json!({"with": "not-found"})));
    client.request("tools/call", &call("surely_not", json!({})));
    client.end().0.stderr
}

#[test]
fn log_line_has_the_callers_trace() {
    let world = World::new();
    let program = super::serving(&world, CONTRACT_ERRORS).env("PALISADE_LOG", "palisade=debug");
    let mut client = palisade_tests::mcp::Client::legacy(program, &json!({}));
    let mut params = call("fail", json!({"with": "failed"}));
    let (trace, span) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
    params["_meta"] = json!({"traceparent": format!("00-{trace}-{span}-01")});
    client.request("tools/call", &params);
    let (ran, _) = client.end();
    let line = ran
        .stderr
        .lines()
        .find(|line| line.contains("tools/call fail: "))
        .unwrap_or_else(|| panic!("{}", ran.stderr));
    for part in [trace, span, "execution_error", "execute_tool", "gen_ai.tool.name", "pipe"] {
        assert!(line.contains(part), "{part}: {line}");
    }
}
