//! Inputs and outputs made to cost validation time: each is rejected at once or ends with its call,
//! and delays no other call.

use palisade_tests::sample::{Group, leaves_out};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use palisade::{Call, CallMode};
use palisade_tests::guest::HOSTILE_ECHO;
use palisade_tests::oracle::around;
use palisade_tests::stage::Stage;
use palisade_tests::wat::Told;
use palisade_tests::{Case, Plugins, Wat, World};
use serde_json::{Value, json};

use super::ENOUGH;

/// The variant of a JSON block.
const JSON: u32 = 1;
/// The address of a large answer in the guest.
const FAR: u32 = 2 << 16;

/// Returns a schema that applies this keyword `count` times to each element.
fn elements(count: usize, keyword: &Value) -> Value {
    json!({"type": "array", "items": {"allOf": vec![keyword; count]}})
}

/// Returns a plugin whose input has a list `p` of this schema, and a path.
fn plugin(list: &Value) -> Vec<u8> {
    let path = json!({"type": "string", "format": "workspace-path"});
    let schema = json!({"type": "object", "properties": {"p": list, "path": path}});
    Wat::new(Told::new("raw").with_input(schema.to_string())).build()
}

/// Returns an input whose list repeats this element.
fn repeated(count: usize, element: &str) -> String {
    format!("{{\"p\":[{}{element}]}}", format!("{element},").repeat(count - 1))
}

fn numbers() -> String {
    repeated(5200, "1.797e308")
}

#[test]
fn input_of_huge_numbers_is_refused_by_its_cost() {
    let bytes = plugin(&elements(1900, &json!({"multipleOf": 0.5})));
    let case = Case::new(Plugins::Component("raw".to_owned(), bytes), "raw");
    let seen = around(&case.text(&numbers()).timeout(ENOUGH));
    assert!(
        seen.message("validation_error").contains("is too large to be checked"),
        "{:#}",
        seen.result
    );
    let bytes = plugin(&elements(10, &json!({"multipleOf": 0.5})));
    let case = Case::new(Plugins::Component("raw".to_owned(), bytes), "raw");
    assert_eq!(around(&case.text(&numbers()).timeout(ENOUGH)).output(), "done");
}

/// Returns a plugin that answers with this JSON under this output schema.
fn answering(schema: &Value, answer: &str) -> Wat {
    let escaped: String = answer.bytes().map(|byte| format!("\\{byte:02x}")).collect();
    let length = u32::try_from(answer.len()).unwrap();
    let copy = format!(
        "(drop (memory.grow (i32.const 20))) (memory.init $answer (i32.const {FAR}) (i32.const 0) (i32.const {length}))"
    );
    let told = Told { output: Some(schema.to_string()), ..Told::new("raw") };
    let plugin = Wat::new(told).extra(&format!("(data $answer \"{escaped}\")"));
    plugin.answering_block(&copy, JSON, FAR, length)
}

#[test]
fn output_of_huge_numbers_is_refused_by_its_cost() {
    let answer = numbers().trim_start_matches("{\"p\":").trim_end_matches('}').to_owned();
    let case = |count: usize| {
        super::case(&answering(&elements(count, &json!({"multipleOf": 0.5})), &answer))
    };
    let seen = around(&case(1900));
    assert_eq!(seen.kind(), "contract");
    assert!(
        seen.message("execution_error").contains("is too large to be checked"),
        "{:#}",
        seen.result
    );
    assert_eq!(around(&case(10)).result["success"], true);
}

/// Returns a host with a tool whose input check takes the maximum number of steps, and such an
/// input.
fn slow(mode: CallMode) -> (World, Stage, String) {
    let world = World::new();
    std::fs::write(
        world.plugins().join("raw.wasm"),
        plugin(&elements(90, &json!({"minimum": -1}))),
    )
    .unwrap();
    let stage =
        Stage::new(&[HOSTILE_ECHO], |builder| builder.plugins(world.plugins()).call_mode(mode));
    (world, stage, repeated(99_000, "1"))
}

fn in_one_thread<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

#[test]
fn input_check_ends_at_the_deadline() {
    if leaves_out(&[Group::H]) {
        return;
    }
    for mode in [CallMode::InPlace, CallMode::OWN_THREADS] {
        let (_world, stage, input) = slow(mode);
        let call = Call::new("raw", input).with_timeout(Duration::from_millis(1));
        let result = in_one_thread(stage.host.dispatch(stage.host.session(), call));
        assert_eq!(
            result.error().map(|error| error.class().as_str()),
            Some("timeout"),
            "{mode:?}: {result}"
        );
    }
}

#[test]
fn input_check_ends_on_cancellation() {
    for mode in [CallMode::InPlace, CallMode::OWN_THREADS] {
        let (_world, stage, input) = slow(mode);
        let (call, session) = (Call::new("raw", input), stage.session());
        let id = call.id().clone();
        let (result, cancelled) = in_one_thread(async {
            tokio::join!(stage.host.dispatch(&session, call), async { session.cancel(&id) })
        });
        assert!(cancelled);
        assert_eq!(
            result.error().map(|error| error.class().as_str()),
            Some("cancelled"),
            "{mode:?}: {result}"
        );
    }
}

#[test]
fn short_call_does_not_wait_for_a_long_input_check() {
    let (_world, stage, input) = slow(CallMode::InPlace);
    let order = Arc::new(Mutex::new(Vec::new()));
    let call = |name: &'static str, call: Call| {
        let (stage, order) = (stage.clone(), order.clone());
        async move {
            let result = stage.host.dispatch(stage.host.session(), call).await;
            assert!(result.error().is_none(), "{result}");
            order.lock().unwrap().push(name);
        }
    };
    let long = call("long", Call::new("raw", input));
    let short = call("short", Call::new("calculate", json!({"expression": "1+1"})));
    in_one_thread(async { tokio::join!(long, short) });
    assert_eq!(*order.lock().unwrap(), ["short", "long"]);
}
