//! One confirmation request: it is sent, announced, answered once, and its outcome announced. The
//! call's clock does not run meanwhile.

use super::displayed_changes::DisplayedChanges;
use super::paths::{ProjectedChange, projected_changes};
use super::summary::summary;
use crate::confirm::{
    Answer, CallAnswer, CallConfirmer as _, ConfirmationRequest, DisplayedFiles, RequestId,
    Resolution, ask_both,
};
use crate::dispatch::errors::confirmer_failed;
use crate::dispatch::input::{InputBudget, StepBudget};
use crate::dispatch::panics::text_of;
use crate::dispatch::pipeline::Pipeline;
use crate::events::{CallSink, Event};
use crate::execution::offload::exhaustion_error;
use crate::execution::{BoxFuture, ValidInput, catch_panic, enter_queue};
use crate::policy::{Decision, Mode, Rule};
use crate::registry::{Origin, Registered};
use crate::session::Allowance;
use crate::tool::budget::Budget;
use crate::tool::{ErrorKind, ExecutionKind, PermissionReason};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, SystemTime};

/// The default time for which a confirmation request is open.
pub const CONFIRMATION_TIMEOUT: Duration = Duration::from_secs(300);

/// The longest time for which a confirmation request may be open. The waiting call holds its input
/// in memory, and after a day the user no longer knows the context.
pub const MAX_CONFIRMATION_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// The answer of a confirmer to come, or its panic.
type Asking<'a> = BoxFuture<'a, std::thread::Result<CallAnswer>>;

/// The answer to a confirmation request.
pub(super) struct Answered {
    pub(super) input: ValidInput,
    pub(super) answer: Answer,
    /// The changes that the answer is about.
    pub(super) displayed: Option<DisplayedChanges>,
}

impl Answered {
    /// An *always* given to another request.
    fn by_another(input: ValidInput) -> Self {
        Self { input, answer: Answer::Always, displayed: None }
    }
}

/// Asks for confirmation and waits for the first answer: the user's, or an *always* given to
/// another request. `standing` is the key of remembered answers, if they apply to this caller. A
/// lasting answer is remembered before the confirmer can display its next request.
pub(super) async fn ask(
    pipeline: &Pipeline<'_>,
    input: ValidInput,
    standing: Option<&Allowance>,
    Decision { mode, rule }: Decision,
    valid_for: Duration,
) -> Result<Answered, ErrorKind> {
    // An invalid call is refused before the user is bothered.
    let (input, changes) = projected_changes_of_call(pipeline, input).await?;
    // Open requests hold their input, so they count towards the limit on queued calls.
    let _waiting = enter_queue(pipeline.queue())?;
    let mut request = request(pipeline, &input, &changes, valid_for)?;
    let displayed = DisplayedChanges::new(changes, request.displayed.clone());
    let mut input = compact(pipeline, input).await?;
    request.input_bytes = u32::try_from(input.text().len()).unwrap_or(u32::MAX);
    request.input = whole(&mut input);
    // The call that makes this one does not use up its time while a person thinks.
    let _paused = pipeline.requester.parent.as_ref().map(|parent| parent.clock.pause());
    tokio::select! {
        biased;
        () = pipeline.cancel.cancelled() => return Err(ErrorKind::Cancelled),
        () = pipeline.turn_to_ask() => {}
    }
    // An answer to an earlier request may have come meanwhile.
    if standing.is_some_and(|standing| pipeline.session.allows(standing)) {
        return Ok(Answered::by_another(input));
    }
    let confirmer = &*pipeline.dispatcher.confirmer;
    let mut answer: Asking<'_> = Box::pin(catch_panic(async {
        match &pipeline.requester.call_confirmer {
            Some(caller) => ask_both(&**caller, confirmer, &request).await,
            None => confirmer.ask(&request).await,
        }
    }));
    // The first poll displays the request. It comes before the event, so that subscribers can
    // answer at once.
    let first = poll_fn(|cx| Poll::Ready(answer.as_mut().poll(cx))).await;
    match &first {
        Poll::Ready(Ok(CallAnswer::Unavailable)) => return Err(no_confirmer(pipeline, rule)),
        Poll::Ready(Err(panic)) => return Err(confirmer_failed(text_of(&**panic))),
        Poll::Ready(Ok(_)) | Poll::Pending => {}
    }
    pipeline.pass_turn_to_ask();
    let announced = AnnouncedRequest::announce(pipeline.sink, &request);
    let (decision, failure) = match first {
        Poll::Ready(answered) => decision_of(answered),
        Poll::Pending => wait(pipeline, &mut answer, standing, valid_for).await,
    };
    if let (Some(standing), Resolution::Answered(answer)) = (standing, decision)
        && is_lasting(answer, mode)
    {
        pipeline.session.always_allow(standing.clone());
    }
    drop(answer);
    announced.settle(decision);
    if let Some(failure) = failure {
        return Err(failure);
    }
    match decision {
        Resolution::Answered(answer) => Ok(Answered { input, answer, displayed: Some(displayed) }),
        Resolution::AllowedMeanwhile => Ok(Answered::by_another(input)),
        Resolution::TimedOut => Err(ErrorKind::ConfirmationTimeout { after: valid_for }),
        Resolution::Withdrawn => Err(ErrorKind::Cancelled),
        Resolution::Unanswerable | Resolution::Failed => Err(no_confirmer(pipeline, rule)),
        Resolution::Deferred => Err(ErrorKind::AwaitsClient),
    }
}

/// Returns true if an answer applies to later calls of the tool as well.
pub(in crate::dispatch) fn is_lasting(answer: Answer, mode: Mode) -> bool {
    match answer {
        Answer::Always => true,
        Answer::Allow => mode == Mode::PromptOnce,
        Answer::Deny | Answer::None => false,
    }
}

async fn wait(
    pipeline: &Pipeline<'_>,
    answer: &mut Asking<'_>,
    standing: Option<&Allowance>,
    valid_for: Duration,
) -> (Resolution, Option<ErrorKind>) {
    let allowed = async {
        match standing {
            Some(standing) => pipeline.session.allowed(standing).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        () = pipeline.cancel.cancelled() => (Resolution::Withdrawn, None),
        answered = answer => decision_of(answered),
        () = allowed => (Resolution::AllowedMeanwhile, None),
        () = tokio::time::sleep(valid_for) => (Resolution::TimedOut, None),
    }
}

/// Returns the outcome of an answer, and the error if there is none because the confirmer panicked.
fn decision_of(answer: std::thread::Result<CallAnswer>) -> (Resolution, Option<ErrorKind>) {
    match answer {
        Ok(CallAnswer::Answered(answer)) => (Resolution::Answered(answer), None),
        Ok(CallAnswer::Unavailable) => (Resolution::Unanswerable, None),
        Ok(CallAnswer::Deferred) => (Resolution::Deferred, None),
        Err(panic) => (Resolution::Failed, Some(confirmer_failed(text_of(&*panic)))),
    }
}

/// A guard that announces the outcome of a request even if the caller goes away, so that the
/// request can be taken off the screen.
struct AnnouncedRequest<'a> {
    sink: &'a CallSink,
    id: RequestId,
    is_settled: bool,
}

impl<'a> AnnouncedRequest<'a> {
    fn announce(sink: &'a CallSink, request: &ConfirmationRequest) -> Self {
        // Events may be queued for longer than the call holds its input.
        let told = || ConfirmationRequest { input: None, ..request.clone() };
        sink.tell(|subject| Event::ConfirmationRequested(subject, told()));
        Self { sink, id: request.id.clone(), is_settled: false }
    }

    fn settle(mut self, decision: Resolution) {
        self.end(decision);
    }

    fn end(&mut self, decision: Resolution) {
        self.is_settled = true;
        self.sink.tell(|subject| Event::ConfirmationResolved(subject, self.id.clone(), decision));
    }
}

impl Drop for AnnouncedRequest<'_> {
    fn drop(&mut self) {
        if !self.is_settled {
            self.end(Resolution::Withdrawn);
        }
    }
}

fn request(
    pipeline: &Pipeline<'_>,
    input: &ValidInput,
    changes: &[ProjectedChange],
    valid_for: Duration,
) -> Result<ConfirmationRequest, ErrorKind> {
    let definition = pipeline.tool.definition();
    let subject = pipeline.sink.subject();
    let no_randomness =
        || ErrorKind::execution(ExecutionKind::Internal, "the system gives no random numbers");
    Ok(ConfirmationRequest {
        id: RequestId::random().ok_or_else(no_randomness)?,
        call_id: subject.call_id.clone(),
        session_id: subject.session_id.clone(),
        turn_id: subject.turn_id.clone(),
        tool: definition.name().to_string(),
        side_effects: definition.side_effects(),
        called_by: pipeline.requester.parent.as_ref().map(|parent| parent.caller.clone().into()),
        input_summary: summary(definition, input),
        input: None,
        input_bytes: 0,
        projected_modifications: changes.iter().map(|change| change.place.clone()).collect(),
        displayed: DisplayedFiles::default(),
        plugin: pipeline.tool.origin().plugin().map(str::to_owned),
        digest: pipeline.tool.origin().digest(),
        grants: granted(&pipeline.tool),
        valid_for,
        expires: SystemTime::now() + valid_for,
    })
}

/// Returns what is granted to the plugin of a tool, or what its server may do.
fn granted(tool: &Registered) -> Vec<String> {
    match tool.origin() {
        Origin::Server(server) if !server.rights().is_empty() => vec![server.rights().to_owned()],
        _ => tool.grants().to_vec(),
    }
}

/// Returns the whole input, unless it is long. It shares the text that the call holds; a large
/// input has its text already, because it was compacted.
fn whole(input: &mut ValidInput) -> Option<Arc<str>> {
    /// The longest input that a request has, in bytes.
    const MOST: usize = 1 << 20;
    (input.text().len() <= MOST).then(|| input.share_text())
}

/// Like [`projected_changes`] for a call that waits: on the host's own threads if it has some,
/// otherwise in place if that is short, and outside of the runtime's threads if not.
async fn projected_changes_of_call(
    pipeline: &Pipeline<'_>,
    input: ValidInput,
) -> Result<(ValidInput, Vec<ProjectedChange>), ErrorKind> {
    let tool = pipeline.tool.clone();
    let workspace = pipeline.workspace().clone();
    let time = pipeline.time;
    let class = tool.definition().side_effects();
    let account = input.account().unwrap_or_else(|| pipeline.dispatcher.limits.account());
    let budget = InputBudget::new(account, time, pipeline.cancel.clone());
    if let Some(threads) = pipeline.dispatcher.threads_for_paths(&pipeline.tool) {
        let look = move || {
            let changes = projected_changes(&tool, &input, &workspace, budget.call_budget());
            let changes = changes.map_err(|why| budget.exhausted(why, class))??;
            Ok((input, changes))
        };
        return Box::pin(threads.run_within(time, pipeline.queue(), pipeline.cancel, look)).await;
    }
    if let Ok(changes) = projected_changes(&tool, &input, &workspace, &StepBudget::new()) {
        return Ok((input, changes?));
    }
    let look = move |budget: Arc<dyn Budget>| {
        let changes = projected_changes(&tool, &input, &workspace, &*budget)?;
        Ok(changes.map(|changes| (input, changes)))
    };
    Box::pin(budget.offload(class, look)).await?
}

/// Replaces a large input with its text while the request is open: an answer may take a day, and
/// the value may take 90 times the memory.
async fn compact(pipeline: &Pipeline<'_>, mut input: ValidInput) -> Result<ValidInput, ErrorKind> {
    let class = pipeline.tool.definition().side_effects();
    let Some(account) = input.account().filter(|_| input.is_large()) else {
        let compacted = input.compact();
        compacted.map_err(|why| exhaustion_error(why, pipeline.time, class))?;
        return Ok(input);
    };
    let budget = InputBudget::new(account, pipeline.time, pipeline.cancel.clone());
    let compact = move |_| {
        input.compact()?;
        Ok(input)
    };
    Box::pin(budget.offload(class, compact)).await
}

fn no_confirmer(pipeline: &Pipeline<'_>, rule: Rule) -> ErrorKind {
    let tool = &pipeline.tool;
    let name = tool.definition().name();
    let class = tool.definition().side_effects();
    let message = match rule {
        rule if rule.is_of_tool() => {
            format!("`{name}` (class {class}) needs a confirmation, and nobody can be asked")
        }
        _ => format!(
            "`{name}` is of class {class}, which needs a confirmation, and nobody can be asked"
        ),
    };
    ErrorKind::denied_with(
        PermissionReason::NoConfirmer,
        message,
        pipeline.dispatcher.floor.rule(pipeline.session, tool).policy.advice_on_prompt(
            rule,
            tool.definition(),
            tool.origin(),
        ),
    )
}
