//! `check`: tools of one plugin that each have a defect, most of them of the files that they
//! change.

use crate::program;
use palisade_tests::{World, guest};

#[test]
fn each_tool_has_its_defect_and_no_other() {
    let world = World::new();
    let words = ["check", "--json", "--timeout", "1s", "--cases"];
    let program = program(&world, &words).args([world.plugins()]);
    let ran = program.args([guest::AUTHORS_DEFECTS.file()]).run().exits_with(6);
    let report = ran.json();
    let findings = report["findings"].as_array().unwrap();
    let named = |tool: &str| -> Vec<&str> {
        let mut codes: Vec<&str> = findings
            .iter()
            .filter(|it| it["tool"].as_str() == Some(tool))
            .filter_map(|it| it["code"].as_str())
            .collect();
        codes.sort_unstable();
        codes
    };
    assert_eq!(named("undeclared"), ["undeclared-change"], "{report:#}");
    assert!(named("too_low").contains(&"class-too-low"), "{report:#}");
    assert_eq!(named("again"), ["not-idempotent"], "{report:#}");
    assert!(named("half_done").contains(&"half-done"), "{report:#}");
    assert_eq!(named("idle"), ["class-unused"], "{report:#}");
    assert!(named("partial").starts_with(&["hang", "left-files"]), "{report:#}");
    assert_eq!(named("hoard"), ["much-memory"], "{report:#}");
    assert_eq!(named("talkative"), ["dropped-text"], "{report:#}");
    assert!(named("deep").contains(&"exhausted"), "{report:#}");
    assert_eq!(named("directory"), ["undeclared-change"], "{report:#}");
    assert_eq!(named("sweeping"), ["undeclared-change"], "{report:#}");
    assert_eq!(named("refusing"), ["schema-mismatch"], "{report:#}");
}
