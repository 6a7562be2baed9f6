//! Ten tasks over a small repository, solved by single calls and by programs: what the model would
//! read and write, and in how many turns. `docs/code-mode.md` has the table.

use super::{granting, output};
use palisade::{Call, json};
use palisade_tests::Stage;
use palisade_tests::tasks::{TASKS, repository};
use serde_json::Value;

/// The bytes that a model writes and reads for one call, and the turns.
#[derive(Default)]
struct Traffic {
    bytes: usize,
    turns: usize,
}

impl Traffic {
    async fn call(&mut self, stage: &Stage, tool: &str, input: Value) -> String {
        self.bytes += input.to_string().len();
        self.turns += 1;
        let result = stage.host.dispatch(&stage.session(), Call::new(tool, input)).await;
        let output = output(&result);
        self.bytes += output.len();
        output
    }
}

#[tokio::test]
async fn programs_solve_the_tasks_with_less_traffic() {
    let stage = granting(&["*"], |builder| builder);
    for (path, text) in repository() {
        stage.world.file(&path, text);
    }
    let (mut singly, mut by_program) = (Traffic::default(), Traffic::default());
    for task in &TASKS {
        for (tool, input) in (task.calls)() {
            singly.call(&stage, tool, input).await;
        }
        let solved = by_program.call(&stage, "run_js", json!({"code": task.program})).await;
        assert_eq!(solved, task.answer, "{}", task.name);
    }
    let page = std::fs::read_to_string(palisade_tests::toolchain::repository("docs/code-mode.md"));
    let row = format!(
        "| turns | {} | {} |\n| bytes of tool traffic | {} | {} |",
        singly.turns, by_program.turns, singly.bytes, by_program.bytes
    );
    assert!(page.unwrap().contains(&row), "docs/code-mode.md has no row\n{row}");
}
