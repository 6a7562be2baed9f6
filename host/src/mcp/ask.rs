//! Asking a legacy client: with a request of the server's own, while the call waits.
//!
//! Such a request belongs to the one that it is about, which the library knows by the task that sends it. The call may run on another thread; so it only hands its
//! questions over, and the task of the request puts them.

use super::asked::{self, told};
use super::question::{Lasting, answer, form};
use crate::confirm::{Asked, Asker, ConfirmationRequest};
use crate::execution::{AskFailure, BoxFuture, Client};
use crate::tool::{AskKinds, AskRequest};
use rmcp::RoleServer;
use rmcp::model::{ClientResult, ElicitRequest, InputRequest, ServerRequest};
use rmcp::service::{Peer, PeerRequestOptions, ServiceError};
use tokio::sync::{mpsc, oneshot};

/// What users say no with to a request that has no other way to say it.
const REJECTED: i32 = -1;

/// A question on its way to the client. Whoever asked takes back what has no answer by going away.
pub(super) struct Question {
    request: ServerRequest,
    answer: oneshot::Sender<Result<ClientResult, ServiceError>>,
}

/// The end of the way at which questions are asked.
pub(super) struct Asking {
    way: mpsc::Sender<Question>,
    kinds: AskKinds,
    plugin: String,
}

/// The two ends, for a client that can be asked for these, and the plugin of this name.
pub(super) fn way(kinds: AskKinds, plugin: &str) -> (Asking, mpsc::Receiver<Question>) {
    // A call asks one thing after the other.
    let (way, receive) = mpsc::channel(1);
    (Asking { way, kinds, plugin: plugin.to_owned() }, receive)
}

impl Asking {
    /// Nothing where the question could not be put, or nobody is there any more to answer it.
    async fn hand_over(&self, request: ServerRequest) -> Option<Result<ClientResult, ServiceError>> {
        let (answer, answered) = oneshot::channel();
        self.way.try_send(Question { request, answer }).ok()?;
        answered.await.ok()
    }

    async fn ask_one(&self, request: &AskRequest, question: InputRequest) -> Result<String, AskFailure> {
        let question = server_request(question).ok_or(AskFailure::Unavailable)?;
        match self.hand_over(question).await {
            Some(Ok(result)) => {
                let result = serde_json::to_value(&result).map_err(|error| AskFailure::Invalid(error.to_string()))?;
                let none = || Err(AskFailure::Invalid(format!("the client's answer to `{}` is none", request.key)));
                told(request, &result).unwrap_or_else(none)
            }
            Some(Err(ServiceError::McpError(error))) if error.code.0 == REJECTED => Err(AskFailure::Declined),
            _ => Err(AskFailure::Unavailable),
        }
    }
}

impl Asker for Asking {
    fn put<'a>(&'a self, request: &'a ConfirmationRequest) -> BoxFuture<'a, Asked> {
        Box::pin(async move {
            let Some(params) = form(request, Lasting::Offered) else { return Asked::Nobody };
            match self.hand_over(ServerRequest::ElicitRequest(ElicitRequest::new(params))).await {
                Some(Ok(ClientResult::ElicitResult(result))) => Asked::Answered(answer(&result, Lasting::Offered)),
                _ => Asked::Nobody,
            }
        })
    }
}

impl Client for Asking {
    fn kinds(&self) -> AskKinds {
        self.kinds.clone()
    }

    fn ask<'a>(&'a self, requests: Vec<AskRequest>) -> BoxFuture<'a, Result<Vec<String>, AskFailure>> {
        Box::pin(async move {
            // All are looked at before the first is put.
            let questions = requests.iter().map(|request| asked::question(&self.plugin, request));
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

/// Puts a question to the client, and withdraws it where whoever asked no longer waits.
pub(super) async fn put(peer: &Peer<RoleServer>, question: Question) {
    let Question { request, answer: mut asked } = question;
    let mut handle = match peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await {
        Ok(handle) => handle,
        Err(error) => {
            let _ = asked.send(Err(error));
            return;
        }
    };
    tokio::select! {
        biased;
        () = asked.closed() => {
            let _ = handle.cancel(Some("the question no longer stands".to_owned())).await;
        }
        response = &mut handle.rx => {
            let _ = asked.send(response.unwrap_or(Err(ServiceError::TransportClosed)));
        }
    }
}
