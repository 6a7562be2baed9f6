//! The fields of the output record besides its blocks, and the host's own observations.

use palisade::SideEffects;
use palisade_tests::Case;
use palisade_tests::guest::CONTRACT_OUTCOME;
use serde_json::json;

#[test]
fn metadata_is_for_the_program_and_never_for_the_model() {
    let seen = Case::new(CONTRACT_OUTCOME, "report").check();
    assert_eq!(seen.result["metadata"], json!({"stop_loop": true, "secret": {"of": "the caller"}}));
    assert_eq!(seen.output(), "2 of 3 tests pass");
}

#[test]
fn the_command_that_ran_is_in_the_result() {
    let seen = Case::new(CONTRACT_OUTCOME, "report").check();
    assert_eq!(seen.result["command_executed"], "make test");
}

#[test]
fn a_plugin_cannot_claim_changes_that_the_host_did_not_see() {
    let seen = Case::new(CONTRACT_OUTCOME, "report").check();
    seen.modified(&[]).changed_nothing();
    // Nor can it claim changes beyond the list, which the guest tries as well.
    assert_eq!(seen.result["metadata"]["files_modified_unlisted"], json!(null));
}

#[test]
fn a_plugin_cannot_hide_changes_that_the_host_saw() {
    let seen = Case::new(CONTRACT_OUTCOME, "touch").allow(SideEffects::Write).check();
    seen.modified(&["touched.txt"]).left("touched.txt", Some("12345"));
    assert_eq!(seen.result["usage"]["bytes_written"], 5);
}

#[test]
fn changes_are_reported_for_a_call_that_fails_as_well() {
    let seen = Case::new(CONTRACT_OUTCOME, "touch_and_fail").allow(SideEffects::Write).check();
    assert_eq!(seen.message("execution_error"), "half-way");
    seen.modified(&["touched.txt"]).left("touched.txt", Some("12345"));
}

#[test]
fn an_unsuccessful_outcome_is_a_failure_whose_message_is_its_text() {
    let seen = Case::new(CONTRACT_OUTCOME, "report").input(json!({"fail": true})).check();
    assert_eq!(seen.kind(), "unsuccessful");
    assert_eq!(seen.message("execution_error"), "2 of 3 tests pass");
    assert_eq!(seen.result["content"], json!([{"type": "text", "text": "2 of 3 tests pass"}]));
    assert_eq!(seen.result["metadata"]["stop_loop"], true);
    // The guest ran to its end, so the terminal event is a completion.
    assert_eq!(seen.events.last().map(palisade::Event::name), Some("tool.completed"));
}

#[test]
fn an_unsuccessful_outcome_without_words_still_says_something() {
    let seen =
        Case::new(CONTRACT_OUTCOME, "report").input(json!({"fail": true, "silent": true})).check();
    assert!(seen.message("execution_error").contains("without saying why"));
}

#[test]
fn the_result_names_the_plugin_and_its_digest() {
    let seen = Case::new(CONTRACT_OUTCOME, "report").check();
    let digest = palisade::tool::Digest::of(&std::fs::read(CONTRACT_OUTCOME.file()).unwrap());
    assert_eq!(seen.result["plugin"], "contract_outcome");
    assert_eq!(seen.result["digest"], digest.to_string());
}
