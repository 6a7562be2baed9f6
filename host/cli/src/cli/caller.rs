//! The conversation that a call belongs to, as the caller names it: `--session`, `--turn` and
//! `--context`.

use super::args::Caller as Args;
use super::exit::Failure;
use super::input;
use palisade::tool::json::{Json, JsonBounds};
use palisade::{Call, Host, Session};
use serde_json::Value;

/// The caller's part of each call.
pub(super) struct Caller<'a> {
    args: &'a Args,
    context: Option<Value>,
}

impl<'a> Caller<'a> {
    /// Reads the context.
    pub(super) fn new(args: &'a Args) -> Result<Self, Failure> {
        let context = args.context.as_deref().map(context).transpose()?;
        Ok(Self { args, context })
    }

    /// Returns the session of this id, or the host's own if there is no id.
    pub(super) fn session(&self, host: &Host, usual: Option<&str>) -> Session {
        match self.args.session.as_deref().or(usual) {
            Some(id) => host.new_session(id).build(),
            None => host.session().clone(),
        }
    }

    /// Adds the turn and the context to a call.
    pub(super) fn prepare(&self, mut call: Call) -> Call {
        if let Some(turn) = &self.args.turn {
            call = call.with_turn(turn);
        }
        match &self.context {
            Some(context) => call.with_context(context.clone()),
            None => call,
        }
    }
}

fn context(argument: &str) -> Result<Value, Failure> {
    let bounds = JsonBounds::CALL_INPUT;
    let text = input::text_or_file(argument, bounds.bytes as u64)?;
    let parsed = Json::parse(&text, bounds);
    parsed.map(|json| json.to_value()).map_err(|error| {
        Failure::usage(format!(
            "the value of --context is not accepted: {error}; want one JSON value, such as '{{\"user\": 7}}', or `@FILE` with one"
        ))
    })
}
