//! Tests that confirmations and answers count for the code that they were given for, and for no
//! other.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use super::*;
use palisade::confirm::RequestId;
use palisade::tool::{CallId, SideEffects};
use serde_json::json;
use std::time::SystemTime;

const FIRST: Option<Digest> = Some(Digest::from_bytes([1; 32]));
const OTHER: Option<Digest> = Some(Digest::from_bytes([2; 32]));
const WITHIN: Duration = Duration::from_secs(300);

fn purpose() -> Purpose {
    Purpose::of("client", "tool", &json!({}))
}

/// The state and the answers that a client sends.
struct Brought {
    state: Option<String>,
    responses: InputResponses,
}

fn nothing() -> Brought {
    Brought { state: None, responses: InputResponses::new() }
}

fn with(state: &str, responses: &[(&str, Value)]) -> Brought {
    let responses =
        responses.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
    Brought { state: Some(state.to_owned()), responses }
}

fn begin(sealer: &Sealer, code: Option<Digest>, brought: Brought) -> Rounds {
    let subject = Subject { code, plugin: "forms".to_owned() };
    let kinds = AskKinds::from([AskKind::Elicitation]);
    Rounds::begin(
        sealer,
        Some(&purpose()),
        kinds,
        subject,
        brought.state.as_deref(),
        brought.responses,
    )
    .unwrap()
}

fn state(rounds: &Rounds, sealer: &Sealer) -> String {
    rounds.required(sealer, purpose(), WITHIN).unwrap().request_state.unwrap()
}

fn request(code: Option<Digest>) -> ConfirmationRequest {
    ConfirmationRequest {
        id: RequestId::new("cr"),
        call_id: CallId::new("c"),
        session_id: None,
        turn_id: None,
        tool: "tool".into(),
        side_effects: SideEffects::Write,
        input_summary: "{}".into(),
        projected_modifications: Vec::new(),
        plugin: Some("forms".into()),
        digest: code,
        valid_for: WITHIN,
        expires: SystemTime::UNIX_EPOCH,
    }
}

fn yes() -> (&'static str, Value) {
    (CONFIRM, json!({"action": "accept", "content": {"decision": "allow_once"}}))
}

fn name(name: &str) -> (&'static str, Value) {
    ("who", json!({"action": "accept", "content": {"name": name}}))
}

/// The plugin's only question.
fn who() -> [AskRequest; 1] {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let params = json!({"message": "Who?", "requestedSchema": schema});
    [AskRequest {
        key: "who".into(),
        kind: AskKind::Elicitation,
        params: params.as_object().unwrap().clone(),
    }]
}

fn is_later(asked: &Asked) -> bool {
    matches!(asked, Asked::Later)
}

fn is_allowed(asked: &Asked) -> bool {
    matches!(asked, Asked::Answered(Answer::Allow))
}

/// Returns a state after a confirmation request for this code.
fn asked_about(sealer: &Sealer, code: Option<Digest>) -> String {
    let rounds = begin(sealer, code, nothing());
    assert!(is_later(&rounds.confirmed(&request(code))));
    state(&rounds, sealer)
}

#[test]
fn yes_applies_to_the_confirmed_code() {
    let sealer = Sealer::new().unwrap();
    let rounds = begin(&sealer, FIRST, with(&asked_about(&sealer, FIRST), &[yes()]));
    assert!(is_allowed(&rounds.confirmed(&request(FIRST))));
    assert!(is_allowed(&rounds.confirmed(&request(FIRST))), "and for the rest of the call");
}

#[test]
fn yes_does_not_apply_to_changed_code() {
    let sealer = Sealer::new().unwrap();
    let answered = || with(&asked_about(&sealer, FIRST), &[yes()]);
    // The code changed before the call was repeated.
    for runs in [OTHER, FIRST, None] {
        let rounds = begin(&sealer, OTHER, answered());
        assert!(is_later(&rounds.confirmed(&request(runs))), "{runs:?}");
    }
    // The code changes during the call, before the answer is used and after it.
    for runs in [OTHER, None] {
        let rounds = begin(&sealer, FIRST, answered());
        assert!(is_later(&rounds.confirmed(&request(runs))), "{runs:?}");
        let rounds = begin(&sealer, FIRST, answered());
        assert!(is_allowed(&rounds.confirmed(&request(FIRST))));
        assert!(is_later(&rounds.confirmed(&request(runs))), "{runs:?}");
        assert!(is_later(&rounds.confirmed(&request(FIRST))), "what was allowed is so no more");
    }
}

#[test]
fn new_question_about_changed_code_is_answered_for_it() {
    let sealer = Sealer::new().unwrap();
    let rounds = begin(&sealer, FIRST, with(&asked_about(&sealer, FIRST), &[yes()]));
    assert!(is_later(&rounds.confirmed(&request(OTHER))));
    let one = state(&rounds, &sealer);
    let other = asked_about(&sealer, OTHER);
    for state in [one, other] {
        let rounds = begin(&sealer, OTHER, with(&state, &[yes()]));
        assert!(is_allowed(&rounds.confirmed(&request(OTHER))));
    }
}

/// Returns a state after one answered question of this code's plugin, with another one open.
fn told(sealer: &Sealer, code: Option<Digest>) -> String {
    let rounds = begin(sealer, code, nothing());
    assert_eq!(rounds.answered(&who()), Err(AskFailure::Later));
    let rounds = begin(sealer, code, with(&state(&rounds, sealer), &[name("Ann")]));
    assert_eq!(rounds.answered(&who()), Ok(vec![r#"{"name":"Ann"}"#.to_owned()]));
    assert_eq!(rounds.answered(&who()), Err(AskFailure::Later));
    state(&rounds, sealer)
}

#[test]
fn answers_are_not_passed_to_changed_code() {
    let sealer = Sealer::new().unwrap();
    let rounds = begin(&sealer, FIRST, with(&told(&sealer, FIRST), &[name("Bob")]));
    assert_eq!(rounds.answered(&who()), Ok(vec![r#"{"name":"Ann"}"#.to_owned()]));
    assert_eq!(rounds.answered(&who()), Ok(vec![r#"{"name":"Bob"}"#.to_owned()]));
    // Neither the earlier answer nor the new one.
    let rounds = begin(&sealer, OTHER, with(&told(&sealer, FIRST), &[name("Bob")]));
    assert_eq!(rounds.answered(&who()), Err(AskFailure::Later));
    // The code changes during the call.
    let rounds = begin(&sealer, FIRST, with(&told(&sealer, FIRST), &[name("Bob"), yes()]));
    assert!(is_later(&rounds.confirmed(&request(OTHER))));
    assert_eq!(rounds.answered(&who()), Err(AskFailure::Later));
}

#[test]
fn rounds_with_changed_code_are_counted() {
    let sealer = Sealer::new().unwrap();
    let mut brought = nothing();
    for round in 0..ROUNDS {
        let (begun, runs) = if round % 2 == 0 { (FIRST, OTHER) } else { (OTHER, FIRST) };
        let rounds = begin(&sealer, begun, brought);
        assert!(is_later(&rounds.confirmed(&request(runs))), "{round}");
        brought = with(&state(&rounds, &sealer), &[]);
    }
    let subject = Subject { code: FIRST, plugin: "forms".to_owned() };
    let kinds = AskKinds::from([AskKind::Elicitation]);
    let state = brought.state.as_deref();
    let begun = Rounds::begin(&sealer, Some(&purpose()), kinds, subject, state, brought.responses);
    assert_eq!(begun.err(), Some(NoRound::TooMany));
}

#[test]
fn answers_are_bounded_together() {
    let empty = name("").1.to_string().len();
    for (length, fits) in [(limits::ASKED - empty, true), (limits::ASKED - empty + 1, false)] {
        let sealer = Sealer::new().unwrap();
        let rounds = begin(&sealer, FIRST, nothing());
        assert_eq!(rounds.answered(&who()), Err(AskFailure::Later));
        let rounds =
            begin(&sealer, FIRST, with(&state(&rounds, &sealer), &[name(&"x".repeat(length))]));
        let answered = rounds.answered(&who());
        assert_eq!(answered.is_ok(), fits, "{length}");
        assert_eq!(matches!(answered, Err(AskFailure::Invalid(_))), !fits, "{length}");
    }
}
