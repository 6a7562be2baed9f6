//! The system interfaces as a tool sees them: clocks and random numbers work, all others are
//! closed.

use palisade_tests::Case;
use palisade_tests::guest::CONTRACT_WORLD;
use serde_json::{Value, json};

#[test]
fn only_clock_and_randomness_are_available() {
    let seen = Case::new(CONTRACT_WORLD, "look").check();
    let world: Value = serde_json::from_str(seen.output()).unwrap();
    let expected = json!({
        "arguments": "0",
        "environment": "0",
        "input": "0 bytes, done",
        "stdout": "done",
        "clock-is-after-2020": "true",
        "time-passes": "true",
        "connect": "refused",
        "listen": "refused",
        "datagram": "refused",
        "resolve": "refused",
        "random-differs": "true",
    });
    assert_eq!(world, expected);
}
