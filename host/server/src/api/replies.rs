//! A model's reply: its calls are run, and the messages that answer it returned.

use super::answers::Answer;
use super::calls::{ResultView, run};
use super::extract::{Caller, Ids, JsonBody};
use super::ids::check_text_id;
use super::names::{named, one_of};
use super::problem::{ApiError, Problem};
use super::remedy::{self, CameBy};
use super::state::App;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use palisade::formats::Provider;
use palisade::internal::ReadReply;
use palisade::{CancellationToken, Session, ToolResult};
use serde::{Deserialize, Serialize};
use serde_json::Value;
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

/// What follows from a reply.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ReplyAnswer)]
pub(super) struct ReplyView {
    /// The messages to append to the conversation: the model's, and the answer to each of its
    /// calls.
    messages: Vec<Value>,
    /// The results of the calls, in their order.
    #[schema(value_type = Vec<ResultView>)]
    results: Vec<ToolResult>,
    /// True if a tool asks to end the loop: its metadata has `{"stop_loop": true}`.
    stop_loop: bool,
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
            description = "For 24 hours, a repeated request gets the first answer",
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
    let reply = match reply {
        Value::String(text) => text,
        value => value.to_string(),
    };
    // A reply that cannot be read is refused before it takes a key.
    let length = reply.len();
    let reply = app.offload(length, move || ReadReply::read(provider, &reply)).await??;
    let path = format!("/sessions/{id}/replies");
    let mut work = match run::begin(&app, &open.owner, &headers, path, body.digest)? {
        run::Start::Run(work) => work,
        run::Start::Answered(answer) => return Ok(answer.into_response()),
    };
    let cancel = CancellationToken::new();
    let (turn, token) = (turn.map(str::to_owned), cancel.clone());
    let account = body.account;
    let running = tokio::spawn(async move {
        let step = Step { reply, length, turn, cancel: token };
        let answer = step.run(&app, &open.session).await?.counted(&account);
        work.keep(&answer);
        Ok(answer)
    });
    run::wait(running, cancel).await
}

/// One step of an agent's loop.
struct Step {
    reply: ReadReply,
    /// The length of the reply's text, in bytes.
    length: usize,
    turn: Option<String>,
    cancel: CancellationToken,
}

impl Step {
    async fn run(self, app: &App, session: &Session) -> Result<Answer, ApiError> {
        let prepare = |call: palisade::Call| {
            let call = call.with_cancellation(self.cancel.child_token());
            match &self.turn {
                Some(turn) => call.with_turn(turn),
                None => call,
            }
        };
        let (results, transcript) = app.host.run_reply(session, self.reply, prepare).await;
        let stops =
            |result: &ToolResult| result.metadata().get("stop_loop") == Some(&Value::Bool(true));
        let stop_loop = results.iter().any(stops);
        let told = |result| remedy::told(&app.host, result, CameBy::Reply);
        let results = results.into_iter().map(told).collect();
        let write = move || {
            let messages = transcript.messages().to_vec();
            Answer::json(StatusCode::OK, &ReplyView { messages, results, stop_loop })
        };
        app.offload(self.length, write).await
    }
}
