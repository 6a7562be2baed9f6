//! The observations of a case, and the invariants that hold for every case.

use std::sync::Arc;

use palisade::events::Event;
use serde_json::Value;

use crate::uniform;
use crate::world::{SECRET, Snapshot, World};

/// A run of a case.
pub struct Run {
    world: Arc<World>,
    before: [Snapshot; 2],
    result: Value,
    events: Vec<Event>,
}

impl Run {
    /// Records the world in its initial state.
    #[must_use]
    pub(crate) fn start(world: Arc<World>) -> Self {
        let before = [world.inside(), world.outside()];
        Self { world, before, result: Value::Null, events: Vec::new() }
    }

    /// Returns the world of the run.
    pub(crate) fn world(&self) -> &World {
        &self.world
    }

    /// Returns true if the workspace is no longer in its initial state.
    pub(crate) fn has_changed_workspace(&self) -> bool {
        self.world.inside() != self.before[0]
    }

    /// Sets the result and the events of a run through the library, and checks the invariants of
    /// every call.
    #[track_caller]
    pub(crate) fn ended_in_library(self, result: Value, events: Vec<Event>) -> Self {
        uniform::check_events(&result, &events);
        Self { events, ..self.ended(result) }
    }

    /// Sets the result of a run through the program, whose events are not recorded, and checks the
    /// invariants of every call.
    #[track_caller]
    pub(crate) fn ended_in_program(self, result: Value) -> Self {
        self.ended(result)
    }

    #[track_caller]
    fn ended(self, result: Value) -> Self {
        uniform::check_shape(&result);
        assert_eq!(
            self.world.outside(),
            self.before[1],
            "something outside of the workspace has changed"
        );
        let text = result.to_string();
        assert!(
            !text.contains(SECRET),
            "the result contains data from outside of the workspace: {text}"
        );
        Self { result, ..self }
    }

    /// Returns the result without the parts that differ from run to run.
    fn comparable(&self, varying: &[&str]) -> Value {
        let mut result: Value =
            serde_json::from_str(&self.world.anonymous(&self.result.to_string()))
                .expect("still JSON");
        for pointer in ["/call_id", "/duration_ms"].iter().chain(varying) {
            if let Some(place) = result.pointer_mut(pointer) {
                *place = Value::Null;
            }
        }
        result
    }
}

/// The observations of a case.
pub struct Observed {
    /// The result, in the format of `call --json`.
    pub result: Value,
    /// The events of the run through the library.
    pub events: Vec<Event>,
    runs: Vec<Run>,
}

impl Observed {
    #[track_caller]
    pub(crate) fn compare(mut library: Run, program: Run, varying: &[&str]) -> Self {
        let (one, other) = (library.comparable(varying), program.comparable(varying));
        let differences = differences("", &one, &other);
        assert!(
            differences.is_empty(),
            "the library and the program differ:\n{}",
            differences.join("\n")
        );
        Self {
            result: one,
            events: std::mem::take(&mut library.events),
            runs: vec![library, program],
        }
    }

    #[track_caller]
    pub(crate) fn alone(mut run: Run) -> Self {
        // Moved instead of cloned: a copy would count as growth for the oracle of a concurrent
        // test.
        let (result, events) = (std::mem::take(&mut run.result), std::mem::take(&mut run.events));
        Self { result, events, runs: vec![run] }
    }

    /// Returns the output of a successful call.
    ///
    /// # Panics
    ///
    /// If the call failed.
    #[track_caller]
    #[must_use]
    pub fn output(&self) -> &str {
        self.result["output"]
            .as_str()
            .unwrap_or_else(|| panic!("the call failed: {:#}", self.result["error"]))
    }

    /// Returns the error of a call that failed with this class.
    ///
    /// # Panics
    ///
    /// If the call succeeded or failed with another class.
    #[track_caller]
    #[must_use]
    pub fn error(&self, class: &str) -> &Value {
        let error = &self.result["error"];
        assert_eq!(error["class"].as_str(), Some(class), "{:#}", self.result);
        error
    }

    /// Returns the message of a call that failed with this class.
    ///
    /// # Panics
    ///
    /// If the call succeeded or failed with another class.
    #[track_caller]
    #[must_use]
    pub fn message(&self, class: &str) -> &str {
        self.error(class)["message"].as_str().expect("every error has a message")
    }

    /// Returns `detail.kind` of an execution error.
    ///
    /// # Panics
    ///
    /// If the call did not end with an execution error.
    #[track_caller]
    #[must_use]
    pub fn kind(&self) -> &str {
        self.error("execution_error")["detail"]["kind"]
            .as_str()
            .expect("every execution error has a kind")
    }

    /// Returns the name of the limit that the call exceeded.
    ///
    /// # Panics
    ///
    /// If the call did not exceed a limit.
    #[track_caller]
    #[must_use]
    pub fn limit(&self) -> &str {
        self.error("resource_exhausted")["detail"]["limit"]
            .as_str()
            .expect("every limit has a name")
    }

    /// Returns the results of the runs as they were told, each with its world. The text of
    /// [`result`](Self::result) holds no path of a world if the runs were compared.
    pub fn results(&self) -> impl Iterator<Item = (&World, &Value)> {
        // The result of a single run was moved.
        self.runs
            .iter()
            .map(|run| (&*run.world, if run.result.is_null() { &self.result } else { &run.result }))
    }

    /// Returns the worlds of the runs.
    pub fn worlds(&self) -> impl Iterator<Item = &World> {
        self.runs.iter().map(|run| &*run.world)
    }

    /// Checks that the workspace is unchanged, by comparing every entry on disk.
    ///
    /// # Panics
    ///
    /// If an entry has changed.
    #[track_caller]
    pub fn changed_nothing(&self) -> &Self {
        for run in &self.runs {
            assert_eq!(run.world.inside(), run.before[0], "the workspace has changed");
        }
        self
    }

    /// Checks the contents of a file in the workspace, or its absence with `None`.
    ///
    /// # Panics
    ///
    /// If the contents differ.
    #[track_caller]
    pub fn left(&self, path: &str, contents: Option<&str>) -> &Self {
        for world in self.worlds() {
            assert_eq!(world.read(path).as_deref(), contents, "{path}");
        }
        self
    }

    /// Checks the modified files that the result lists.
    ///
    /// # Panics
    ///
    /// If the lists differ.
    #[track_caller]
    pub fn modified(&self, files: &[&str]) -> &Self {
        assert_eq!(self.result["files_modified"], serde_json::json!(files));
        self
    }
}

/// Returns the differences between two JSON values, field by field.
fn differences(place: &str, one: &Value, other: &Value) -> Vec<String> {
    match (one, other) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            let of = |map: &serde_json::Map<String, Value>, key: &str| {
                map.get(key).cloned().unwrap_or(Value::from("<absent>"))
            };
            keys.into_iter()
                .flat_map(|key| differences(&format!("{place}/{key}"), &of(a, key), &of(b, key)))
                .collect()
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

    /// Returns true if these checks of a run pass. Takes the turn, because the checks may panic and
    /// an oracle counts panics.
    fn holds(check: impl FnOnce() -> Run) -> bool {
        let _turn = crate::oracle::turn();
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(check()))).is_ok()
    }

    fn result(output: &str) -> Value {
        ToolResult::success(CallId::new("c"), "t", output).to_json()
    }

    /// Returns true if the checks of a run pass after `happens`, with this output.
    fn passes(output: &str, happens: impl FnOnce(&World)) -> bool {
        let run = Run::start(Arc::new(World::new()));
        happens(run.world());
        holds(|| run.ended_in_program(result(output)))
    }

    #[test]
    fn library_run_without_events_is_found() {
        let run = || Run::start(Arc::new(World::new()));
        assert!(!holds(|| run().ended_in_library(result("fine"), Vec::new())));
        assert!(holds(|| run().ended_in_program(result("fine"))));
    }

    #[test]
    fn every_change_around_a_workspace_is_found() {
        let write = |path: &'static str| {
            move |world: &World| std::fs::write(world.outer().join(path), "x").expect("written")
        };
        assert!(passes("fine", |_| {}));
        assert!(passes("fine", write("workspace/new.txt")));
        assert!(!passes("fine", write("secret.txt")));
        assert!(!passes("fine", write("outside/new.txt")));
        assert!(!passes("fine", write("new.txt")));
        assert!(!passes("fine", |world| std::fs::remove_file(
            world.outer().join("outside/secret.txt")
        )
        .expect("removed")));
    }

    #[test]
    fn canary_in_any_part_of_a_result_is_found() {
        assert!(!passes(SECRET, |_| {}));
    }

    #[test]
    fn difference_is_named_with_its_place() {
        let found = differences("", &json!({"a": {"b": 1}, "c": 2}), &json!({"a": {"b": 3}}));
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("  /a/b: 1 in the library, 3"), "{found:?}");
        assert_eq!(differences("", &json!([1]), &json!([1])), Vec::<String>::new());
    }
}
