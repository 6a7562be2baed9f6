//! The promises to a program that embeds the library: its host's rules bind every session, names
//! with a plugin count, streams end, outputs of its own tools are checked, and an error names its
//! cause.

use std::sync::Arc;
use std::time::Duration;

use palisade::confirm::{Answer, ConfirmFn};
use palisade::events::Event;
use palisade::policy::{Mode, Policy};
use palisade::{
    Allowed, Call, Content, Definition, Session, SideEffects, ToolOutput, ToolResult, json,
};
use palisade_tests::Stage;
use palisade_tests::case::block_on;
use palisade_tests::native::{Native, StopSignal, Waiting, echo};
use palisade_tests::stage::class;
use serde_json::Value;

use super::{on_driven_clock, stage, writing};

fn only(names: &[&str]) -> Allowed {
    Allowed::Only(names.iter().map(|name| (*name).to_owned()).collect())
}

/// Returns a session that the host has not begun, with a policy that lets everything run.
fn elsewhere(stage: &Stage) -> Session {
    let policy = SideEffects::ALL.into_iter().fold(Policy::default(), Policy::allowing);
    Session::new("elsewhere", stage.host.workspace().clone(), policy)
}

fn reason(result: &ToolResult) -> Value {
    result.to_json()["error"]["detail"]["reason"].clone()
}

#[test]
fn session_from_elsewhere_may_call_only_what_the_host_allows() {
    let stage = Stage::new(&[], |builder| builder.allow(only(&["calculate"])));
    stage.world.file("f", "text");
    let session = elsewhere(&stage);
    let read = || Call::new("read_file", json!({"path": "f"}));
    let result = block_on(stage.host.dispatch(&session, read()));
    assert_eq!(reason(&result), "not_allowed", "{result}");
    assert!(stage.host.explain(&session, read()).is_err());
    let names: Vec<String> =
        stage.host.tools(&session).iter().map(|it| it.definition().name().to_string()).collect();
    assert_eq!(names, ["calculate"]);
    let sum = Call::new("calculate", json!({"expression": "6 * 7"}));
    assert!(block_on(stage.host.dispatch(&session, sum)).is_success());
}

#[test]
fn stricter_policy_of_host_and_session_decides() {
    let denies = Policy::default().with_tool("write_file", Mode::Deny);
    let stage = Stage::new(&[], |builder| builder.policy(denies.clone()));
    let result = block_on(stage.host.dispatch(&elsewhere(&stage), writing("w")));
    assert_eq!(reason(&result), "policy", "{result}");
    assert!(stage.world.read("made.txt").is_none());
    let listed = stage.host.tools(&elsewhere(&stage));
    assert!(!listed.iter().any(|tool| tool.definition().name().as_str() == "write_file"));

    let stage =
        Stage::new(&[], |builder| builder.policy(Policy::default().allowing(SideEffects::Write)));
    let result = block_on(stage.host.dispatch(&elsewhere(&stage), writing("w")));
    assert!(result.is_success(), "both let it run: {result}");
    let strict = Session::new("strict", stage.host.workspace().clone(), denies);
    let result = block_on(stage.host.dispatch(&strict, writing("w")));
    assert_eq!(reason(&result), "policy", "the session is the stricter one: {result}");
}

#[test]
fn stream_ends_with_its_host() {
    let stage = stage();
    let mut stream = stage.host.events();
    block_on(async {
        let sum = Call::new("calculate", json!({"expression": "6 * 7"}));
        assert!(stage.host.dispatch(&stage.session(), sum).await.is_success());
        drop(stage);
        let mut last = None;
        let rest = async {
            while let Some(event) = stream.next().await {
                last = Some(event.event);
            }
        };
        let ended = tokio::time::timeout(Duration::from_secs(60), rest).await;
        assert!(ended.is_ok(), "the stream never ends");
        assert!(matches!(last, Some(Event::Completed(..))), "nothing is lost: {last:?}");
    });
}

#[test]
fn limits_may_name_the_plugin_of_a_tool() {
    let stage = Stage::new(&[], |builder| {
        builder
            .tool(
                Waiting::new("nap", StopSignal::ByContext, || Ok(ToolOutput::text("late")))
                    .factory(),
            )
            .tool_timeout("native/nap", Duration::from_millis(50))
            .tool_timeout("other/nap", Duration::from_secs(9))
            .tool_timeout("calculate", Duration::from_secs(3))
            .tool_timeout("calculate/calculate", Duration::from_secs(2))
    });
    let nap = stage.host.registry().get("nap").unwrap();
    assert_eq!(stage.host.time_limit(&nap, None), Duration::from_millis(50));
    let calculate = stage.host.registry().get("calculate").unwrap();
    let of_plugin = stage.host.time_limit(&calculate, None);
    assert_eq!(of_plugin, Duration::from_secs(2), "the name with the plugin is the more precise");
    let result = on_driven_clock(stage.host.dispatch(&stage.session(), Call::new("nap", "{}")));
    assert_eq!(class(&result), "timeout", "{result}");
}

#[test]
fn concurrency_limit_may_name_the_plugin_of_a_tool() {
    let naps = Waiting::new("nap", StopSignal::ByContext, || Ok(ToolOutput::text("woken")));
    let stage =
        Stage::new(&[], |builder| builder.tool(naps.factory()).tool_concurrency("native/nap", 1));
    let session = stage.session();
    block_on(async {
        let first = stage.begin(&session, Call::new("nap", "{}").with_id("first"));
        naps.started().await;
        let second = stage.begin(&session, Call::new("nap", "{}").with_id("second"));
        while session.in_flight() < 2 {
            tokio::task::yield_now().await;
        }
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
        }
        let begun = stage.recorder.names_of("second").contains(&"tool.called");
        session.cancel_all();
        let _ = (first.await, second.await);
        assert!(!begun, "the second call waits for the first");
    });
}

/// Returns a native tool that promises a number and returns this output.
fn promising(name: &str, output: impl Fn() -> ToolOutput + Send + Sync + 'static) -> Native {
    let definition =
        Definition::new(name, "Promises.", SideEffects::None, json!({"type": "object"})).unwrap();
    let schema =
        json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let definition = definition.with_output_schema(schema).unwrap();
    Native::new(name, move |_, _| Ok(output())).defined(definition)
}

fn block(value: Value) -> ToolOutput {
    ToolOutput { content: vec![Content::Json(value.into())], ..ToolOutput::default() }
}

#[test]
fn output_of_a_native_tool_is_checked_against_its_schema() {
    let failing =
        || ToolOutput { outcome: palisade::execution::Outcome::Failure, ..ToolOutput::text("no") };
    let stage = Stage::new(&[], |builder| {
        builder
            .tool(promising("keeps", || block(json!({"n": 7}))).factory())
            .tool(promising("breaks", || block(json!({"n": "seven"}))).factory())
            .tool(promising("says", || ToolOutput::text("seven")).factory())
            .tool(promising("large", || block(json!({"n": "7".repeat(3 << 20)}))).factory())
            .tool(promising("fails", failing).factory())
    });
    let call = |tool: &str| block_on(stage.host.dispatch(&stage.session(), Call::new(tool, "{}")));
    assert!(call("keeps").is_success());
    for tool in ["breaks", "says", "large"] {
        let result = call(tool);
        assert_eq!(result.to_json()["error"]["detail"]["kind"], "contract", "{tool}: {result}");
        let said = result.error().unwrap().reason();
        assert!(said.starts_with("the tool broke its contract"), "{said}");
    }
    let failed = call("fails");
    assert_eq!(failed.to_json()["error"]["detail"]["kind"], "unsuccessful", "{failed}");
}

/// Returns true if a text names something that only the program `palisade` has: a flag, a
/// subcommand or a key of its configuration.
fn names_the_program(text: &str) -> bool {
    ["--", "`palisade ", "tools.only", "limits.", "confirm.", "your own settings", "palisade.toml"]
        .iter()
        .any(|word| text.contains(word))
}

#[test]
fn failures_of_the_library_advise_on_the_library() {
    let builders: [(&str, Call, Stage); 5] = [
        (
            "not_allowed",
            writing("w"),
            Stage::new(&[], |builder| builder.allow(only(&["calculate"]))),
        ),
        (
            "policy",
            writing("w"),
            Stage::new(&[], |builder| {
                builder.policy(Policy::default().with_class(SideEffects::Write, Mode::Deny))
            }),
        ),
        (
            "no_confirmer",
            writing("w"),
            Stage::new(&[], |builder| builder.confirmer(Arc::new(palisade::confirm::NoConfirmer))),
        ),
        ("", Call::new("xyzzy", "{}"), stage()),
        (
            "",
            Call::new("nap", "{}").with_timeout(Duration::from_millis(20)),
            Stage::new(&[], |builder| {
                let nap =
                    Waiting::new("nap", StopSignal::ByContext, || Ok(ToolOutput::text("late")));
                builder.tool(nap.factory())
            }),
        ),
    ];
    for (expected, call, stage) in builders {
        let call = call.with_id("c");
        let result = on_driven_clock(stage.host.dispatch(&stage.session(), call));
        if !expected.is_empty() {
            assert_eq!(reason(&result), expected, "{result}");
        }
        let last = stage.recorder.events_of("c").pop();
        let Some(Event::Failed(_, failure)) = last else { panic!("it fails: {last:?}") };
        let advice = result.error().unwrap().advice().unwrap_or_default();
        for text in [&failure.message, &advice] {
            assert!(!names_the_program(text), "{text}");
        }
        assert!(!advice.is_empty(), "{}", failure.message);
    }
}

#[test]
fn panic_of_a_confirmer_is_not_the_tools() {
    let stage = Stage::new(&[], |builder| {
        builder.confirmer(Arc::new(ConfirmFn::new(|_| -> Answer { panic!("no dialog") })))
    });
    let result = block_on(stage.host.dispatch(&stage.session(), writing("w")));
    assert_eq!(reason(&result), "confirmer_failed", "{result}");
    let said = result.error().unwrap().reason();
    assert!(said.contains("the confirmer") && !said.contains("the tool failed"), "{said}");
    assert!(!said.contains("no dialog"), "the text of a panic goes to the log: {said}");
    assert!(stage.world.read("made.txt").is_none());
    stage.ended_once("w");
}

#[test]
fn runtime_without_timers_is_not_the_tools_fault() {
    let stage = stage();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let call = Call::new("wait_for", json!({"path": "never"})).with_id("c");
    let mut results = vec![runtime.block_on(stage.host.dispatch(&stage.session(), writing("w")))];
    results.push(runtime.block_on(stage.host.dispatch(&stage.session(), call)));
    for result in results {
        let json = result.to_json();
        assert_eq!(json["error"]["detail"]["kind"], "no-runtime", "{result}");
        let said = result.error().unwrap().reason();
        assert!(said.contains("tokio runtime with its timers enabled"), "{said}");
    }
}

#[test]
fn panic_of_a_native_tool_is_its_own() {
    let stage = Stage::new(&[], |builder| {
        builder.tool(Native::new("panics", |_, _| panic!("oh")).factory()).tool(echo("fine"))
    });
    let result = block_on(stage.host.dispatch(&stage.session(), Call::new("panics", "{}")));
    assert_eq!(result.to_json()["error"]["detail"]["kind"], "internal");
    assert!(result.error().unwrap().reason().contains("the tool failed inside"), "{result}");
}
