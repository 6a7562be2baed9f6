//! Asks legacy clients by server requests, while the call waits.
//!
//! The library relates a server request to the client's request by the task that sends it. The call
//! may run in another task, so that it sends its questions over a channel to the request's task.

use crate::messages::reply_accounts::Reply;
use crate::questions::confirmation_form::{Lasting, answer, form};
use crate::questions::plugin_question::{self, told};
use palisade::confirm::ConfirmationRequest;
use palisade::dispatch::Party;
use palisade::execution::{AskFailure, BoxFuture, Client};
use palisade::internal::{Asked, CallConfirmer};
use palisade::tool::budget::Exhausted;
use palisade::tool::{AskKind, AskKinds, AskRequest};
use rmcp::RoleServer;
use rmcp::model::{ClientResult, ElicitRequest, GetExtensions as _, InputRequest, ServerRequest};
use rmcp::service::{Peer, PeerRequestOptions, ServiceError};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// The error code of a request that the user rejected, for methods without a result that says so.
const REJECTED: i32 = -1;

/// A question on its way to the client. Dropping the receiver of its answer withdraws it.
pub(crate) struct Question {
    request: ServerRequest,
    answer: oneshot::Sender<Answered>,
}

/// The client's reply, with its memory account.
struct Answered {
    said: Result<ClientResult, ServiceError>,
    reply: Reply,
}

impl Answered {
    /// Reserves memory for the copies of the answer: a JSON value, the form content, and a text.
    fn copied(&self) -> Result<(), Exhausted> {
        self.reply.account().map_or(Ok(()), |account| account.reserve(COPIES * account.held()))
    }
}

/// The number of copies of an answer that are made on its way to the plugin.
const COPIES: u64 = 3;

/// The sending end of a call's questions.
struct Asking {
    way: mpsc::Sender<Question>,
    kinds: AskKinds,
    plugin: String,
}

/// Returns the party of a call whose client supports these kinds of questions, and the receiver of
/// its questions. There is no receiver if the client supports none.
///
/// Only the party holds the sending end. The caller waits for the withdrawal of questions after the
/// call, so that a second holder would delay each call by the whole withdrawal timeout.
pub(crate) fn party(kinds: AskKinds, plugin: &str) -> (Party, Option<mpsc::Receiver<Question>>) {
    if kinds.is_empty() {
        return (Party::default(), None);
    }
    // A call asks one question at a time.
    let (way, receive) = mpsc::channel(1);
    let can_confirm = kinds.contains(&AskKind::Elicitation);
    let asking = Arc::new(Asking { way, kinds, plugin: plugin.to_owned() });
    let party = Party::default().with_client(asking.clone());
    (if can_confirm { party.with_call_confirmer(asking) } else { party }, Some(receive))
}

impl Asking {
    /// Puts a question and waits for its answer. `None` if it cannot be put, or if the request's
    /// task is gone.
    async fn hand_over(&self, request: ServerRequest) -> Option<Answered> {
        let (answer, answered) = oneshot::channel();
        self.way.try_send(Question { request, answer }).ok()?;
        answered.await.ok()
    }

    async fn ask_one(
        &self,
        request: &AskRequest,
        question: InputRequest,
    ) -> Result<String, AskFailure> {
        let question = server_request(question).ok_or(AskFailure::Unavailable)?;
        let answered = self.hand_over(question).await.ok_or(AskFailure::Unavailable)?;
        let no_room = |why: Exhausted| {
            AskFailure::Invalid(format!(
                "the client's answer to `{}` is too large: {why}",
                request.key
            ))
        };
        answered.copied().map_err(no_room)?;
        match answered.said {
            Ok(ref result) => {
                let result = serde_json::to_value(result)
                    .map_err(|error| AskFailure::Invalid(error.to_string()))?;
                let none = || {
                    Err(AskFailure::Invalid(format!(
                        "the client's answer to `{}` is none",
                        request.key
                    )))
                };
                told(request, &result).unwrap_or_else(none)
            }
            Err(ServiceError::McpError(ref error)) if error.code.0 == REJECTED => {
                Err(AskFailure::Declined)
            }
            Err(_) => Err(AskFailure::Unavailable),
        }
    }
}

impl CallConfirmer for Asking {
    fn put<'a>(&'a self, request: &'a ConfirmationRequest) -> BoxFuture<'a, Asked> {
        Box::pin(async move {
            let Some(params) = form(request, Lasting::Offered) else { return Asked::Nobody };
            match self.hand_over(ServerRequest::ElicitRequest(ElicitRequest::new(params))).await {
                Some(Answered { said: Ok(ClientResult::ElicitResult(result)), .. }) => {
                    Asked::Answered(answer(&result, Lasting::Offered))
                }
                _ => Asked::Nobody,
            }
        })
    }
}

impl Client for Asking {
    fn kinds(&self) -> AskKinds {
        self.kinds.clone()
    }

    fn ask<'a>(
        &'a self,
        requests: Vec<AskRequest>,
    ) -> BoxFuture<'a, Result<Vec<String>, AskFailure>> {
        Box::pin(async move {
            // Validate all questions before the first one is put.
            let questions =
                requests.iter().map(|request| plugin_question::question(&self.plugin, request));
            let questions = questions.collect::<Result<Vec<_>, _>>()?;
            let mut answers = Vec::with_capacity(requests.len());
            for (request, question) in requests.iter().zip(questions) {
                answers.push(self.ask_one(request, question).await?);
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

/// Sends a question to the client, and cancels it if the call no longer waits for the answer.
pub(crate) async fn put(peer: &Peer<RoleServer>, question: Question) {
    let Question { mut request, answer: mut asked } = question;
    let reply = Reply::default();
    request.extensions_mut().insert(reply.clone());
    let mut handle =
        match peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await {
            Ok(handle) => handle,
            Err(error) => {
                let _ = asked.send(Answered { said: Err(error), reply });
                return;
            }
        };
    tokio::select! {
        biased;
        () = asked.closed() => {
            let _ = handle.cancel(Some("the question no longer stands".to_owned())).await;
        }
        response = &mut handle.rx => {
            let said = response.unwrap_or(Err(ServiceError::TransportClosed));
            let _ = asked.send(Answered { said, reply });
        }
    }
}

#[cfg(test)]
mod tests;
