//! Some thousand calls of every kind, mixed: each ends as it must, and nothing grows. The long runs are `cargo xtask soak`.

use std::time::Duration;

use palisade_tests::oracle::{Books, turn};
use palisade_tests::soak::{Soak, expected, mixed};

/// How many calls are made before anything is counted, and how many after.
const WARM: usize = 1000;
const COUNTED: usize = 3000;

#[test]
fn some_thousand_calls_of_every_kind_end_as_they_must_and_leave_nothing_behind() {
    let _turn = turn();
    let soak = Soak::new();
    let _ = soak.run(WARM, mixed);
    let before = Books::now();
    assert_eq!(soak.run(COUNTED, mixed).classes, expected(COUNTED, mixed));
    assert_eq!(before.settled(Duration::from_secs(1)), Vec::<String>::new());
    let after = Books::now();
    assert!(after.maps.abs_diff(before.maps) <= 16, "{before:?} and {after:?}");
}
