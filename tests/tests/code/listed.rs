//! The tools of programs in the lists of a host: only with a grant, and with the declarations of
//! what they may call.

use super::{granting, output, program};
use palisade::formats::{Format, Strictness};
use palisade::json;
use palisade::{Advertised, Host, Presentation};
use palisade_tests::Stage;

fn names(host: &Host, session: &palisade::Session) -> Vec<String> {
    host.definitions(session).iter().map(|it| it.name().to_string()).collect()
}

fn described(stage: &Stage, session: &palisade::Session) -> String {
    let definitions = stage.host.definitions(session);
    let run_js = definitions.iter().find(|it| it.name().as_str() == "run_js").unwrap();
    run_js.description().to_owned()
}

#[test]
fn programs_need_a_grant() {
    let without = Stage::new(&[], |builder| builder);
    assert!(!names(&without.host, without.host.session()).contains(&"run_js".to_owned()));
    let with = granting(&["calculate"], |builder| builder);
    let names = names(&with.host, with.host.session());
    assert!(["run_js", "search_tools", "calculate"].iter().all(|it| names.contains(&(*it).into())));
}

#[test]
fn description_declares_what_the_session_shows_and_the_grant_names() {
    let stage = granting(&["read_file", "calculate", "write_file"], |builder| builder);
    let all = described(&stage, stage.host.session());
    assert!(all.contains("declare const tools: {"), "{all}");
    assert!(["read_file(", "calculate(", "write_file("].iter().all(|it| all.contains(it)));
    assert!(["list_dir(", "run_js(", "search_tools("].iter().all(|it| !all.contains(it)), "{all}");
    let shown = Advertised::Only(vec!["run_js".to_owned(), "calculate".to_owned()]);
    let session = stage.host.new_session("few").advertise(shown).build();
    let few = described(&stage, &session);
    assert!(few.contains("calculate(input") && !few.contains("read_file(input"), "{few}");
    let again = stage.host.tools(&session);
    assert!(
        again.iter().zip(stage.host.tools(&session)).all(|(a, b)| std::sync::Arc::ptr_eq(a, &b))
    );
}

#[test]
fn declarations_are_bounded() {
    let stage = granting(&["*"], |builder| {
        (0..400).fold(builder, |builder, number| {
            let run = |_: &_, _: &_| Ok(palisade::ToolOutput::text(""));
            let tool = palisade_tests::native::Native::new(&format!("tool_{number}"), run);
            builder.tool(tool.factory())
        })
    });
    let text = described(&stage, stage.host.session());
    assert!(text.len() < 20 << 10, "{}", text.len());
    assert!(text.contains(" more: `tools.search(\"words\")` returns them"), "{text}");
}

#[tokio::test]
async fn session_that_presents_programs_lists_them_alone() {
    let stage = granting(&["*"], |builder| builder.present(Presentation::Programs));
    let session = stage.session();
    assert_eq!(names(&stage.host, &session), ["run_js", "search_tools"]);
    assert!(described(&stage, &session).contains("read_file("));
    let result =
        stage.host.dispatch(&session, program("return tools.calculate({expression: '2'})"));
    assert_eq!(output(&result.await), "2");
    let direct = stage.host.call("calculate", json!({"expression": "2"}), json!({})).await;
    assert_eq!(direct.error().unwrap().class().as_str(), "not_found");
    assert!(direct.to_string().contains("run_js"), "{direct}");
}

#[test]
fn exported_hints_of_programs_promise_nothing() {
    let stage = granting(&["*"], |builder| builder);
    let exported = stage.host.export(stage.host.session(), Format::Mcp, Strictness::AsIs);
    let tools = exported.definitions["tools"].as_array().unwrap();
    let run_js = tools.iter().find(|tool| tool["name"] == "run_js").unwrap();
    assert_eq!(run_js["annotations"]["readOnlyHint"], false, "{run_js}");
    assert_eq!(run_js["annotations"]["destructiveHint"], true);
}
