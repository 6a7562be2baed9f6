//! Tests that confirmations and answers count for the code that they were given for, and for no
//! other.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use super::*;
use palisade::confirm::{DisplayedFiles, RequestId};
use palisade::sandbox::limits;
use palisade::{AskKind, CallId, SideEffects};
use serde_json::json;
use std::time::SystemTime;

const FIRST: Option<Digest> = Some(Digest::from_bytes([1; 32]));
const OTHER: Option<Digest> = Some(Digest::from_bytes([2; 32]));
const WITHIN: Duration = Duration::from_secs(300);

fn purpose() -> Purpose {
    Purpose::new("client", "tool", &json!({}))
}

fn with(state: &str, responses: &[(&str, Value)]) -> RoundInput {
    let responses =
        responses.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
    RoundInput { state: Some(state.to_owned()), responses }
}

fn begin(signer: &StateSigner, code: Option<Digest>, input: RoundInput) -> Round {
    begun(signer, code, input).unwrap()
}

fn begun(
    signer: &StateSigner,
    code: Option<Digest>,
    input: RoundInput,
) -> Result<Round, RoundError> {
    let confirmed_by = ConfirmedBy::ClientOrHost;
    let subject = Subject { code, plugin: "forms".to_owned(), confirmed_by, programs: None };
    let kinds = AskKinds::from([AskKind::Elicitation]);
    Round::begin(signer, Some(&purpose()), kinds, subject, input)
}

fn state(round: &Round, signer: &StateSigner) -> String {
    round.input_required(signer, purpose(), WITHIN).unwrap().request_state.unwrap()
}

fn request(code: Option<Digest>) -> ConfirmationRequest {
    ConfirmationRequest {
        id: RequestId::new("cr"),
        call_id: CallId::new("c"),
        session_id: None,
        turn_id: None,
        tool: "tool".into(),
        side_effects: SideEffects::Write,
        called_by: None,
        input_summary: "{}".into(),
        input: None,
        input_bytes: 2,
        projected_modifications: Vec::new(),
        displayed: DisplayedFiles::default(),
        plugin: Some("forms".into()),
        digest: code,
        grants: Vec::new(),
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

fn is_later(asked: &CallAnswer) -> bool {
    matches!(asked, CallAnswer::Deferred)
}

fn is_allowed(asked: &CallAnswer) -> bool {
    matches!(asked, CallAnswer::Answered(Answer::Allow))
}

/// Returns a state after a confirmation request for this code.
fn asked_about(signer: &StateSigner, code: Option<Digest>) -> String {
    let round = begin(signer, code, RoundInput::default());
    assert!(is_later(&round.confirm(&request(code))));
    state(&round, signer)
}

#[test]
fn yes_applies_to_the_confirmed_code() {
    let signer = StateSigner::new().unwrap();
    let round = begin(&signer, FIRST, with(&asked_about(&signer, FIRST), &[yes()]));
    assert!(is_allowed(&round.confirm(&request(FIRST))));
    assert!(is_allowed(&round.confirm(&request(FIRST))), "and for the rest of the call");
}

#[test]
fn yes_does_not_apply_to_changed_code() {
    let signer = StateSigner::new().unwrap();
    let answered = || with(&asked_about(&signer, FIRST), &[yes()]);
    // The code changed before the call was repeated.
    for runs in [OTHER, FIRST, None] {
        let round = begin(&signer, OTHER, answered());
        assert!(is_later(&round.confirm(&request(runs))), "{runs:?}");
    }
    // The code changes during the call, before the answer is used and after it.
    for runs in [OTHER, None] {
        let round = begin(&signer, FIRST, answered());
        assert!(is_later(&round.confirm(&request(runs))), "{runs:?}");
        let round = begin(&signer, FIRST, answered());
        assert!(is_allowed(&round.confirm(&request(FIRST))));
        assert!(is_later(&round.confirm(&request(runs))), "{runs:?}");
        assert!(is_later(&round.confirm(&request(FIRST))), "what was allowed is so no more");
    }
}

#[test]
fn new_question_about_changed_code_is_answered_for_it() {
    let signer = StateSigner::new().unwrap();
    let round = begin(&signer, FIRST, with(&asked_about(&signer, FIRST), &[yes()]));
    assert!(is_later(&round.confirm(&request(OTHER))));
    let one = state(&round, &signer);
    let other = asked_about(&signer, OTHER);
    for state in [one, other] {
        let round = begin(&signer, OTHER, with(&state, &[yes()]));
        assert!(is_allowed(&round.confirm(&request(OTHER))));
    }
}

/// Returns a state after one answered question of this code's plugin, with another one open.
fn told(signer: &StateSigner, code: Option<Digest>) -> String {
    let round = begin(signer, code, RoundInput::default());
    assert_eq!(round.answers(&who()), Err(AskFailure::Later));
    let round = begin(signer, code, with(&state(&round, signer), &[name("Ann")]));
    assert_eq!(round.answers(&who()), Ok(vec![r#"{"name":"Ann"}"#.to_owned()]));
    assert_eq!(round.answers(&who()), Err(AskFailure::Later));
    state(&round, signer)
}

#[test]
fn answers_are_not_passed_to_changed_code() {
    let signer = StateSigner::new().unwrap();
    let round = begin(&signer, FIRST, with(&told(&signer, FIRST), &[name("Bob")]));
    assert_eq!(round.answers(&who()), Ok(vec![r#"{"name":"Ann"}"#.to_owned()]));
    assert_eq!(round.answers(&who()), Ok(vec![r#"{"name":"Bob"}"#.to_owned()]));
    // Neither the earlier answer nor the new one.
    let round = begin(&signer, OTHER, with(&told(&signer, FIRST), &[name("Bob")]));
    assert_eq!(round.answers(&who()), Err(AskFailure::Later));
    // The code changes during the call.
    let round = begin(&signer, FIRST, with(&told(&signer, FIRST), &[name("Bob"), yes()]));
    assert!(is_later(&round.confirm(&request(OTHER))));
    assert_eq!(round.answers(&who()), Err(AskFailure::Later));
}

#[test]
fn rounds_with_changed_code_are_counted() {
    let signer = StateSigner::new().unwrap();
    let mut input = RoundInput::default();
    for number in 0..MAX_ROUNDS {
        let (begun, runs) = if number % 2 == 0 { (FIRST, OTHER) } else { (OTHER, FIRST) };
        let round = begin(&signer, begun, input);
        assert!(is_later(&round.confirm(&request(runs))), "{number}");
        input = with(&state(&round, &signer), &[]);
    }
    let begun = begun(&signer, FIRST, input);
    assert_eq!(begun.err(), Some(RoundError::TooMany(MAX_ROUNDS)));
}

#[test]
fn answers_are_bounded_together() {
    let empty = name("").1.to_string().len();
    for (length, fits) in [(limits::ASKED - empty, true), (limits::ASKED - empty + 1, false)] {
        let signer = StateSigner::new().unwrap();
        let round = begin(&signer, FIRST, RoundInput::default());
        assert_eq!(round.answers(&who()), Err(AskFailure::Later));
        let round =
            begin(&signer, FIRST, with(&state(&round, &signer), &[name(&"x".repeat(length))]));
        let answered = round.answers(&who());
        assert_eq!(answered.is_ok(), fits, "{length}");
        assert_eq!(matches!(answered, Err(AskFailure::Invalid(_))), !fits, "{length}");
    }
}
