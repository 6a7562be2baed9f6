//! Requests to the client of a call: the answers, the refusals, and the failures that end the call.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use palisade::{
    AskFailure, AskKind, AskKinds, AskRequest, BoxFuture, Call, Client, Host, Requester,
    SideEffects, ToolResult,
};
use palisade_tests::Case;
use palisade_tests::case::block_on;
use palisade_tests::guest::CONTRACT_CLIENT;
use serde_json::{Value, json};

const ALL: [AskKind; 3] = [AskKind::Elicitation, AskKind::Sampling, AskKind::Roots];

type Answers = Box<dyn Fn(usize, &[AskRequest]) -> Result<Vec<String>, AskFailure> + Send + Sync>;

/// A client that answers as a test wants and records the requests.
struct Answering {
    kinds: AskKinds,
    takes: Duration,
    answers: Answers,
    heard: Mutex<Vec<Vec<AskRequest>>>,
}

impl Answering {
    fn new(kinds: &[AskKind], answers: Answers) -> Arc<Self> {
        Self::slowly(Duration::ZERO, kinds, answers)
    }

    fn slowly(takes: Duration, kinds: &[AskKind], answers: Answers) -> Arc<Self> {
        Arc::new(Self {
            kinds: kinds.iter().copied().collect(),
            takes,
            answers,
            heard: Mutex::default(),
        })
    }

    /// Returns a client that answers each request with its key.
    fn keys() -> Arc<Self> {
        Self::new(
            &ALL,
            Box::new(|_, requests| {
                Ok(requests.iter().map(|it| json!({"of": it.key}).to_string()).collect())
            }),
        )
    }
}

impl Client for Answering {
    fn kinds(&self) -> AskKinds {
        self.kinds.clone()
    }

    fn ask<'a>(
        &'a self,
        requests: Vec<AskRequest>,
    ) -> BoxFuture<'a, Result<Vec<String>, AskFailure>> {
        Box::pin(async move {
            if self.takes > Duration::ZERO {
                tokio::time::sleep(self.takes).await;
            }
            let number = self.heard.lock().unwrap().len();
            let answer = (self.answers)(number, &requests);
            self.heard.lock().unwrap().push(requests);
            answer
        })
    }
}

fn case(tool: &str, steps: Value) -> Case {
    Case::new(CONTRACT_CLIENT, tool).input(json!({"steps": steps})).allow(SideEffects::Write)
}

/// Makes one call with this client, and returns the world for inspection.
#[track_caller]
fn call_in(case: &Case, client: Arc<Answering>) -> (ToolResult, palisade_tests::World) {
    let world = case.world();
    let host: Host = case.builder(&world).build().unwrap();
    assert!(host.rejected().is_empty(), "{:?}", host.rejected());
    let call: Call = case.to_call(&world);
    let requester = Requester::default().with_client(client);
    let result = block_on(host.dispatch_as(host.session(), call, &requester));
    (result, world)
}

fn call(case: &Case, client: Arc<Answering>) -> ToolResult {
    call_in(case, client).0
}

/// Returns the results of the steps.
#[track_caller]
fn steps(steps: Value, client: Arc<Answering>) -> Value {
    let result = call(&case("ask", steps), client);
    let output = result.output().unwrap_or_else(|| panic!("{:#}", result.to_json()));
    serde_json::from_str(&output).unwrap()
}

fn question(key: &str, kind: &str) -> Value {
    json!({"key": key, "kind": kind, "params": {"message": key}})
}

/// Returns the reason of a step that was refused as invalid.
#[track_caller]
fn invalid(step: &Value) -> &str {
    step["invalid"].as_str().unwrap_or_else(|| panic!("it was not refused: {step}"))
}

#[test]
fn answers_have_the_order_of_the_questions() {
    let client = Answering::keys();
    let asked = json!([{"ask": [question("b", "sampling"), question("a", "elicitation")]}, {"ask": [question("b", "roots")]}]);
    assert_eq!(steps(asked, client.clone()), json!([[{"of": "b"}, {"of": "a"}], [{"of": "b"}]]));
    let heard = client.heard.lock().unwrap();
    let first: Vec<_> = heard[0].iter().map(|it| (it.key.as_str(), it.kind)).collect();
    assert_eq!(first, [("b", AskKind::Sampling), ("a", AskKind::Elicitation)]);
    assert_eq!(heard[0][0].params["message"], "b");
}

#[test]
fn missing_client_is_the_same_in_library_and_program() {
    let seen =
        case("ask", json!(["supported", {"need": []}, {"ask": [question("a", "roots")]}])).check();
    assert_eq!(seen.output(), r#"[[],"had","unavailable"]"#);
}

#[test]
fn unsupported_question_kinds_are_refused() {
    let client =
        || Answering::new(&[AskKind::Sampling], Box::new(|_, _| Ok(vec!["{}".to_owned()])));
    let ask = |kind: &str| json!({"ask": [question("a", kind)]});
    let done = steps(
        json!(["supported", ask("sampling"), ask("roots"), {"need": ["sampling"]}]),
        client(),
    );
    assert_eq!(done, json!([["sampling"], [{}], {"unsupported": "roots"}, "had"]));
}

#[test]
fn unmet_requirement_ends_the_call() {
    let client = Answering::new(&[AskKind::Sampling], Box::new(|_, _| Ok(Vec::new())));
    let needs = json!([{"need": ["sampling", "roots", "elicitation"]}]);
    let error = call(&case("ask", needs.clone()), client).to_json()["error"].clone();
    assert_eq!(error["class"], "execution_error");
    assert_eq!(
        error["detail"],
        json!({"reason": "client_lacks", "kinds": ["elicitation", "roots"]})
    );
    assert_eq!(
        error["message"],
        "the tool needs a client that can be asked for elicitation and roots"
    );
    let seen = case("ask", needs).check();
    assert_eq!(
        seen.error("execution_error")["detail"]["kinds"],
        json!(["elicitation", "sampling", "roots"])
    );
}

#[test]
fn client_refusals_reach_the_tool() {
    for (failure, expected) in [
        (AskFailure::Declined, json!("declined")),
        (AskFailure::Unavailable, json!("unavailable")),
        (AskFailure::Unsupported(AskKind::Roots), json!({"unsupported": "roots"})),
        (AskFailure::Invalid("no form".to_owned()), json!({"invalid": "no form"})),
    ] {
        let client = Answering::new(&ALL, Box::new(move |_, _| Err(failure.clone())));
        assert_eq!(steps(json!([{"ask": [question("a", "roots")]}]), client), json!([expected]));
    }
}

#[test]
fn question_after_the_first_change_is_refused() {
    for change in [json!({"write": "a.txt"}), json!({"touch": "a.txt"})] {
        let ask = json!({"ask": [question("a", "roots")]});
        let client = Answering::keys();
        let result = call(&case("ask_and_write", json!([ask, change, ask])), client.clone());
        let done: Value = serde_json::from_str(&result.output().unwrap()).unwrap();
        assert_eq!((&done[0], &done[2]), (&json!([{"of": "a"}]), &json!("too late")), "{change}");
        assert_eq!(client.heard.lock().unwrap().len(), 1);
    }
}

#[test]
fn call_asks_at_most_three_times() {
    let client = Answering::keys();
    let ask = json!({"ask": [question("a", "roots")]});
    let done = steps(json!([ask, ask, ask, ask]), client.clone());
    assert_eq!(done[2], json!([{"of": "a"}]));
    assert!(invalid(&done[3]).contains("at most 3 times"), "{done}");
    assert_eq!(client.heard.lock().unwrap().len(), 3);
}

#[test]
fn question_takes_one_to_eight_requests_with_unique_keys() {
    let ask = |keys: &[&str]| json!([{"ask": keys.iter().map(|key| question(key, "roots")).collect::<Vec<_>>()}]);
    let eight = ["a", "b", "c", "d", "e", "f", "g", "h"];
    assert_eq!(steps(ask(&eight), Answering::keys())[0].as_array().unwrap().len(), 8);
    for (keys, reason) in [
        (&["a", "b", "c", "d", "e", "f", "g", "h", "i"][..], "9 requests; 1 to 8"),
        (&[], "0 requests; 1 to 8"),
        (&["a", "a"], "two requests have the key `a`"),
        (&[""], "the key `` is not"),
        (&["a b"], "the key `a b` is not"),
        (&["palisade.confirm"], "begins with `palisade.`"),
    ] {
        let client = Answering::keys();
        let done = steps(ask(keys), client.clone());
        assert!(invalid(&done[0]).contains(reason), "{done}");
        assert!(client.heard.lock().unwrap().is_empty());
    }
    let long = "k".repeat(64);
    assert_eq!(steps(ask(&[&long]), Answering::keys())[0], json!([{"of": long}]));
    assert!(invalid(&steps(ask(&[&format!("{long}k")]), Answering::keys())[0]).contains("64"));
}

#[test]
fn parameters_are_an_object_of_at_most_256_kib() {
    let ask = |text: &str| json!([{"ask": [{"key": "a", "kind": "roots", "text": text}]}]);
    let filled = |bytes: usize| format!(r#"{{"a":"{}"}}"#, "x".repeat(bytes - 8));
    assert_eq!(steps(ask(&filled(256 << 10)), Answering::keys())[0], json!([{"of": "a"}]));
    for (text, reason) in [
        (filled((256 << 10) + 1), "262144 bytes together"),
        ("[]".to_owned(), "no JSON object"),
        ("{".to_owned(), "no JSON object"),
        (r#"{"a":1,"a":2}"#.to_owned(), "no JSON object"),
    ] {
        assert!(invalid(&steps(ask(&text), Answering::keys())[0]).contains(reason), "{reason}");
    }
}

#[test]
fn answers_of_a_call_have_at_most_256_kib() {
    let answer = |bytes: usize| format!(r#""{}""#, "x".repeat(bytes - 2));
    let half = || -> Answers { Box::new(move |_, _| Ok(vec![answer(128 << 10)])) };
    let ask = json!({"ask": [question("a", "roots")]});
    let done = steps(json!([ask, ask, ask]), Answering::new(&ALL, half()));
    assert_eq!(done[1][0].as_str().unwrap().len(), (128 << 10) - 2);
    assert!(invalid(&done[2]).contains("262144 bytes together"));
}

#[test]
fn deferred_answer_ends_the_call_without_changes() {
    for (failure, class, detail) in [
        (AskFailure::Later, "cancelled", json!({"reason": "awaits_client"})),
        (AskFailure::Changed, "execution_error", json!({"kind": "contract"})),
    ] {
        let client = Answering::new(&ALL, Box::new(move |_, _| Err(failure.clone())));
        let steps = json!([{"ask": [question("a", "roots")]}, {"write": "after.txt"}]);
        let (result, world) = call_in(&case("ask_and_write", steps), client);
        let error = result.to_json()["error"].clone();
        assert_eq!((error["class"].as_str().unwrap(), &error["detail"]), (class, &detail));
        assert_eq!(world.read("after.txt"), None);
    }
}

#[test]
fn call_clock_stands_still_during_a_question() {
    let slow = || {
        Answering::slowly(
            Duration::from_millis(900),
            &ALL,
            Box::new(|_, _| Ok(vec!["{}".to_owned()])),
        )
    };
    let timed = |then: Value| {
        let steps = json!([{"ask": [question("a", "roots")]}, then]);
        call(&case("ask", steps).timeout(Duration::from_millis(600)), slow()).to_json()
    };
    let within = timed(json!({"spin": 10}));
    assert_eq!(within["success"], true, "{within:#}");
    assert!(
        within["duration_ms"].as_f64().unwrap() < 600.0,
        "its waiting time is not its own time: {within:#}"
    );
    assert_eq!(timed(json!({"spin": 60_000}))["error"]["class"], "timeout");
}
