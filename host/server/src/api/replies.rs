//! A model's reply: its calls are run, and the messages that answer it returned.

mod room;

use super::answers::Answer;
use super::calls::{ResultView, run};
use super::extract::{Caller, Ids, JsonBody};
use super::ids::check_text_id;
use super::names::{named, one_of};
use super::offload;
use super::problem::{ApiError, Problem};
use super::remedy::{self, CameBy};
use super::state::App;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use palisade::formats::{Messages, Provider, ReadReply, Repeated, ToolUse};
use palisade::internal::Account;
use palisade::tool::budget::{Budget, Purse};
use palisade::tool::json::text_within;
use palisade::{Call, CancellationToken, Session, ToolResult};
use room::ReplyRoom;
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;
use utoipa::ToSchema;
use utoipa::openapi::schema::{Object, ObjectBuilder, SchemaType, Type};

/// A reply of a model.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReplyRequest {
    /// Whose reply it is. Default: `openai`.
    #[serde(default = "default_provider", deserialize_with = "named")]
    #[schema(schema_with = provider_schema, required = false)]
    provider: Provider,
    #[schema(schema_with = reply_schema)]
    reply: Value,
    /// The turn of the conversation that the calls belong to.
    #[serde(default)]
    #[schema(pattern = "^([ -,.-~]|[ -~]{2,256})$")]
    turn_id: Option<String>,
}

/// The provider of a reply that names none.
const fn default_provider() -> Provider {
    Provider::OpenAi
}

fn reply_schema() -> Object {
    ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([Type::Object, Type::Array, Type::String]))
        .description(Some("The reply as the provider sent it, or its JSON text"))
        .build()
}

fn provider_schema() -> Object {
    one_of(Provider::ALL.map(Provider::as_str))
}

/// The results of a reply.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ReplyAnswer)]
pub(super) struct ReplyView {
    /// The messages to append to the conversation: the model's, and the answer to each of its
    /// calls.
    messages: Vec<Value>,
    /// The results of the calls, in their order.
    results: Vec<ResultView>,
    /// True if a tool asks to end the loop: its metadata has `{"stop_loop": true}`.
    stop_loop: bool,
}

/// The form of a [`ReplyView`], written without a copy of the results.
#[derive(Debug, Serialize)]
struct Written<'a> {
    messages: Messages<'a, ToolResult>,
    results: Results<'a>,
    stop_loop: bool,
}

/// The results of the calls, without the calls.
#[derive(Debug)]
struct Results<'a>(&'a [(ToolUse, ToolResult)]);

impl Serialize for Results<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|(_, result)| result))
    }
}

/// Runs the calls of a model's reply, and returns the messages that the next request to the
/// provider appends.
#[utoipa::path(
    post,
    path = "/sessions/{session_id}/replies",
    tag = "calls",
    params(
        ("session_id" = String, Path, description = "The session's id"),
        ("idempotency-key" = Option<String>, Header,
            description = "For 24 hours, while the server runs, a repeated request gets the first answer",
            pattern = "^[!-~]{1,255}$"),
    ),
    request_body = ReplyRequest,
    responses(
        (status = 200, description = "The messages and results", body = ReplyView),
        (status = 409, description = "`idempotency_key_in_flight`", body = Problem,
            content_type = "application/problem+json"),
    )
)]
pub(super) async fn answer(
    State(app): State<App>,
    Caller(role): Caller,
    Ids(id): Ids<String>,
    headers: HeaderMap,
    body: JsonBody<ReplyRequest>,
) -> Result<Response, ApiError> {
    let open = app.sessions.find_callable(&role, &id).ok_or(ApiError::NoSuchSession)?;
    let ReplyRequest { provider, reply, turn_id } = body.value;
    let turn = turn_id.as_deref().map(|turn| check_text_id("turn_id", turn)).transpose()?;
    // A reply that cannot be read is refused before it takes a key.
    let reading =
        offload::read(body.length, &body.account, move |budget| read(provider, &reply, budget));
    let ReadReply { calls, repeated, .. } = reading.await.map_err(ApiError::NoMemory)??;
    let path = format!("/sessions/{id}/replies");
    let mut work = match run::begin(&app, &open.owner, &headers, path, body.digest)? {
        run::Start::Run(work) => work,
        run::Start::Answered(kept) => return Ok(kept.to_send(&body.account)?.into_response()),
    };
    let cancel = CancellationToken::new();
    let (turn, token) = (turn.map(str::to_owned), cancel.clone());
    let account = body.account;
    let running = tokio::spawn(async move {
        let step = Step { calls, repeated, turn, cancel: token, account };
        let (step, room) = step.reserve()?;
        work.begins_calls();
        // A repeated request gets a failure as well: the calls have run.
        let answer = step.run(&app, &open.session, room).await;
        let answer = answer.unwrap_or_else(|error| Answer::problem(&error));
        work.keep(&answer);
        Ok(answer)
    });
    run::wait(running, cancel).await
}

/// Reads a reply that came as its text, or as a value.
fn read(provider: Provider, reply: &Value, budget: &dyn Budget) -> Result<ReadReply, ApiError> {
    let mut purse = Purse::new(budget);
    let text = match reply {
        Value::String(text) => Cow::Borrowed(text.as_str()),
        value => Cow::Owned(text_within(value, &mut purse).map_err(ApiError::NoMemory)?),
    };
    Ok(ReadReply::within(provider, &text, budget)?)
}

/// One step of an agent's loop.
struct Step {
    calls: Vec<ToolUse>,
    repeated: Repeated,
    turn: Option<String>,
    cancel: CancellationToken,
    /// The memory of the request: of the reply, and of the results until they are written.
    account: Account,
}

impl Step {
    /// Reserves the room of an answer without results, so that there always is an answer.
    fn reserve(self) -> Result<(Self, ReplyRoom), ApiError> {
        let room = ReplyRoom::new(&self.repeated, &self.calls, &self.account);
        Ok((self, room.map_err(ApiError::NoMemory)?))
    }

    async fn run(self, app: &App, session: &Session, room: ReplyRoom) -> Result<Answer, ApiError> {
        let Self { calls, repeated, turn, cancel, account } = self;
        let prepare = |of: &ToolUse| {
            let call = Call::from(of).with_cancellation(cancel.child_token());
            let call = match app.settings.time_of_call(None) {
                Some(time) => call.with_timeout(time),
                None => call,
            };
            match &turn {
                Some(turn) => call.with_turn(turn),
                None => call,
            }
        };
        let prepared = calls.iter().map(prepare).collect();
        let room = Arc::new(room);
        let results = app.host.dispatch_admitted(session, prepared, room.clone()).await;
        let stops =
            |result: &ToolResult| result.metadata().get("stop_loop") == Some(&Value::Bool(true));
        let stop_loop = results.iter().any(stops);
        let told = |result| remedy::told(&app.host, result, CameBy::Reply);
        let answered: Vec<_> = calls.into_iter().zip(results.into_iter().map(told)).collect();
        let (results, text) = room.take();
        let memory = answered.iter().map(|(_, result)| result.footprint()).sum();
        let write = move || {
            let messages = Messages::after(&repeated, &answered);
            let view = Written { messages, results: Results(&answered), stop_loop };
            let answer = Answer::in_room(StatusCode::OK, &view, text);
            drop((answered, results));
            answer
        };
        let written = offload::work(memory, &account, write).await;
        written.flatten().map_err(ApiError::NoMemory)
    }
}
