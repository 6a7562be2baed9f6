//! Policy, and the question to a person where the policy asks for one. The call's own clock does not run here.

use crate::confirm::{Answer, ConfirmationRequest, Confirmer};
use crate::execution::ValidInput;
use crate::policy::Mode;
use crate::registry::{Origin, Registered};
use crate::session::Session;
use crate::tool::text::elided;
use crate::tool::{CallId, ErrorKind, PermissionReason, SideEffects};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long a question stands unless somebody says otherwise.
pub(crate) const CONFIRMATION_TIMEOUT: Duration = Duration::from_secs(300);
/// How much of an input a person is shown, in characters.
const SUMMARY: usize = 400;

/// Who is asked, and for how long.
#[derive(Clone, Copy)]
pub(super) struct Asking<'a> {
    pub(super) confirmer: &'a dyn Confirmer,
    pub(super) timeout: Duration,
}

/// Ends without error where the call may run.
pub(super) async fn approve(
    asking: Asking<'_>,
    session: &Session,
    call_id: &CallId,
    tool: &Registered,
    input: &ValidInput,
    cancel: &CancellationToken,
) -> Result<(), ErrorKind> {
    if cancel.is_cancelled() {
        return Err(ErrorKind::Cancelled);
    }
    match session.policy().decide(tool.definition()) {
        Mode::Auto => Ok(()),
        Mode::Deny => Err(denied(tool)),
        Mode::Prompt => ask(asking, call_id, tool, input, cancel).await,
        Mode::PromptOnce if session.was_allowed(&remembered(tool)) => Ok(()),
        Mode::PromptOnce => {
            ask(asking, call_id, tool, input, cancel).await?;
            session.remember_allowed(remembered(tool));
            Ok(())
        }
    }
}

async fn ask(
    asking: Asking<'_>,
    call_id: &CallId,
    tool: &Registered,
    input: &ValidInput,
    cancel: &CancellationToken,
) -> Result<(), ErrorKind> {
    let request = request(call_id, tool, input);
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(ErrorKind::Cancelled),
        answer = tokio::time::timeout(asking.timeout, asking.confirmer.confirm(&request)) => match answer {
            Ok(Ok(Answer::Allow)) => Ok(()),
            Ok(Ok(Answer::Deny)) => Err(ErrorKind::UserDenied),
            Ok(Err(_)) => Err(nobody(tool)),
            Err(_) => Err(ErrorKind::ConfirmationTimeout { after: asking.timeout }),
        },
    }
}

fn request(call_id: &CallId, tool: &Registered, input: &ValidInput) -> ConfirmationRequest {
    let definition = tool.definition();
    let changes = matches!(definition.side_effects(), SideEffects::Write | SideEffects::Execute);
    let paths = definition.input_schema().workspace_paths(input.value()).into_iter().map(|argument| argument.value);
    ConfirmationRequest {
        call_id: call_id.clone(),
        tool: definition.name().to_string(),
        side_effects: definition.side_effects(),
        input_summary: elided(input.text(), SUMMARY),
        projected_modifications: if changes { paths.collect() } else { Vec::new() },
        digest: match tool.origin() {
            Origin::Plugin { digest, .. } => Some(*digest),
            Origin::Native => None,
        },
    }
}

/// What an allowance is remembered under: the same name with other code, or of another class, is another tool.
fn remembered(tool: &Registered) -> String {
    let digest = match tool.origin() {
        Origin::Plugin { digest, .. } => digest.to_string(),
        Origin::Native => "native".to_owned(),
    };
    format!("{digest} {} {}", tool.definition().side_effects(), tool.definition().name())
}

fn denied(tool: &Registered) -> ErrorKind {
    let (name, class) = (tool.definition().name(), tool.definition().side_effects());
    let message = format!(
        "the policy denies `{name}` (class {class}); a `deny` under `[confirm]` in palisade.toml says so, for the class `{class}` or for `tools.{name}`, and no flag lifts it"
    );
    ErrorKind::PermissionDenied { reason: PermissionReason::Policy, message }
}

fn nobody(tool: &Registered) -> ErrorKind {
    let (name, class) = (tool.definition().name(), tool.definition().side_effects());
    let message = format!(
        "`{name}` is of class {class}, which needs a confirmation, and nobody can be asked; allow it with `--allow {class}`, or set `{name} = \"auto\"` under `[confirm.tools]` in your palisade.toml"
    );
    ErrorKind::PermissionDenied { reason: PermissionReason::NoConfirmer, message }
}
