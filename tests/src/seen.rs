//! What was seen of a case, and what holds for every one of them.

use std::sync::Arc;

use palisade::Event;
use serde_json::Value;

use crate::uniform;
use crate::world::{SECRET, Snapshot, World};

/// One run of a case.
pub struct Run {
    world: Arc<World>,
    before: [Snapshot; 2],
    result: Value,
    events: Vec<Event>,
}

impl Run {
    /// Looks at the world before anything happens in it.
    #[must_use]
    pub(crate) fn start(world: Arc<World>) -> Self {
        let before = [world.inside(), world.outside()];
        Self { world, before, result: Value::Null, events: Vec::new() }
    }

    /// The world that it runs in.
    pub(crate) fn world(&self) -> &World {
        &self.world
    }

    /// Takes what came of it, and checks what holds for every call.
    #[track_caller]
    pub(crate) fn ended(mut self, result: Value, events: Vec<Event>) -> Self {
        uniform::check_shape(&result);
        if !events.is_empty() {
            uniform::check_events(&result, &events);
        }
        assert_eq!(self.world.outside(), self.before[1], "something outside of the workspace has changed");
        let text = result.to_string();
        assert!(!text.contains(SECRET), "the result holds what lies outside of the workspace: {text}");
        (self.result, self.events) = (result, events);
        self
    }

    /// The result without what differs from run to run.
    fn comparable(&self, varying: &[&str]) -> Value {
        let mut result: Value =
            serde_json::from_str(&self.world.anonymous(&self.result.to_string())).expect("still JSON");
        for pointer in ["/call_id", "/duration_ms"].iter().chain(varying) {
            if let Some(place) = result.pointer_mut(pointer) {
                *place = Value::Null;
            }
        }
        result
    }
}

/// What was seen of a case.
pub struct Seen {
    /// The result, in the form that `call --json` prints.
    pub result: Value,
    /// The events of the run through the library.
    pub events: Vec<Event>,
    runs: Vec<Run>,
}

impl Seen {
    #[track_caller]
    pub(crate) fn compare(mut library: Run, program: Run, varying: &[&str]) -> Self {
        let (one, other) = (library.comparable(varying), program.comparable(varying));
        let differences = differences("", &one, &other);
        assert!(differences.is_empty(), "the library and the program differ:\n{}", differences.join("\n"));
        Self { result: one, events: std::mem::take(&mut library.events), runs: vec![library, program] }
    }

    #[track_caller]
    pub(crate) fn alone(mut run: Run) -> Self {
        // Moved: a copy would grow the process beside another test's oracle.
        let (result, events) = (std::mem::take(&mut run.result), std::mem::take(&mut run.events));
        Self { result, events, runs: vec![run] }
    }

    /// The output of a call that succeeded.
    ///
    /// # Panics
    ///
    /// Where it did not.
    #[track_caller]
    #[must_use]
    pub fn output(&self) -> &str {
        self.result["output"].as_str().unwrap_or_else(|| panic!("the call failed: {:#}", self.result["error"]))
    }

    /// The error of a call that failed with this class.
    ///
    /// # Panics
    ///
    /// Where it succeeded or failed otherwise.
    #[track_caller]
    #[must_use]
    pub fn error(&self, class: &str) -> &Value {
        let error = &self.result["error"];
        assert_eq!(error["class"].as_str(), Some(class), "{:#}", self.result);
        error
    }

    /// The message of a call that failed with this class.
    ///
    /// # Panics
    ///
    /// Where it succeeded or failed otherwise.
    #[track_caller]
    #[must_use]
    pub fn message(&self, class: &str) -> &str {
        self.error(class)["message"].as_str().expect("every error has a message")
    }

    /// What `detail.kind` says of an execution error.
    ///
    /// # Panics
    ///
    /// Where it is no execution error.
    #[track_caller]
    #[must_use]
    pub fn kind(&self) -> &str {
        self.error("execution_error")["detail"]["kind"].as_str().expect("every execution error has a kind")
    }

    /// Which limit a call ran into.
    ///
    /// # Panics
    ///
    /// Where it did not run into one.
    #[track_caller]
    #[must_use]
    pub fn limit(&self) -> &str {
        self.error("resource_exhausted")["detail"]["limit"].as_str().expect("every limit has a name")
    }

    /// The worlds that the case ran in.
    pub fn worlds(&self) -> impl Iterator<Item = &World> {
        self.runs.iter().map(|run| &*run.world)
    }

    /// Checks from outside that the workspace is what it was, to the last entry.
    ///
    /// # Panics
    ///
    /// Where it is not.
    #[track_caller]
    pub fn changed_nothing(&self) -> &Self {
        for run in &self.runs {
            assert_eq!(run.world.inside(), run.before[0], "the workspace has changed");
        }
        self
    }

    /// Checks from outside what a file of the workspace says now; `None` where there must be none.
    ///
    /// # Panics
    ///
    /// Where it says something else.
    #[track_caller]
    pub fn left(&self, path: &str, contents: Option<&str>) -> &Self {
        for world in self.worlds() {
            assert_eq!(world.read(path).as_deref(), contents, "{path}");
        }
        self
    }

    /// Checks which files the result says were modified.
    ///
    /// # Panics
    ///
    /// Where it names others.
    #[track_caller]
    pub fn modified(&self, files: &[&str]) -> &Self {
        assert_eq!(self.result["files_modified"], serde_json::json!(files));
        self
    }
}

/// Where two JSON values differ, field by field.
fn differences(place: &str, one: &Value, other: &Value) -> Vec<String> {
    match (one, other) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            let of = |map: &serde_json::Map<String, Value>, key: &str| {
                map.get(key).cloned().unwrap_or(Value::from("<absent>"))
            };
            keys.into_iter().flat_map(|key| differences(&format!("{place}/{key}"), &of(a, key), &of(b, key))).collect()
        }
        _ if one == other => Vec::new(),
        _ => vec![format!("  {place}: {one} in the library, {other} in the program")],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use palisade::{CallId, ToolResult};
    use serde_json::json;

    /// Whether a run passes in which this happens, with this output. It panics otherwise, when no oracle listens for panics.
    fn passes(output: &str, happens: impl FnOnce(&World)) -> bool {
        let _turn = crate::oracle::turn();
        let run = Run::start(Arc::new(World::new()));
        happens(run.world());
        let result = ToolResult::success(CallId::new("c"), "t", output).to_json();
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(run.ended(result, Vec::new())))).is_ok()
    }

    #[test]
    fn whatever_changes_around_a_workspace_is_found() {
        let write =
            |path: &'static str| move |world: &World| std::fs::write(world.outer().join(path), "x").expect("written");
        assert!(passes("fine", |_| {}));
        assert!(passes("fine", write("workspace/new.txt")));
        assert!(!passes("fine", write("secret.txt")));
        assert!(!passes("fine", write("outside/new.txt")));
        assert!(!passes("fine", write("new.txt")));
        assert!(
            !passes("fine", |world| std::fs::remove_file(world.outer().join("outside/secret.txt")).expect("removed"))
        );
    }

    #[test]
    fn whatever_a_result_tells_of_a_canary_is_found() {
        assert!(!passes(SECRET, |_| {}));
    }

    #[test]
    fn a_difference_is_named_with_its_place() {
        let found = differences("", &json!({"a": {"b": 1}, "c": 2}), &json!({"a": {"b": 3}}));
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("  /a/b: 1 in the library, 3"), "{found:?}");
        assert_eq!(differences("", &json!([1]), &json!([1])), Vec::<String>::new());
    }
}
