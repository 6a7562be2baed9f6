//! Cases through `palisade serve`: the bounds of the oracle for another process, with concurrent
//! pings and benign calls.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::lateness::Lateness;
use super::peak::{HOST_ROOM, Peak};
use super::ping::SILENCE;
use super::rounds::SETTLING;
use super::{SLACK, turn};
use crate::case::{Case, PATIENCE};
use crate::mcp::Client;

/// The number of calls of one client that the server runs at once.
const WIDTH: usize = 4;
/// The pause between two pings.
const PERIOD: Duration = Duration::from_millis(10);

/// The result of a case through `palisade serve`.
#[derive(Debug)]
pub struct Served {
    /// The responses to the calls, in the order of the calls.
    pub answers: Vec<Value>,
}

/// Makes `calls` concurrent calls of a case through `palisade serve`, and checks every bound: the
/// calls are answered in time, as are concurrent pings and benign calls; the process grows by no
/// more than the calls' memory and a constant for the host, and releases it afterwards.
///
/// # Panics
///
/// If a bound is exceeded.
#[must_use]
#[track_caller]
pub fn served(case: &Case, calls: usize) -> Served {
    let _turn = turn();
    let world = case.world();
    let options = case.running();
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let mut client = Client::start_with(case.server(&world), &options).shake_hands(&json!({}));
    until_listed(&mut client, case.tool());
    // Make a benign call first, so that resources that are created once, such as a plugin's code in
    // memory, exist before the first measurement.
    let _ = silence(&mut client, true);
    let (peak, late, start) =
        (Peak::of_process(client.process()), Lateness::watched(), Instant::now());
    let call = json!({"name": case.tool(), "arguments": case.arguments(&world)});
    let ids: Vec<u64> = (0..calls).map(|_| client.begin("tools/call", &call)).collect();
    let (answers, longest) = answered(&mut client, &ids, start);
    let late = late.worst();
    let took = answers.values().map(|(took, _)| *took).max().unwrap_or_default();
    let mut broken: Vec<String> =
        peak.beyond(case.bytes() * calls.min(WIDTH)).into_iter().collect();
    let (silence_allowed, allowed) = (SILENCE + late * 4, case.time() + SLACK + late * 4);
    if longest > silence_allowed {
        broken.push(format!(
            "a ping beside it got no answer for {longest:?}, and {silence_allowed:?} were allowed"
        ));
    }
    if took > allowed {
        broken.push(format!("an answer took {took:?}, and {allowed:?} were allowed"));
    }
    broken.extend(kept(&peak));
    let (ran, _) = client.end();
    assert!(
        broken.is_empty(),
        "invariants of every server are violated:\n  {}",
        broken.join("\n  ")
    );
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    Served { answers: answers.into_values().map(|(_, answer)| answer).collect() }
}

/// Waits until both tools are listed: the server compiles plugins in the background.
fn until_listed(client: &mut Client, tool: &str) {
    let start = Instant::now();
    loop {
        let listed = client.request("tools/list", &json!({}));
        let tools = listed["result"]["tools"].as_array().cloned().unwrap_or_default();
        if [tool, "echo"].iter().all(|name| tools.iter().any(|tool| tool["name"] == *name)) {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "the tools are never listed: {listed}");
        let heard = client.receive_within(PERIOD);
        client.pending.extend(heard);
    }
}

/// Sends pings until each call is answered. Returns the responses with their times, and the longest
/// time without a response to a ping.
fn answered(
    client: &mut Client,
    ids: &[u64],
    start: Instant,
) -> (BTreeMap<u64, (Duration, Value)>, Duration) {
    let (mut answers, mut longest) = (BTreeMap::new(), Duration::ZERO);
    while answers.len() < ids.len() {
        // With `WIDTH` calls in flight, a benign call of this client waits in the queue. Only pings
        // are measured then.
        longest = longest.max(silence(client, ids.len() < WIDTH));
        let heard = client.receive_within(PERIOD);
        client.pending.extend(heard);
        let is_answer =
            |message: &Value| message["id"].as_u64().is_some_and(|id| ids.contains(&id));
        let (found, rest) = std::mem::take(&mut client.pending).into_iter().partition(is_answer);
        client.pending = rest;
        for answer in found {
            answers.insert(answer["id"].as_u64().unwrap_or_default(), (start.elapsed(), answer));
        }
        assert!(
            start.elapsed() < PATIENCE,
            "{} of {} calls are answered",
            answers.len(),
            ids.len()
        );
    }
    (answers, longest)
}

/// Returns the time of a ping, or of a benign call if that takes longer and `calls` is set.
fn silence(client: &mut Client, calls: bool) -> Duration {
    let start = Instant::now();
    let pong = client.request("ping", &json!({}));
    assert!(pong["error"].is_null(), "a ping fails: {pong}");
    let ping = start.elapsed();
    if !calls {
        return ping;
    }
    let start = Instant::now();
    let answer =
        client.request("tools/call", &json!({"name": "echo", "arguments": {"text": "beside"}}));
    assert_eq!(answer["result"]["content"][0]["text"], "beside", "a benign call fails: {answer}");
    ping.max(start.elapsed())
}

/// Returns a complaint if the server does not release its memory after the calls.
fn kept(peak: &Peak) -> Option<String> {
    let deadline = Instant::now() + SETTLING;
    while peak.left() > HOST_ROOM {
        if Instant::now() >= deadline {
            return Some(format!("the process keeps {} MiB after all calls", peak.left() >> 20));
        }
        // Poll: the kernel does not report the release of memory.
        std::thread::park_timeout(Duration::from_millis(5));
    }
    None
}
