//! The gate itself: a real guest that waits for as long as a test wants.

use palisade::{SideEffects, json};
use palisade_tests::case::block_on;

use super::{stage, tool_of, waiting};

#[test]
fn guest_waits_until_its_gate_opens() {
    let stage = stage();
    let session = stage.session();
    block_on(async {
        let call = stage.begin(&session, waiting("a"));
        stage.started(1).await;
        assert!(!call.is_finished());
        stage.world.file("open", "come in");
        assert_eq!(call.await.unwrap().output().as_deref(), Some("come in"));
    });
}

#[test]
fn guest_has_a_tool_of_each_class() {
    let stage = stage();
    for class in SideEffects::ALL {
        let tool = stage.host.registry().get(&tool_of(class)).unwrap();
        assert_eq!(tool.definition().side_effects(), class);
        assert!(tool.definition().validate_params(&json!({"number": 1})).is_ok());
    }
}
