//! From the events and calls of a host into a journal.
//!
//! A call that can change something is in the journal before it runs: if its record cannot be
//! committed, the call is refused. Everything else is queued, and delays no call.

mod calls;
mod kept_event;
mod texts;

use crate::journal::{
    Body, CallEnded, CallFacts, CallKey, CallStarted, ConfirmationRequested, ConfirmationResolved,
    Importance, Journal, NewEvent, Outcome, PluginSeen, Record, Timestamp, Used,
};
use calls::Calls;
use palisade::confirm::{ConfirmationRequest, RequestId, Resolution};
use palisade::events::{Envelope, Event, PluginFacts, Subject, Subscriber};
use palisade::{BoxFuture, CallEnd, CallRecorder, CallStart, NotRecorded, SideEffects, ToolResult};
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most questions whose input or answerer is remembered until the event arrives.
const QUESTIONS: usize = 1_024;
/// The name of the answerer if the client answered the question of its own call.
const CLIENT: &str = "client";

/// The form in which inputs of calls are kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum InputRecording {
    /// The whole input up to 64 KiB; of a longer one the beginning and the digest.
    #[default]
    Whole,
    /// Only the digest and the length; of an executed command, which repeats the input, only the
    /// digest.
    Digest,
}

/// The settings of a recorder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecorderSettings {
    /// The form in which inputs of calls are kept.
    pub inputs: InputRecording,
}

/// Records a host. It has to be both the host's recorder and one of its subscribers:
///
/// ```no_run
/// use palisade::Host;
/// use palisade_server::journal::{Journal, JournalSettings};
/// use palisade_server::recorder::{Recorder, RecorderSettings};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let journal = Journal::open("journal/journal.db".as_ref(), JournalSettings::default())?;
/// let recorder = Recorder::new(journal, RecorderSettings::default());
/// let host = Host::builder().subscriber(recorder.clone()).recorder(recorder).build()?;
/// # Ok(())
/// # }
/// ```
pub struct Recorder {
    journal: Journal,
    settings: RecorderSettings,
    calls: Mutex<Calls>,
    questions: Mutex<VecDeque<Question>>,
}

/// The parts of a question that its events do not have.
#[derive(Debug)]
struct Question {
    id: RequestId,
    input: Option<Body>,
    answered_by: Option<Arc<str>>,
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("journal", &self.journal).finish_non_exhaustive()
    }
}

impl Recorder {
    /// Creates a recorder that writes into a journal.
    #[must_use]
    pub fn new(journal: Journal, settings: RecorderSettings) -> Arc<Self> {
        Arc::new(Self { journal, settings, calls: Mutex::default(), questions: Mutex::default() })
    }

    /// Returns the journal.
    #[must_use]
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Notes the input of a question, which its event does not have. To be called by the confirmer
    /// when it displays the question; without it, a call has no input in the journal while it
    /// waits.
    pub fn asked(&self, request: &ConfirmationRequest) {
        if let Some(input) = &request.input {
            let input = texts::input(input, self.settings.inputs);
            self.note(&request.id, |question| question.input = Some(input));
        }
    }

    /// Notes who answers a question. To be called before the answer is given.
    pub fn answered_by(&self, request: &RequestId, name: &str) {
        self.note(request, |question| question.answered_by = Some(name.into()));
    }

    /// Returns the journal's number of the call that an event is about, if the call is in flight.
    #[must_use]
    pub fn call_of(&self, subject: &Subject) -> Option<CallKey> {
        self.calls().known(subject)
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn questions(&self) -> MutexGuard<'_, VecDeque<Question>> {
        self.questions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, id: &RequestId, note: impl FnOnce(&mut Question)) {
        let mut questions = self.questions();
        if let Some(known) = questions.iter_mut().find(|question| question.id == *id) {
            return note(known);
        }
        if questions.len() >= QUESTIONS {
            questions.pop_front();
        }
        let mut question = Question { id: id.clone(), input: None, answered_by: None };
        note(&mut question);
        questions.push_back(question);
    }

    fn input_of(&self, id: &RequestId) -> Option<Body> {
        self.questions().iter_mut().find(|question| question.id == *id)?.input.take()
    }

    /// Forgets a question, and returns who answered it.
    fn settle(&self, id: &RequestId) -> Option<Arc<str>> {
        let mut questions = self.questions();
        let index = questions.iter().position(|question| question.id == *id)?;
        questions.remove(index)?.answered_by
    }

    fn facts(&self, subject: &Subject) -> CallFacts {
        let (key, parent) = {
            let mut calls = self.calls();
            let parent = subject.parent.as_ref().and_then(|id| calls.in_flight(subject, id));
            (calls.of(subject, || self.journal.next_call()), parent)
        };
        CallFacts {
            key,
            id: subject.call_id.as_str().into(),
            session_id: subject.session_id.clone(),
            turn_id: subject.turn_id.clone(),
            parent,
            tool: subject.tool.clone(),
            class: subject.side_effects.map(SideEffects::as_str),
            plugin: None,
            digest: None,
        }
    }

    fn start(&self, start: &CallStart<'_>) -> Record {
        let call = CallFacts {
            plugin: start.plugin.map(Into::into),
            digest: start.digest.map(|digest| digest.to_string().into()),
            ..self.facts(start.subject)
        };
        let input = texts::input(start.input(), self.settings.inputs);
        Record::CallStarted(Box::new(CallStarted { call, input, at: Timestamp::now() }))
    }

    /// Returns the line of an event, whose failure has a reason of so many bytes.
    fn line(&self, envelope: &Envelope, reason: Option<usize>) -> String {
        let kept = kept_event::kept(&envelope.event, self.settings.inputs, reason);
        let mut line = match kept {
            Some(event) => Envelope { event, ..*envelope }.to_line(),
            None => envelope.to_line(),
        };
        line.truncate(line.trim_end_matches('\n').len());
        line
    }

    fn question(&self, subject: &Subject, request: &ConfirmationRequest, at: Timestamp) -> Record {
        let call = CallFacts {
            plugin: request.plugin.as_deref().map(Into::into),
            digest: request.digest.map(|digest| digest.to_string().into()),
            ..self.facts(subject)
        };
        Record::ConfirmationRequested(Box::new(ConfirmationRequested {
            call,
            request_id: request.id.as_str().into(),
            input: self.input_of(&request.id),
            input_summary: match self.settings.inputs {
                InputRecording::Whole => request.input_summary.as_str().into(),
                InputRecording::Digest => kept_event::UNRECORDED.into(),
            },
            projected_modifications: texts::list(&request.projected_modifications),
            at,
            expires: request.expires.into(),
        }))
    }

    fn resolved(&self, id: &RequestId, resolution: Resolution, at: Timestamp) -> Record {
        let by = self.settle(id);
        Record::ConfirmationResolved(ConfirmationResolved {
            request_id: id.as_str().into(),
            resolution: resolution.as_str(),
            // A person who tried to answer a question that ended otherwise has not answered it. An
            // answer of no operator is the client's own, by a form.
            answered_by: matches!(resolution, Resolution::Answered(_))
                .then(|| by.unwrap_or_else(|| CLIENT.into())),
            at,
        })
    }

    /// Records what an event changes besides the list of events.
    fn change(&self, event: &Event, at: Timestamp) -> Option<Record> {
        match event {
            Event::ConfirmationRequested(subject, request) => {
                Some(self.question(subject, request, at))
            }
            Event::ConfirmationResolved(_, id, resolution) => {
                Some(self.resolved(id, *resolution, at))
            }
            Event::PluginLoaded(facts) | Event::PluginChanged(facts) => Some(plugin(facts, at)),
            _ => None,
        }
    }
}

impl Subscriber for Recorder {
    fn receive(&self, envelope: &Envelope) {
        let (event, time) = (&envelope.event, envelope.time.into());
        if let Some(change) = self.change(event, time) {
            self.journal.record(change);
        }
        let subject = event.subject();
        let (call, reason) = subject.map_or((None, None), |subject| {
            let mut calls = self.calls();
            match event.is_terminal() {
                true => {
                    calls.remove(subject).map_or((None, None), |(key, reason)| (Some(key), reason))
                }
                false => (calls.known(subject), None),
            }
        });
        let importance =
            if event.is_chatter() { Importance::Chatter } else { Importance::Ordinary };
        self.journal.record(Record::Event(NewEvent {
            time,
            name: event.name().into(),
            session_id: subject.and_then(|subject| subject.session_id.clone()),
            call_id: subject.map(|subject| subject.call_id.as_str().into()),
            call,
            importance,
            line: self.line(envelope, reason).into(),
        }));
    }
}

impl CallRecorder for Recorder {
    fn before_run<'a>(&'a self, start: CallStart<'a>) -> BoxFuture<'a, Result<(), NotRecorded>> {
        Box::pin(async move {
            let record = self.start(&start);
            if start.subject.side_effects.is_none_or(|class| class >= SideEffects::Write) {
                let committed = self.journal.commit(record).await;
                return committed.map_err(|error| NotRecorded::new(error.to_string()));
            }
            self.journal.record(record);
            Ok(())
        })
    }

    fn ended(&self, end: CallEnd<'_>) {
        let call = self.facts(end.subject);
        let error = end.result.and_then(ToolResult::error);
        let reason = error.filter(|error| error.advice().is_some()).map(|it| it.reason().len());
        self.calls().end(end.subject, reason);
        let at = Timestamp::now();
        let mut ended = match end.result {
            Some(result) => of_result(call, result, self.settings.inputs, at),
            None => gone(call, at),
        };
        ended.input = end.input.map(|input| texts::input(input, self.settings.inputs));
        self.journal.record(Record::CallEnded(Box::new(ended)));
    }
}

fn of_result(
    call: CallFacts,
    result: &ToolResult,
    inputs: InputRecording,
    at: Timestamp,
) -> CallEnded {
    let outcome = match result.error() {
        Some(error) => Outcome::Failed {
            class: error.class().as_str(),
            message: texts::message(&error.reason()),
        },
        None => Outcome::Succeeded,
    };
    let output = result.output().or_else(|| result.partial_output()).unwrap_or_default();
    let (files_modified, files_unlisted) = texts::files(result);
    let usage = result.usage();
    CallEnded {
        call: CallFacts {
            plugin: result.plugin().map(Into::into),
            digest: result.digest().map(|digest| digest.to_string().into()),
            ..call
        },
        outcome,
        input: None,
        output: texts::output(&output),
        other_blocks: texts::other_blocks(result.content()),
        files_modified,
        files_unlisted,
        command_executed: result.command_executed().map(|text| texts::command(text, inputs)),
        duration: result.duration(),
        used: Used {
            peak_memory_bytes: usage.peak_memory_bytes,
            bytes_read: usage.bytes_read,
            bytes_written: usage.bytes_written,
            truncated_bytes: usage.truncated_bytes,
        },
        at,
    }
}

/// Returns the end of a call whose caller has gone.
fn gone(call: CallFacts, at: Timestamp) -> CallEnded {
    CallEnded {
        call,
        outcome: Outcome::Failed { class: "cancelled", message: "the caller has gone".into() },
        input: None,
        output: Body::default(),
        other_blocks: None,
        files_modified: None,
        files_unlisted: 0,
        command_executed: None,
        duration: std::time::Duration::ZERO,
        used: Used::default(),
        at,
    }
}

fn plugin(facts: &PluginFacts, at: Timestamp) -> Record {
    Record::PluginSeen(PluginSeen {
        name: facts.plugin.clone(),
        digest: facts.digest.to_string().into(),
        tools: facts.tools.iter().map(|tool| tool.as_str().into()).collect(),
        at,
    })
}
