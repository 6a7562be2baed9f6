//! Asking a legacy client: with a request of the server's own, while the call waits.
//!
//! Such a request belongs to the one that it is about, which the library knows by the task that sends it. The call may run on another thread; so it only hands its
//! questions over, and the task of the request puts them.

use super::question::{Lasting, answer, form};
use crate::confirm::{Answer, Asked, Asker, ConfirmationRequest};
use crate::execution::BoxFuture;
use rmcp::RoleServer;
use rmcp::model::{ClientResult, ElicitRequest, ServerRequest};
use rmcp::service::{Peer, PeerRequestOptions};
use tokio::sync::{mpsc, oneshot};

/// A question on its way to the client. Whoever asked takes back what has no answer by going away.
pub(super) struct Question {
    request: ConfirmationRequest,
    answer: oneshot::Sender<Answer>,
}

/// The end of the way at which questions are asked.
pub(super) struct Asking(mpsc::Sender<Question>);

/// The two ends.
pub(super) fn way() -> (Asking, mpsc::Receiver<Question>) {
    // A call asks one thing after the other.
    let (send, receive) = mpsc::channel(1);
    (Asking(send), receive)
}

impl Asker for Asking {
    fn put<'a>(&'a self, request: &'a ConfirmationRequest) -> BoxFuture<'a, Asked> {
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            let question = Question { request: request.clone(), answer };
            if self.0.try_send(question).is_err() {
                return Asked::Nobody;
            }
            answered.await.map_or(Asked::Nobody, Asked::Answered)
        })
    }
}

/// Puts a question to the client, and withdraws it where whoever asked no longer waits. An error of the client is no answer.
pub(super) async fn put(peer: &Peer<RoleServer>, question: Question) {
    let Question { request, answer: mut asked } = question;
    let Some(params) = form(&request, Lasting::Offered) else { return };
    let request = ServerRequest::ElicitRequest(ElicitRequest::new(params));
    let Ok(mut handle) = peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await else { return };
    tokio::select! {
        biased;
        () = asked.closed() => {
            let _ = handle.cancel(Some("the question no longer stands".to_owned())).await;
        }
        response = &mut handle.rx => {
            if let Ok(Ok(ClientResult::ElicitResult(result))) = response {
                let _ = asked.send(answer(&result, Lasting::Offered));
            }
        }
    }
}
