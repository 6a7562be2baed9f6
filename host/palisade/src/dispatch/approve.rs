//! The approval of a call: the policy's decision, and the user's where the policy asks.

mod displayed_changes;
pub(super) mod paths;
pub(crate) mod question;
mod summary;

use self::displayed_changes::DisplayedChanges;
use self::question::Answered;
use super::errors::not_approved;
use super::pipeline::Pipeline;
use super::requester::AnswerScope;
use crate::confirm::Answer;
use crate::execution::ValidInput;
use crate::execution::account::Account;
use crate::execution::blocking::run_blocking;
use crate::execution::offload::exhaustion_error;
use crate::policy::{Decision, Mode, Rule};
use crate::registry::{Origin, Registered};
use crate::session::Allowance;
use crate::tool::{Digest, ErrorKind, PermissionReason};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The permission to run this tool of this plugin with this input once: running consumes it.
pub(super) struct Approval {
    tool: Arc<Registered>,
    input: ValidInput,
    expiry: Option<Expiry>,
    /// The changes that a question has displayed.
    displayed: Option<DisplayedChanges>,
}

/// The expiry of an answer: it applies as long as its request would have been open.
struct Expiry {
    at: Instant,
    after: Duration,
}

impl Approval {
    /// The permission of a rule, or of an earlier answer.
    fn unasked(tool: Arc<Registered>, input: ValidInput) -> Self {
        Self { tool, input, expiry: None, displayed: None }
    }

    /// Returns an error if the answer expired while the approved call waited in a queue.
    pub(super) fn check_expiry(&self) -> Result<(), ErrorKind> {
        match &self.expiry {
            Some(expiry) if Instant::now() > expiry.at => {
                Err(ErrorKind::ConfirmationTimeout { after: expiry.after })
            }
            _ => Ok(()),
        }
    }

    /// Returns an error if a file has changed whose change the user was shown.
    pub(super) async fn check_displayed(
        &self,
        pipeline: &Pipeline<'_>,
        account: &Account,
    ) -> Result<(), ErrorKind> {
        match &self.displayed {
            Some(displayed) => Box::pin(displayed.check(pipeline, account)).await,
            None => Ok(()),
        }
    }

    /// Returns true if compacting the input blocks a thread for milliseconds.
    pub(super) fn is_large(&self) -> bool {
        self.input.is_large() && matches!(self.tool.origin(), Origin::Plugin { .. })
    }

    /// Compacts the input while the call waits in a queue.
    pub(super) fn compact(&mut self) -> Result<(), ErrorKind> {
        if !matches!(self.tool.origin(), Origin::Plugin { .. }) {
            return Ok(());
        }
        // Only memory can be exhausted here, so the time limit is irrelevant.
        self.input.compact().map_err(|why| {
            exhaustion_error(why, Duration::ZERO, self.tool.definition().side_effects())
        })
    }

    /// Returns the approved input.
    pub(super) fn input(&self) -> &ValidInput {
        &self.input
    }

    /// Leaves the input to the tool, which is about to run.
    pub(super) fn begin(&mut self) {
        self.input.begin();
    }

    pub(super) fn into_parts(self) -> (Arc<Registered>, ValidInput) {
        (self.tool, self.input)
    }
}

/// Approves a call, or returns the refusal.
pub(super) async fn approve(
    pipeline: &Pipeline<'_>,
    input: ValidInput,
) -> Result<Approval, ErrorKind> {
    if pipeline.cancel.is_cancelled() {
        return Err(ErrorKind::Cancelled);
    }
    let tool = pipeline.tool.clone();
    let decision = pipeline.dispatcher.floor.rule(pipeline.session, &tool).decision;
    let approval = match decision.mode {
        Mode::Auto => Approval::unasked(tool, input),
        Mode::Deny => return Err(denied(&tool, decision.rule)),
        Mode::Prompt | Mode::PromptOnce => Box::pin(confirm(pipeline, decision, input)).await?,
    };
    pipeline.pass_turn_to_ask();
    Ok(approval)
}

/// Asks the user. An *always* applies to the tool from then on, and so does an allow under
/// `prompt_once`.
async fn confirm(
    pipeline: &Pipeline<'_>,
    decision: Decision,
    input: ValidInput,
) -> Result<Approval, ErrorKind> {
    let standing = match pipeline.requester.answer_scope {
        AnswerScope::Session => Some(allowance(&pipeline.tool)),
        AnswerScope::Call => None,
    };
    if standing.as_ref().is_some_and(|standing| pipeline.session.allows(standing)) {
        return Ok(Approval::unasked(pipeline.tool.clone(), input));
    }
    let after = pipeline.dispatcher.confirmation_timeout;
    let at = Instant::now() + after;
    let Answered { input, answer, displayed } =
        question::ask(pipeline, input, standing.as_ref(), decision, after).await?;
    if matches!(answer, Answer::Allow | Answer::Always) {
        check_not_revoked(pipeline).await?;
    }
    let expiry = match answer {
        Answer::Deny => return Err(ErrorKind::UserDenied),
        Answer::None => return Err(ErrorKind::NoAnswer),
        answer if standing.is_some() && question::is_lasting(answer, decision.mode) => None,
        Answer::Always | Answer::Allow => Some(Expiry { at, after }),
    };
    Ok(Approval { tool: pipeline.tool.clone(), input, expiry, displayed })
}

/// Refuses a call whose plugin was revoked while it waited, for an answer or for a slot.
pub(super) async fn check_not_revoked(pipeline: &Pipeline<'_>) -> Result<(), ErrorKind> {
    let ask = pipeline.dispatcher.revoked_since.clone();
    let (Some(ask), Some(digest)) = (ask, pipeline.tool.origin().digest()) else { return Ok(()) };
    match run_blocking(move || ask(digest)).await? {
        None => Ok(()),
        Some(why) => Err(not_approved(pipeline.tool.definition().name().as_str(), &why)),
    }
}

/// Returns the key of a remembered answer. A native tool has no digest, so its definition is hashed
/// instead.
fn allowance(tool: &Registered) -> Allowance {
    let definition = tool.definition();
    let definition_digest = || Digest::of(definition.to_json().to_string().as_bytes());
    let digest = tool.origin().digest().unwrap_or_else(definition_digest);
    Allowance {
        plugin: tool.origin().plugin().map(Arc::from),
        digest,
        tool: definition.own_name().as_str().into(),
        class: definition.side_effects(),
    }
}

fn denied(tool: &Registered, rule: Rule) -> ErrorKind {
    let definition = tool.definition();
    let name = definition.name();
    let class = definition.side_effects();
    let message = format!("the policy denies `{name}` (class {class})");
    ErrorKind::denied_with(
        PermissionReason::Policy,
        message,
        rule.advice_on_deny(definition, tool.origin()),
    )
}
