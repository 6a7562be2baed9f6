//! The fields of the output record besides its blocks, and the host's own observations.

use palisade::SideEffects;
use palisade_tests::Case;
use palisade_tests::guest::CONTRACT_OUTCOME;
use serde_json::json;

#[test]
fn metadata_reaches_the_program_and_never_the_model() {
    let seen = Case::new(CONTRACT_OUTCOME, "report").check();
    assert_eq!(seen.result["metadata"], json!({"stop_loop": true, "secret": {"of": "the caller"}}));
    assert_eq!(seen.output(), "2 of 3 tests pass");
}

#[test]
fn executed_command_is_in_the_result() {
    let seen = Case::new(CONTRACT_OUTCOME, "report").check();
    assert_eq!(seen.result["command_executed"], "make test");
}

#[test]
fn claimed_changes_unseen_by_the_host_are_dropped() {
    let seen = Case::new(CONTRACT_OUTCOME, "report").check();
    seen.modified(&[]).changed_nothing();
    // Nor can it claim changes beyond the list, which the guest tries as well.
    assert_eq!(seen.result["metadata"]["files_modified_unlisted"], json!(null));
}

#[test]
fn observed_changes_cannot_be_hidden() {
    let seen = Case::new(CONTRACT_OUTCOME, "touch").allow(SideEffects::Write).check();
    seen.modified(&["touched.txt"]).left("touched.txt", Some("12345"));
    assert_eq!(seen.result["usage"]["bytes_written"], 5);
}

#[test]
fn changes_of_a_failed_call_are_reported() {
    let seen = Case::new(CONTRACT_OUTCOME, "touch_and_fail").allow(SideEffects::Write).check();
    assert_eq!(seen.message("execution_error"), "half-way");
    seen.modified(&["touched.txt"]).left("touched.txt", Some("12345"));
}

#[test]
fn unsuccessful_output_is_a_failure_with_its_text() {
    let seen = Case::new(CONTRACT_OUTCOME, "report").input(json!({"fail": true})).check();
    assert_eq!(seen.kind(), "unsuccessful");
    assert_eq!(seen.message("execution_error"), "2 of 3 tests pass");
    assert_eq!(seen.result["content"], json!([{"type": "text", "text": "2 of 3 tests pass"}]));
    assert_eq!(seen.result["metadata"]["stop_loop"], true);
    // The guest ran to its end, so the terminal event is a completion.
    assert_eq!(seen.events.last().map(palisade::events::Event::name), Some("tool.completed"));
}

#[test]
fn unsuccessful_output_without_text_has_a_message() {
    let seen =
        Case::new(CONTRACT_OUTCOME, "report").input(json!({"fail": true, "silent": true})).check();
    assert!(seen.message("execution_error").contains("without saying why"));
}

#[test]
fn result_names_the_plugin_and_its_digest() {
    let seen = Case::new(CONTRACT_OUTCOME, "report").check();
    let digest = palisade::tool::Digest::of(&std::fs::read(CONTRACT_OUTCOME.file()).unwrap());
    assert_eq!(seen.result["plugin"], "contract_outcome");
    assert_eq!(seen.result["digest"], digest.to_string());
}
