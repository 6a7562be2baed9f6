//! Tests of the result of a command that runs to its end.

use super::*;
use crate::command::output::{MAX_KEPT, MAX_STREAMED};
use palisade::SideEffects;

#[tokio::test]
async fn result_has_output_and_command() {
    let output = run("echo hello; echo world").await;
    assert_eq!(succeeded(&output), "hello\nworld\n");
    assert_eq!(output.command_executed.as_deref(), Some("echo hello; echo world"));
    assert_eq!(output.metadata["exit_code"], json!(0));
    assert_eq!(output.metadata["signal"], Value::Null);
}

#[tokio::test]
async fn failure_names_the_exit_code_last() {
    let output = run("printf partly; exit 3").await;
    assert_eq!(failed(&output), "partly\nexit code 3");
    assert_eq!(output.metadata["exit_code"], json!(3));
}

#[tokio::test]
async fn failure_names_the_signal_last() {
    let output = run("kill -9 $$").await;
    assert_eq!(failed(&output), "[the command wrote nothing]\nkilled by signal 9");
    assert_eq!(output.metadata["signal"], json!(9));
    assert_eq!(output.metadata["exit_code"], Value::Null);
}

#[tokio::test]
async fn empty_output_is_stated() {
    assert_eq!(succeeded(&run("true").await), "[the command wrote nothing]");
}

#[tokio::test]
async fn both_streams_keep_their_order() {
    let world = World::new(CONFINED);
    let output = world.run("for i in 1 2 3; do echo out $i; echo err $i >&2; done").await;
    assert_eq!(succeeded(&output), "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n");
    assert_eq!(world.sink.text(), text(&output));
}

#[tokio::test]
async fn command_runs_in_the_workspace_without_input() {
    let world = World::new(CONFINED);
    assert_eq!(
        succeeded(&world.run("pwd -P; cat").await).trim_end(),
        world.workspace().to_str().unwrap()
    );
}

#[tokio::test]
async fn flood_is_bounded_and_counted() {
    let world = World::new(CONFINED);
    let command = json!({"command": "yes | head -c 100000000; echo; echo the end"});
    let (output, report) = world.call(command).await.unwrap();
    let text = succeeded(&output);
    assert!(text.len() <= MAX_KEPT + 100, "{}", text.len());
    assert!(text.starts_with("y\ny\n") && text.ends_with("y\n\nthe end\n"));
    let left_out = 100_000_009 - MAX_KEPT as u64;
    assert!(text.contains(&format!("\n[… {left_out} bytes of output are left out here …]\n")));
    assert_eq!(world.sink.text().len(), MAX_STREAMED);
    assert_eq!(report.usage.truncated_bytes, left_out + (100_000_009 - MAX_STREAMED as u64));
}

#[tokio::test]
async fn nul_in_a_command_is_invalid_input() {
    let refused = World::new(CONFINED).call(json!({"command": "echo \0"})).await.unwrap_err();
    assert!(
        matches!(&refused, ErrorKind::Execution { field: Some(field), .. } if field == "command"),
        "{refused}"
    );
}

#[test]
fn definition_is_valid_and_bounds_the_input() {
    let definition = definition(&ShellOptions::default());
    assert_eq!(definition.side_effects(), SideEffects::Execute);
    let longest = "é".repeat(32_000);
    for good in [json!({"command": "ls"}), json!({"command": longest, "timeout_ms": 600_000})] {
        assert!(definition.validate_params(&good).is_ok());
    }
    for bad in [
        json!({}),
        json!({"command": ""}),
        json!({"command": longest + "é"}),
        json!({"command": "ls", "timeout_ms": 0}),
        json!({"command": "ls", "timeout_ms": 600_001}),
        json!({"command": "ls", "timeout_ms": 1.5}),
    ] {
        assert!(definition.validate_params(&bad).is_err(), "{bad}");
    }
}

#[tokio::test]
async fn longest_accepted_command_can_be_run() {
    let longest = format!("printf {}", "🦀".repeat(31_993));
    assert_eq!(longest.chars().count(), 32_000);
    assert_eq!(succeeded(&run(&longest).await).chars().count(), 31_993);
}

#[test]
fn factory_creates_distinct_instances() {
    assert!(palisade::execution::has_distinct_instances(&Shell::factory(Confinement::Landlock)));
}
