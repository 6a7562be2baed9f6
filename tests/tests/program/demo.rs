//! `palisade demo escape`, as somebody runs it who wants to see the wall.

use crate::program;
use palisade_tests::World;

#[test]
fn the_wall_holds_and_the_program_says_what_stopped_each_attempt() {
    let world = World::new();
    let shown = program(&world, &["demo", "escape", "--json"]).run().left_with(0).json();
    let attempts = shown["attempts"].as_array().unwrap();
    assert!(attempts.len() >= 20 && shown["held"] == true, "{shown:#}");
    assert!(attempts.iter().all(|attempt| attempt["held"] == true && attempt["saw"] != ""), "{shown:#}");
}

#[test]
fn a_person_gets_a_table_and_a_conclusion() {
    let world = World::new();
    let ran = program(&world, &["demo", "escape"]).run().left_with(0);
    assert!(ran.stdout.contains("held  read /etc/passwd"), "{}", ran.stdout);
    assert!(ran.stdout.contains("attempts held in"), "{}", ran.stdout);
    assert_eq!(ran.stdout.matches('\u{1b}').count(), 0, "nothing of the plugin reaches a terminal raw");
}
