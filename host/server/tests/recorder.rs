//! The calls of a host are in the journal: those that can change something before they run.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use palisade::confirm::{Answer, ConfirmationRequest, Confirmer, Unavailable};
use palisade::policy::{Mode, Policy};
use palisade::{
    BoxFuture, Call, Content, Definition, ErrorKind, Factory, Host, SideEffects, Tool, ToolContext,
    ToolOutput, ToolResult, ValidInput, json,
};
use palisade_server::journal::{
    CallPage, CallRef, CallState, EventFilter, EventId, Journal, JournalSettings,
};
use palisade_server::recorder::{InputRecording, Recorder, RecorderSettings};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A tool that notes the state of its own call in the journal.
struct Probe {
    definition: Definition,
    journal: Journal,
    seen: Arc<Mutex<Vec<CallState>>>,
}

impl Tool for Probe {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn execute<'a>(
        &'a self,
        input: ValidInput,
        _: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ErrorKind>> {
        Box::pin(async move {
            let page = call(&self.journal, "c").await;
            self.seen.lock().unwrap().extend(page.map(|page| page.call.state));
            if input.value().get("for_ever").is_some() {
                std::future::pending::<()>().await;
            }
            Ok(ToolOutput::text("done"))
        })
    }
}

/// A host with a tool of each of two classes, recorded by a journal.
struct Stage {
    host: Host,
    journal: Journal,
    /// The states in which the calls have seen themselves.
    seen: Arc<Mutex<Vec<CallState>>>,
    _workspace: tempfile::TempDir,
}

impl Stage {
    fn new(inputs: InputRecording) -> Self {
        let journal = Journal::temporary(JournalSettings::default()).unwrap();
        let recorder = Recorder::new(journal.clone(), RecorderSettings { inputs });
        let seen = Arc::default();
        let probe = |name, class| probe(name, class, &journal, &seen);
        let workspace = tempfile::tempdir().unwrap();
        let policy = Policy::default().allowing(SideEffects::Write);
        let policy = policy.with_class(SideEffects::Execute, Mode::Deny);
        let host = Host::builder()
            .workspace(workspace.path())
            .tool(probe("change", SideEffects::Write))
            .tool(probe("ask_to_change", SideEffects::Network))
            .tool(probe("compute", SideEffects::None))
            .tool(probe("forbidden", SideEffects::Execute))
            .tool(tool("show", || {
                let image = Content::Image { mime: "image/png".to_owned(), data: vec![0; 3] };
                let mut output = ToolOutput::text("shown");
                output.content.push(image);
                output.command_executed = Some("cat secret-name".to_owned());
                output
            }))
            .policy(policy)
            .confirmer(Arc::new(Denies(recorder.clone())))
            .subscriber(recorder.clone())
            .recorder(recorder)
            .build()
            .unwrap();
        Self { host, journal, seen, _workspace: workspace }
    }

    async fn dispatch(&self, tool: &str) -> ToolResult {
        let call = Call::new(tool, json!({"path": "a"})).with_id("c").with_turn("turn");
        let session = self.host.new_session("s").build();
        self.host.dispatch(&session, call).await
    }

    async fn page(&self) -> CallPage {
        self.journal.flush().await;
        call(&self.journal, "c").await.unwrap()
    }

    fn seen(&self) -> Vec<CallState> {
        self.seen.lock().unwrap().clone()
    }
}

/// A tool that reads nothing.
struct Native(Definition, fn() -> ToolOutput);

impl Tool for Native {
    fn definition(&self) -> &Definition {
        &self.0
    }

    fn execute<'a>(
        &'a self,
        _: ValidInput,
        _: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ErrorKind>> {
        Box::pin(async { Ok((self.1)()) })
    }
}

fn tool(name: &'static str, run: fn() -> ToolOutput) -> Factory {
    Arc::new(move || {
        let definition =
            Definition::new(name, "Runs.", SideEffects::None, json!({"type": "object"}));
        Box::new(Native(definition.unwrap(), run))
    })
}

fn probe(
    name: &'static str,
    class: SideEffects,
    journal: &Journal,
    seen: &Arc<Mutex<Vec<CallState>>>,
) -> Factory {
    let (journal, seen) = (journal.clone(), seen.clone());
    Arc::new(move || {
        let definition = Definition::new(name, "Notes.", class, json!({"type": "object"}));
        let (journal, seen) = (journal.clone(), seen.clone());
        Box::new(Probe { definition: definition.unwrap(), journal, seen })
    })
}

async fn call(journal: &Journal, id: &str) -> Option<CallPage> {
    journal.call(CallRef::Id { id: id.into(), client: None }).await.unwrap()
}

/// Denies in the name of a person.
struct Denies(Arc<Recorder>);

impl Confirmer for Denies {
    fn confirm<'a>(
        &'a self,
        request: &'a ConfirmationRequest,
    ) -> BoxFuture<'a, Result<Answer, Unavailable>> {
        Box::pin(async move {
            self.0.asked(request);
            // The question is shown before it is answered.
            tokio::task::yield_now().await;
            self.0.answered_by(&request.id, "somebody");
            Ok(Answer::Deny)
        })
    }
}

#[tokio::test]
async fn call_that_can_change_something_is_in_the_journal_while_it_runs() {
    let stage = Stage::new(InputRecording::Whole);
    assert!(stage.dispatch("change").await.is_success());
    assert_eq!(stage.seen(), [CallState::Running]);
    let page = stage.page().await;
    let call = &page.call;
    assert_eq!((call.state, call.tool.as_str()), (CallState::Succeeded, "change"));
    assert_eq!((call.session_id.as_deref(), call.turn_id.as_deref()), (Some("s"), Some("turn")));
    assert_eq!(page.input.unwrap().text.as_deref(), Some(r#"{"path":"a"}"#));
    assert_eq!(page.output.unwrap().text.as_deref(), Some("done"));
    let names: Vec<&str> = page.events.iter().map(|event| &*event.name).collect();
    assert_eq!(names, ["tool.called", "tool.completed"]);
    assert!(page.events.iter().all(|event| !event.line.contains('\n')));
}

#[tokio::test]
async fn call_whose_record_fails_does_not_run() {
    let stage = Stage::new(InputRecording::Whole);
    stage.journal.clone().close();
    let refused = stage.dispatch("change").await;
    let error = refused.error().unwrap();
    assert_eq!(error.class().as_str(), "permission_denied");
    assert_eq!(error.to_json()["detail"]["reason"], "not_recorded");
    assert!(error.message().contains("the journal is closed"), "{}", error.message());
    assert!(stage.seen().is_empty());
    assert!(stage.dispatch("compute").await.is_success(), "it changes nothing");
}

#[tokio::test]
async fn denied_call_has_its_input_and_who_denied_it() {
    let stage = Stage::new(InputRecording::Whole);
    assert!(stage.dispatch("ask_to_change").await.is_failure());
    assert!(stage.seen().is_empty());
    let page = stage.page().await;
    assert_eq!((page.call.state, page.call.started), (CallState::Failed, None));
    assert_eq!(page.call.error_class.as_deref(), Some("user_denied"));
    assert_eq!(page.input.unwrap().text.as_deref(), Some(r#"{"path":"a"}"#));
    let [question] = page.confirmations.as_slice() else { panic!("{:?}", page.confirmations) };
    assert_eq!(question.resolution.as_deref(), Some("deny"));
    assert_eq!(question.answered_by.as_deref(), Some("somebody"));
}

#[tokio::test]
async fn refused_call_has_its_input_as_the_settings_want_it() {
    for inputs in [InputRecording::Whole, InputRecording::Digest] {
        let stage = Stage::new(inputs);
        for (tool, class) in [("no_such_tool", "not_found"), ("forbidden", "permission_denied")] {
            stage.dispatch(tool).await;
            let page = stage.page().await;
            assert_eq!((page.call.started, page.call.error_class.as_deref()), (None, Some(class)));
            let input = page.input.unwrap();
            let text = (inputs == InputRecording::Whole).then_some(r#"{"path":"a"}"#);
            assert_eq!((input.text.as_deref(), input.length), (text, 12), "{tool}");
            assert_eq!(input.digest.is_some(), inputs == InputRecording::Digest);
        }
        let long = json!({"path": "x".repeat(100_000)});
        let call = Call::new("forbidden", long).with_id("c");
        stage.host.dispatch(stage.host.session(), call).await;
        let input = stage.page().await.input.unwrap();
        let kept = (inputs == InputRecording::Whole).then_some(64 << 10);
        assert_eq!(input.text.map(|text| text.len()), kept);
        assert!(input.length == 100_011 && input.digest.is_some());
    }
}

#[tokio::test]
async fn failure_is_recorded_without_the_advice_for_who_runs_the_program() {
    let stage = Stage::new(InputRecording::Whole);
    let result = stage.dispatch("forbidden").await;
    let advice = result.error().unwrap().advice().unwrap();
    let page = stage.page().await;
    let line: serde_json::Value = serde_json::from_str(&page.events[0].line).unwrap();
    let message = line["message"].as_str().unwrap();
    assert_eq!(message, page.call.message.unwrap());
    assert!(!message.contains(&advice) && message.contains("denies"), "{message}");
}

#[tokio::test]
async fn command_of_a_private_call_is_in_the_journal_as_its_digest() {
    for inputs in [InputRecording::Whole, InputRecording::Digest] {
        let stage = Stage::new(inputs);
        stage.dispatch("show").await;
        let page = stage.page().await;
        let command = page.command_executed.unwrap();
        let lines: String = page.events.iter().map(|event| &*event.line).collect();
        let is_whole = inputs == InputRecording::Whole;
        assert_eq!(command == "cat secret-name", is_whole, "{command}");
        assert_eq!(command.starts_with("sha256:"), !is_whole, "{command}");
        assert!(lines.contains(&format!("\"command_executed\":\"{command}\"")), "{lines}");
        assert_eq!(lines.contains("secret-name"), is_whole, "{lines}");
    }
}

#[tokio::test]
async fn output_that_is_no_text_is_described() {
    let stage = Stage::new(InputRecording::Whole);
    stage.dispatch("show").await;
    let page = stage.page().await;
    assert_eq!(page.output.unwrap().text.as_deref(), Some("shown\n[image image/png, 3 bytes]"));
    let [block] = page.other_blocks.as_slice() else { panic!("{:?}", page.other_blocks) };
    assert_eq!((block.kind.as_str(), block.media_type.as_str()), ("image", "image/png"));
    assert_eq!(block.bytes, 3);
}

#[tokio::test]
async fn private_input_is_in_the_journal_as_its_digest() {
    let stage = Stage::new(InputRecording::Digest);
    stage.dispatch("compute").await;
    let input = stage.page().await.input.unwrap();
    assert_eq!((input.text, input.length), (None, 12));
    assert!(input.digest.unwrap().starts_with("sha256:"));
}

#[tokio::test]
async fn refused_and_abandoned_calls_have_their_end() {
    let stage = Stage::new(InputRecording::Whole);
    stage.dispatch("no_such_tool").await;
    assert_eq!(stage.page().await.call.error_class.as_deref(), Some("not_found"));
    let session = stage.host.new_session("s").build();
    let call = Call::new("change", json!({"for_ever": true})).with_id("c");
    let abandoned = stage.host.dispatch(&session, call);
    assert!(tokio::time::timeout(Duration::from_millis(50), abandoned).await.is_err());
    let page = stage.page().await;
    assert_eq!(page.call.error_class.as_deref(), Some("cancelled"));
    assert!(page.call.started.is_some());
    let filter = EventFilter { call: Some(page.call.key), ..EventFilter::default() };
    let events = stage.journal.events_after(EventId::START, &filter, 9).await.unwrap().events;
    assert_eq!(events.last().map(|event| &*event.name), Some("tool.failed"));
}
