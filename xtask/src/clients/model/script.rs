//! The script of the model, which is the user's prompt:
//! `{"turns": [[{"name": "read_file", "arguments": {"path": "a.txt"}}]]}`.

use anyhow::{Context as _, ensure};
use serde_json::Value;

/// A call that the script asks for.
#[derive(Debug, PartialEq)]
pub(super) struct Call {
    /// Unique in the conversation.
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: Value,
}

/// Finds the script among the texts of the messages.
pub(super) fn find<'a>(texts: impl IntoIterator<Item = &'a str>) -> anyhow::Result<Value> {
    texts
        .into_iter()
        .filter_map(|text| serde_json::from_str::<Value>(text).ok())
        .find(|script| script.get("turns").is_some_and(Value::is_array))
        .context("no message is a script: a JSON object with `turns`, a list of lists of calls")
}

/// Returns the calls of the turn that follows `made` calls; none after the last turn.
pub(super) fn next(script: &Value, made: usize) -> anyhow::Result<Vec<Call>> {
    let mut before = 0;
    for turn in script.get("turns").and_then(Value::as_array).into_iter().flatten() {
        let calls = turn.as_array().context("a turn is a list of calls")?;
        if before == made {
            return calls.iter().zip(made..).map(|(call, index)| read(call, index)).collect();
        }
        before += calls.len();
    }
    ensure!(before == made, "the conversation has {made} calls, and the script {before}");
    Ok(Vec::new())
}

fn read(call: &Value, index: usize) -> anyhow::Result<Call> {
    let name = call.get("name").and_then(Value::as_str).context("a call has a name")?;
    let arguments = call.get("arguments").context("a call has arguments")?;
    Ok(Call { id: format!("call_{index}"), name: name.to_owned(), arguments: arguments.clone() })
}
