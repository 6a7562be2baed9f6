//! Tests of the judgement of scenarios.

use super::*;

fn scenario(name: &str, weight: Weight, statuses: &[Status]) -> Scenario {
    let check =
        |status: &Status| Check { id: "c".to_owned(), status: *status, message: "m".to_owned() };
    Scenario { name: name.to_owned(), weight, checks: statuses.iter().map(check).collect() }
}

fn required(statuses: &[Status]) -> Scenario {
    scenario("a", Weight::Required, statuses)
}

/// Returns true if the judgement of these revisions is a success.
fn is_well(not_yet: &[&str], revisions: &[Scenario]) -> bool {
    let mut judgement = Judgement::new(not_yet, Verbosity::Faults);
    for scenario in revisions {
        judgement.add_revision("2026-07-28", vec![scenario.clone()]);
    }
    judgement.conclude().is_ok()
}

#[test]
fn scenario_passes_without_failures_and_warnings() {
    use Status::{Failure, Info, Skipped, Success, Warning};
    assert!(is_well(&[], &[required(&[Success, Info, Skipped])]));
    for faulty in [vec![Success, Failure], vec![Success, Warning], vec![Skipped, Info], vec![]] {
        assert!(!is_well(&[], &[required(&faulty)]), "{faulty:?}");
    }
}

#[test]
fn excluded_scenario_may_fail() {
    let unscored = scenario("a", Weight::Unscored, &[Status::Failure]);
    assert!(is_well(&[], std::slice::from_ref(&unscored)));
    assert!(no_failure_in_required(&[unscored]));
}

#[test]
fn unbuilt_scenario_may_fail_but_not_pass_everywhere() {
    let (passing, failing) = (required(&[Status::Success]), required(&[Status::Failure]));
    assert!(is_well(&["a"], std::slice::from_ref(&failing)));
    assert!(
        is_well(&["a"], &[passing.clone(), failing.clone()]),
        "one of two revisions is missing"
    );
    assert!(!is_well(&["a"], &[passing.clone(), passing]), "it is built");
    assert!(!is_well(&["b"], &[failing]), "the missing scenario is another one");
}

#[test]
fn suite_verdict_covers_failures_and_missing_results() {
    assert!(no_failure_in_required(&[required(&[Status::Success, Status::Warning])]));
    assert!(!no_failure_in_required(&[required(&[Status::Success, Status::Failure])]));
    assert!(!no_failure_in_required(&[required(&[])]));
}

#[test]
fn missing_result_has_no_checks() {
    let requirements = Requirements {
        required: vec!["a".to_owned(), "b".to_owned()],
        unscored: vec!["c".to_owned()],
    };
    let results = BTreeMap::from([("b".to_owned(), required(&[Status::Success]).checks)]);
    let gathered = gather(&requirements, results, |name| name != "c");
    let counts: Vec<_> =
        gathered.iter().map(|scenario| (scenario.name.as_str(), scenario.checks.len())).collect();
    assert_eq!(counts, [("a", 0), ("b", 1)]);
}

#[test]
fn scenario_without_a_revision_is_reported() {
    let mut judgement = Judgement::new(&[], Verbosity::Everything);
    judgement.add_revision("2026-07-28", vec![required(&[Status::Success])]);
    let named =
        |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    assert!(judgement.knows_all(&named(&["a"])) && judgement.knows_all(&named(&[])));
    assert!(!judgement.knows_all(&named(&["a", "b"])));
}
