//! Events as the journal keeps them, and clients read them.

use super::InputRecording;
use super::texts;
use palisade::confirm::ConfirmationRequest;
use palisade::events::{Completion, Effects, Event, Failure};

/// The summary of an input that is not recorded.
pub(super) const UNRECORDED: &str = "(not recorded)";

/// Returns an event without what is not for its readers, or `None` if all of it is: the advice for
/// who runs the program, which follows so many bytes of a failure's message; and if inputs are not
/// recorded, the summary of the input in a question, and the executed command.
pub(super) fn kept(event: &Event, inputs: InputRecording, reason: Option<usize>) -> Option<Event> {
    match event {
        Event::ConfirmationRequested(subject, request) if inputs == InputRecording::Digest => {
            let input_summary = UNRECORDED.to_owned();
            let request = ConfirmationRequest { input_summary, ..request.clone() };
            Some(Event::ConfirmationRequested(subject.clone(), request))
        }
        Event::Completed(subject, done) => {
            let effects = without_command(&done.effects, inputs)?;
            Some(Event::Completed(subject.clone(), Completion { effects, ..done.clone() }))
        }
        Event::Failed(subject, failure) => {
            let effects = without_command(&failure.effects, inputs);
            let message = reason.and_then(|length| failure.message.get(..length));
            if effects.is_none() && message.is_none() {
                return None;
            }
            let effects = effects.unwrap_or_else(|| failure.effects.clone());
            let message = message.unwrap_or(&failure.message).to_owned();
            let failure = Failure {
                message,
                effects,
                partial_output: failure.partial_output.clone(),
                ..*failure
            };
            Some(Event::Failed(subject.clone(), failure))
        }
        _ => None,
    }
}

fn without_command(effects: &Effects, inputs: InputRecording) -> Option<Effects> {
    if inputs == InputRecording::Whole {
        return None;
    }
    let command = texts::digest(effects.command_executed.as_deref()?);
    let mut effects = effects.clone();
    effects.command_executed = Some(command);
    Some(effects)
}
