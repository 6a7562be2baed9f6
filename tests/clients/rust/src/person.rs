//! The person in front of the client, and all that the client hears without having asked for it.

use crate::PATIENCE;
use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationCapability,
    ErrorData, FormElicitationCapability, Implementation, LoggingMessageNotificationParam, ProgressNotificationParam,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use serde_json::json;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What is answered to a question.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Answer {
    Accept,
    Decline,
    /// None, for longer than anybody waits.
    Ignore,
}

impl Answer {
    /// The answer as it goes over the wire, once it is given.
    pub(crate) async fn give(self) -> ElicitResult {
        match self {
            Self::Accept => {
                ElicitResult::new(ElicitationAction::Accept).with_content(json!({"decision": "allow_once"}))
            }
            Self::Decline => ElicitResult::new(ElicitationAction::Decline),
            Self::Ignore => {
                tokio::time::sleep(PATIENCE).await;
                ElicitResult::new(ElicitationAction::Cancel)
            }
        }
    }
}

/// What was heard so far, and what the next question is answered.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    /// The texts of the questions.
    pub(crate) questions: Vec<String>,
    /// What was logged.
    pub(crate) said: Vec<String>,
    /// Steps: how much, of what.
    pub(crate) steps: Vec<(f64, Option<f64>)>,
    answer: Option<Answer>,
}

/// Hears on behalf of the client. Clones hear the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Person(Arc<Mutex<Heard>>);

impl Person {
    /// What it heard.
    pub(crate) fn heard(&self) -> MutexGuard<'_, Heard> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Questions are answered so from now on; before that, they are declined.
    pub(crate) fn will(&self, answer: Answer) {
        self.heard().answer = Some(answer);
    }
}

impl ClientHandler for Person {
    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let answer = {
            let mut heard = self.heard();
            match request {
                ElicitRequestParams::FormElicitationParams { message, .. } => heard.questions.push(message),
                other => heard.questions.push(format!("no form, but {other:?}")),
            }
            heard.answer.unwrap_or(Answer::Decline)
        };
        Ok(answer.give().await)
    }

    async fn on_progress(&self, step: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.heard().steps.push((step.progress, step.total));
    }

    async fn on_logging_message(&self, line: LoggingMessageNotificationParam, _: NotificationContext<RoleClient>) {
        self.heard().said.push(line.data.to_string());
    }

    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(ElicitationCapability::new().with_form(FormElicitationCapability::new()));
        ClientConfig::new(capabilities, Implementation::new("suite", "1"))
    }
}
