//! The user of the client, and all messages that the client receives besides responses.

use crate::PATIENCE;
use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationCapability, ErrorData, FormElicitationCapability, Implementation,
    LoggingMessageNotificationParam, ProgressNotificationParam,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use serde_json::json;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The answer to a question.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Answer {
    Accept,
    Decline,
    /// No answer until after every timeout.
    Ignore,
}

impl Answer {
    /// Returns the answer in the form of the protocol, once it is given.
    pub(crate) async fn give(self) -> ElicitResult {
        match self {
            Self::Accept => ElicitResult::new(ElicitationAction::Accept)
                .with_content(json!({"decision": "allow_once"})),
            Self::Decline => ElicitResult::new(ElicitationAction::Decline),
            Self::Ignore => {
                tokio::time::sleep(PATIENCE).await;
                ElicitResult::new(ElicitationAction::Cancel)
            }
        }
    }
}

/// The messages received so far, and the answer to the next question.
#[derive(Debug, Default)]
pub(crate) struct Received {
    /// The texts of the questions.
    pub(crate) questions: Vec<String>,
    /// The log messages.
    pub(crate) log_messages: Vec<String>,
    /// The progress steps: the amount done, and the total.
    pub(crate) steps: Vec<(f64, Option<f64>)>,
    answer: Option<Answer>,
}

/// A user of the client. Clones share their state.
#[derive(Debug, Clone, Default)]
pub(crate) struct User(Arc<Mutex<Received>>);

impl User {
    /// Returns the received messages.
    pub(crate) fn received(&self) -> MutexGuard<'_, Received> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the answer to further questions; without it they are declined.
    pub(crate) fn answer_with(&self, answer: Answer) {
        self.received().answer = Some(answer);
    }
}

impl ClientHandler for User {
    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let answer = {
            let mut received = self.received();
            match request {
                ElicitRequestParams::FormElicitationParams { message, .. } => {
                    received.questions.push(message)
                }
                other => received.questions.push(format!("no form, but {other:?}")),
            }
            received.answer.unwrap_or(Answer::Decline)
        };
        Ok(answer.give().await)
    }

    async fn on_progress(
        &self,
        step: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.received().steps.push((step.progress, step.total));
    }

    async fn on_logging_message(
        &self,
        line: LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.received().log_messages.push(line.data.to_string());
    }

    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation =
            Some(ElicitationCapability::new().with_form(FormElicitationCapability::new()));
        ClientConfig::new(capabilities, Implementation::new("suite", "1"))
    }
}
