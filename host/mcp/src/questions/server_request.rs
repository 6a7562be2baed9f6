//! Asks stateful clients by server requests, while the call waits.
//!
//! `rmcp` relates a server request to the client's request by the task that sends it. The call may
//! run in another task, so that it sends its questions over a channel to the request's task.

use super::confirmation_form::{SessionAnswer, confirmation_form, interpret};
use super::plugin_question::{convert_answer, input_request, may_confirm};
use crate::messages::reply_accounts::ReplyAccount;
use crate::protocol::lifecycle::Dialect;
use crate::settings::ConfirmedBy;
use palisade::Requester;
use palisade::confirm::ConfirmationRequest;
use palisade::internal::{Account, CallAnswer, CallConfirmer};
use palisade::sandbox::limits;
use palisade::tool::budget::Exhausted;
use palisade::{AskFailure, BoxFuture, Client};
use palisade::{AskKinds, AskRequest};
use rmcp::RoleServer;
use rmcp::model::{ClientResult, ElicitRequest, GetExtensions as _, InputRequest, ServerRequest};
use rmcp::service::{Peer, PeerRequestOptions, ServiceError};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// The error code of a request that the user rejected, for methods without a result that says so.
const USER_REJECTED: i32 = -1;

/// The number of copies of an answer that are made on its way to the plugin.
const COPIES: u64 = 3;

/// A question on its way to the client. Dropping the receiver of its reply withdraws it.
pub(crate) struct Question {
    request: ServerRequest,
    reply: oneshot::Sender<ClientReply>,
}

/// The requester of a call, and the receiver of its questions. There is no receiver if the client
/// supports no questions.
///
/// Only the requester holds the sending end. The request waits for the withdrawal of questions
/// after the call, so that a second holder would delay each call by the whole withdrawal timeout.
pub(crate) struct AskingRequester {
    /// The requester, which asks the questions of the call.
    pub(crate) requester: Requester,
    /// The questions to send to the client.
    pub(crate) questions: Option<mpsc::Receiver<Question>>,
}

impl AskingRequester {
    /// Creates the requester of a call whose client supports these kinds of questions, in this
    /// dialect, and may answer the host's question as `confirmed_by` says.
    pub(crate) fn new(
        kinds: AskKinds,
        plugin: &str,
        dialect: Dialect,
        confirmed_by: ConfirmedBy,
    ) -> Self {
        if kinds.is_empty() {
            return Self { requester: Requester::default(), questions: None };
        }
        // A call asks one question at a time, as does each of the calls that it makes at once. The
        // client gets them one by one.
        let (questions, receiver) = mpsc::channel(limits::NESTED_AT_ONCE);
        let can_confirm = may_confirm(&kinds, confirmed_by);
        let sender =
            Arc::new(QuestionSender { questions, kinds, plugin: plugin.to_owned(), dialect });
        let requester = Requester::default().with_client(sender.clone());
        let requester = if can_confirm { requester.with_call_confirmer(sender) } else { requester };
        Self { requester, questions: Some(receiver) }
    }
}

/// Sends a question to the client, and cancels it if the call no longer waits for the reply.
pub(crate) async fn send(peer: &Peer<RoleServer>, question: Question) {
    let Question { mut request, mut reply } = question;
    // Another confirmer may have answered before the question was sent.
    if reply.is_closed() {
        return;
    }
    let account = ReplyAccount::default();
    request.extensions_mut().insert(account.clone());
    let sent = peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await;
    let mut handle = match sent {
        Ok(handle) => handle,
        Err(error) => {
            let _ = reply.send(ClientReply { result: Err(error), account });
            return;
        }
    };
    tokio::select! {
        biased;
        () = reply.closed() => {
            let _ = handle.cancel(Some("the question no longer stands".to_owned())).await;
        }
        response = &mut handle.rx => {
            let result = response.unwrap_or(Err(ServiceError::TransportClosed));
            let _ = reply.send(ClientReply { result, account });
        }
    }
}

/// The client's reply, with its memory account.
struct ClientReply {
    result: Result<ClientResult, ServiceError>,
    account: ReplyAccount,
}

impl ClientReply {
    /// Reserves memory for the copies of the answer: a JSON value, the form content, and a text.
    fn reserve_copies(&self) -> Result<(), Exhausted> {
        let reserve = |account: Account| account.reserve(COPIES * account.held());
        self.account.account().map_or(Ok(()), reserve)
    }
}

/// The sending end of a call's questions.
struct QuestionSender {
    questions: mpsc::Sender<Question>,
    kinds: AskKinds,
    plugin: String,
    dialect: Dialect,
}

impl QuestionSender {
    /// Sends a question and waits for its reply. `None` if it cannot be sent, or if the request's
    /// task is gone.
    async fn send(&self, request: ServerRequest) -> Option<ClientReply> {
        let (reply, replied) = oneshot::channel();
        self.questions.try_send(Question { request, reply }).ok()?;
        replied.await.ok()
    }

    /// Asks a question of the plugin.
    async fn ask_for_plugin(
        &self,
        request: &AskRequest,
        question: InputRequest,
    ) -> Result<String, AskFailure> {
        let key = &request.key;
        let question = server_request(question).ok_or(AskFailure::Unavailable)?;
        let reply = self.send(question).await.ok_or(AskFailure::Unavailable)?;
        reply.reserve_copies().map_err(|why| {
            AskFailure::Invalid(format!("the client's answer to `{key}` is too large: {why}"))
        })?;
        match reply.result {
            Ok(ref result) => {
                let result = serde_json::to_value(result)
                    .map_err(|error| AskFailure::Invalid(error.to_string()))?;
                let none =
                    || Err(AskFailure::Invalid(format!("the client's answer to `{key}` is none")));
                convert_answer(request, &result).unwrap_or_else(none)
            }
            Err(ServiceError::McpError(ref error)) if error.code.0 == USER_REJECTED => {
                Err(AskFailure::Declined)
            }
            Err(_) => Err(AskFailure::Unavailable),
        }
    }
}

impl CallConfirmer for QuestionSender {
    fn ask<'a>(&'a self, request: &'a ConfirmationRequest) -> BoxFuture<'a, CallAnswer> {
        Box::pin(async move {
            let Some(form) = confirmation_form(request, SessionAnswer::Offered, self.dialect)
            else {
                return CallAnswer::Unavailable;
            };
            match self.send(ServerRequest::ElicitRequest(ElicitRequest::new(form))).await {
                Some(ClientReply { result: Ok(ClientResult::ElicitResult(result)), .. }) => {
                    CallAnswer::Answered(interpret(&result, SessionAnswer::Offered))
                }
                _ => CallAnswer::Unavailable,
            }
        })
    }
}

impl Client for QuestionSender {
    fn kinds(&self) -> AskKinds {
        self.kinds.clone()
    }

    fn ask<'a>(
        &'a self,
        requests: Vec<AskRequest>,
    ) -> BoxFuture<'a, Result<Vec<String>, AskFailure>> {
        Box::pin(async move {
            // Validate all questions before the first one is sent.
            let questions =
                requests.iter().map(|request| input_request(&self.plugin, request, self.dialect));
            let questions = questions.collect::<Result<Vec<_>, _>>()?;
            let mut answers = Vec::with_capacity(requests.len());
            for (request, question) in requests.iter().zip(questions) {
                answers.push(self.ask_for_plugin(request, question).await?);
            }
            Ok(answers)
        })
    }
}

fn server_request(question: InputRequest) -> Option<ServerRequest> {
    match question {
        InputRequest::Elicitation(request) => Some(ServerRequest::ElicitRequest(request)),
        InputRequest::CreateMessage(request) => Some(ServerRequest::CreateMessageRequest(request)),
        InputRequest::ListRoots(request) => Some(ServerRequest::ListRootsRequest(request)),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
