//! Tests tools without WebAssembly. This module exists in native builds only.
//!
//! The function of a tool can be called directly. This module adds the parts that a plain call
//! lacks: a [`Context`] that records, and the conversion from JSON to the output.
//!
//! ```
//! use palisade_guest::{Context, Result, testing, tool};
//! use serde_json::json;
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Args {
//!     /// How often.
//!     times: u32,
//! }
//!
//! /// Counts.
//! #[tool(side_effects = "none")]
//! fn count(args: Args, ctx: &Context) -> Result<String> {
//!     for n in 0..args.times {
//!         ctx.checkpoint()?;
//!         ctx.emit(&n.to_string());
//!     }
//!     Ok("done".to_owned())
//! }
//!
//! # fn main() -> Result<()> {
//! let ctx = testing::context();
//! assert_eq!(count(Args { times: 2 }, &ctx)?, "done");
//! assert_eq!(ctx.record().emitted, ["0", "1"]);
//!
//! assert_eq!(testing::call::<count>(json!({ "times": 2 }))?.to_text(), "done");
//! let refused = testing::call::<count>(json!({ "times": "2" })).unwrap_err();
//! assert_eq!(refused.field(), Some("/times"));
//!
//! let ctx = testing::context().cancelled_after(1);
//! let stopped = testing::call_with::<count>(json!({ "times": 2 }), &ctx);
//! assert_eq!(stopped.unwrap_err(), palisade_guest::Error::cancelled());
//!
//! assert_eq!(testing::input_schema::<count>()["required"], json!(["times"]));
//! # Ok(())
//! # }
//! ```

use std::ops::Deref;
use std::time::Duration;

use serde_json::Value;

use crate::bindings::palisade::tool::types::Call;
use crate::{Context, Definition, Level, Output, Result, Tool};

/// Returns a context for a test: a call that is never cancelled, with a minute left.
#[must_use]
pub fn context() -> TestContext {
    TestContext(Context::of(call_of("test", "{}")))
}

/// Calls a tool as the host does: deserialises the input, runs the function, and converts its
/// return value to the output.
///
/// Does not check the input against the schema; the host does that before a call.
///
/// # Errors
/// The error of the tool, and `invalid-input` if the input does not fit the function's arguments.
pub fn call<T: Tool>(input: Value) -> Result<Output> {
    call_with::<T>(input, &context())
}

/// Calls a tool with a context.
///
/// # Errors
/// As [`call`].
#[allow(clippy::needless_pass_by_value, reason = "a test writes `json!(..)` in place")]
pub fn call_with<T: Tool>(input: Value, context: &Context) -> Result<Output> {
    T::execute(&input.to_string(), context)
}

/// Returns the definition that the host reads when it loads the plugin.
#[must_use]
pub fn definition<T: Tool>() -> Definition {
    T::definition()
}

/// Returns the schema of a tool's input.
#[must_use]
pub fn input_schema<T: Tool>() -> Value {
    parsed(&T::definition().input_schema)
}

/// Returns the schema of a tool's output, if it has one.
#[must_use]
pub fn output_schema<T: Tool>() -> Option<Value> {
    T::definition().output_schema.as_deref().map(parsed)
}

/// A [`Context`] for a test that records the messages of the tool.
#[derive(Debug)]
pub struct TestContext(Context);

/// The messages of a tool, each list in order.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Record {
    /// The logged messages.
    pub logs: Vec<(Level, String)>,
    /// The progress reports.
    pub progress: Vec<Progress>,
    /// The emitted chunks of output.
    pub emitted: Vec<String>,
}

/// One report of [`Context::progress`].
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// The amount done.
    pub done: f64,
    /// The total, if the tool reported one.
    pub total: Option<f64>,
    /// The message; empty if the tool reported none.
    pub message: String,
}

impl TestContext {
    /// Sets the context of the caller.
    #[must_use]
    #[allow(clippy::needless_pass_by_value, reason = "a test writes `json!(..)` in place")]
    pub fn with_caller(self, caller: Value) -> Self {
        self.with(|call| call.context = caller.to_string())
    }

    /// Sets the metadata of the call.
    #[must_use]
    #[allow(clippy::needless_pass_by_value, reason = "a test writes `json!(..)` in place")]
    pub fn with_metadata(self, metadata: Value) -> Self {
        self.with(|call| call.metadata = metadata.to_string())
    }

    /// Sets the ID of the call.
    #[must_use]
    pub fn with_call_id(self, id: &str) -> Self {
        self.with(|call| call.call_id = id.to_owned())
    }

    /// Sets the conversation that the call belongs to.
    #[must_use]
    pub fn with_session_id(self, id: &str) -> Self {
        self.with(|call| call.session_id = Some(id.to_owned()))
    }

    /// Sets the turn within the conversation.
    #[must_use]
    pub fn with_turn_id(self, id: &str) -> Self {
        self.with(|call| call.turn_id = Some(id.to_owned()))
    }

    /// Sets the time left when the call starts, in whole milliseconds.
    #[must_use]
    pub fn with_remaining(self, remaining: Duration) -> Self {
        self.with(|call| {
            call.remaining_ms = u64::try_from(remaining.as_millis()).unwrap_or(u64::MAX);
        })
    }

    /// Makes the call appear cancelled after the first `polls` polls.
    #[must_use]
    pub fn cancelled_after(mut self, polls: u32) -> Self {
        self.0.backend_mut().cancel_after(polls);
        self
    }

    /// Returns the messages of the tool so far.
    #[must_use]
    pub fn record(&self) -> Record {
        self.0.backend().record()
    }

    fn with(mut self, change: impl FnOnce(&mut Call)) -> Self {
        change(self.0.call_mut());
        self
    }
}

impl Deref for TestContext {
    type Target = Context;

    fn deref(&self) -> &Context {
        &self.0
    }
}

/// Returns a call of `tool` with default values.
pub(crate) fn call_of(tool: &str, input: &str) -> Call {
    Call {
        call_id: "call_1".to_owned(),
        session_id: None,
        turn_id: None,
        tool: tool.to_owned(),
        input: input.to_owned(),
        remaining_ms: 60_000,
        context: "{}".to_owned(),
        metadata: String::new(),
    }
}

/// Parses a schema that this crate has generated, which is valid JSON.
fn parsed(schema: &str) -> Value {
    serde_json::from_str(schema).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Error, ErrorKind};
    use serde_json::json;

    #[test]
    fn context_has_the_values_of_the_test() {
        let ctx = context()
            .with_call_id("c")
            .with_session_id("s")
            .with_turn_id("t")
            .with_caller(json!({"user": "u"}))
            .with_metadata(json!({"k": 1}));
        assert_eq!((ctx.call_id(), ctx.session_id(), ctx.turn_id()), ("c", Some("s"), Some("t")));
        assert_eq!(ctx.caller()["user"], "u");
        assert_eq!(ctx.metadata()["k"], 1);
    }

    #[test]
    fn configuration_is_a_part_of_the_metadata() {
        let ctx = context().with_metadata(json!({"plugin-config": {"depth": 2}}));
        assert_eq!(ctx.config()["depth"], 2);
        assert_eq!(context().config(), &Value::Null);
    }

    #[test]
    fn unset_caller_is_an_empty_object() {
        let ctx = context();
        assert_eq!((ctx.session_id(), ctx.turn_id()), (None, None));
        assert_eq!(ctx.caller(), &json!({}));
        assert_eq!(ctx.metadata(), &json!({}));
    }

    #[test]
    fn host_calls_are_recorded_in_order() {
        let ctx = context();
        ctx.debug("a");
        ctx.info("b");
        ctx.warn("c");
        ctx.error("d");
        ctx.log(Level::Trace, "e");
        ctx.progress(1.0, Some(2.0), "half");
        ctx.progress(2.0, None, "");
        ctx.emit("x");
        let record = ctx.record();
        let levels: Vec<_> =
            record.logs.iter().map(|(level, text)| (*level, text.as_str())).collect();
        let expected = [
            (Level::Debug, "a"),
            (Level::Info, "b"),
            (Level::Warn, "c"),
            (Level::Error, "d"),
            (Level::Trace, "e"),
        ];
        assert_eq!(levels, expected);
        let half = Progress { done: 1.0, total: Some(2.0), message: "half".to_owned() };
        let rest = Progress { done: 2.0, total: None, message: String::new() };
        assert_eq!(record.progress, [half, rest]);
        assert_eq!(record.emitted, ["x"]);
    }

    #[test]
    fn cancellation_starts_after_the_given_polls() {
        let ctx = context().cancelled_after(2);
        assert!(!ctx.cancelled());
        assert_eq!(ctx.checkpoint(), Ok(()));
        assert!(ctx.cancelled());
        assert_eq!(ctx.checkpoint().map_err(|error| error.kind()), Err(ErrorKind::Cancelled));
        assert!(context().cancelled_after(0).cancelled());
        assert!(!context().cancelled());
    }

    #[test]
    fn time_runs_out_and_stops_at_zero() {
        let minute = Duration::from_secs(60);
        let ctx = context().with_remaining(minute);
        ctx.begin();
        let first = ctx.remaining();
        assert!(first <= minute && ctx.remaining() <= first);
        assert_eq!(context().with_remaining(Duration::ZERO).remaining(), Duration::ZERO);
    }

    #[test]
    fn test_call_parses_input_and_runs_the_tool() {
        /// Adds.
        #[crate::tool(side_effects = "none")]
        fn add(args: (u8, u8), ctx: &Context) -> Result<String> {
            ctx.info("adding");
            args.0
                .checked_add(args.1)
                .map(|sum| sum.to_string())
                .ok_or_else(|| Error::failed("too much"))
        }
        let ctx = context();
        assert_eq!(call_with::<add>(json!([1, 2]), &ctx), Ok(Output::text("3")));
        assert_eq!(ctx.record().logs, [(Level::Info, "adding".to_owned())]);
        assert_eq!(call::<add>(json!([255, 1])), Err(Error::failed("too much")));
        assert_eq!(
            call::<add>(json!([256, 1])).map_err(|error| error.kind()),
            Err(ErrorKind::InvalidInput)
        );
    }
}
