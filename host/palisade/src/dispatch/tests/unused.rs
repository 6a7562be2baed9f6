//! A call that ends before its tool runs leaves its input to the record of its end.

use super::Native;
use crate::confirm::{Answer, ConfirmationRequest, Confirmer, Unavailable};
use crate::dispatch::{CallEnd, CallMode, CallRecorder, CallStart, NotRecorded};
use crate::execution::{BoxFuture, ToolOutput};
use crate::host::Host;
use crate::plugins::Shipped;
use crate::policy::Mode;
use crate::tool::{Call, CallInput, Definition, SideEffects};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};

/// Notes the class of each call's error and its input.
#[derive(Default)]
struct Notes {
    ends: Mutex<Vec<(String, Option<String>)>>,
    starts: Mutex<usize>,
}

impl CallRecorder for Notes {
    fn before_run<'a>(&'a self, _: CallStart<'a>) -> BoxFuture<'a, Result<(), NotRecorded>> {
        *self.starts.lock().unwrap() += 1;
        Box::pin(async { Ok(()) })
    }

    fn ended(&self, end: CallEnd<'_>) {
        let class = match end.result {
            None => "gone",
            Some(result) => result.error().map_or("succeeded", |error| error.class().as_str()),
        };
        self.ends.lock().unwrap().push((class.to_owned(), end.input.map(str::to_owned)));
    }
}

/// Denies, or never answers a call whose note says so.
struct Denies;

impl Confirmer for Denies {
    fn confirm<'a>(
        &'a self,
        request: &'a ConfirmationRequest,
    ) -> BoxFuture<'a, Result<Answer, Unavailable>> {
        Box::pin(async {
            if request.input_summary.contains("never") {
                std::future::pending::<()>().await;
            }
            Ok(Answer::Deny)
        })
    }
}

fn host(mode: CallMode, notes: &Arc<Notes>) -> Host {
    let host = Host::builder().shipped(Shipped::LeftOut).call_mode(mode);
    let host = host.recorder(notes.clone()).confirmer(Arc::new(Denies));
    let classes = [
        ("reads", SideEffects::Read),
        ("writes", SideEffects::Write),
        ("denied", SideEffects::Execute),
    ];
    let policy = crate::policy::Policy::default().with_class(SideEffects::Execute, Mode::Deny);
    let host = classes.into_iter().fold(host.policy(policy), |host, (name, class)| {
        let list = json!({"type": "array", "items": {"minimum": 0}});
        let path = json!({"type": "string", "format": "workspace-path"});
        let schema = json!({"type": "object", "properties": {"list": list, "path": path}});
        let definition = Definition::new(name, "A tool.", class, schema).unwrap();
        let run = |_: &Value| Ok(ToolOutput::text("done"));
        host.tool(Arc::new(move || Box::new(Native(definition.clone(), run))))
    });
    host.build().unwrap()
}

/// Makes a call, and returns how it ended with the input of its record.
async fn ended(
    host: &Host,
    notes: &Notes,
    tool: &str,
    input: impl Into<CallInput>,
) -> (String, Option<String>) {
    host.dispatch(host.session(), Call::new(tool, input)).await;
    notes.ends.lock().unwrap().pop().unwrap()
}

#[tokio::test]
async fn refused_call_has_its_input_at_every_stage() {
    for mode in [CallMode::InPlace, CallMode::OWN_THREADS] {
        let notes = Arc::new(Notes::default());
        let host = host(mode, &notes);
        let long = json!({"list": vec![1; 90_000]});
        let wrong = json!({"list": vec![-1; 90_000]});
        let blank = format!("{{\"list\":[{}]", "1,".repeat(100_000));
        for (tool, input, class) in [
            ("no_such_tool", CallInput::from(json!({"a": 1})), "not_found"),
            ("no_such_tool", CallInput::from("no JSON"), "not_found"),
            ("no_such_tool", CallInput::from(long.clone()), "not_found"),
            ("reads", CallInput::from("{\"list\": "), "validation_error"),
            ("reads", CallInput::from(blank), "validation_error"),
            ("reads", CallInput::from(json!({"list": [-1]})), "validation_error"),
            ("reads", CallInput::from(wrong), "validation_error"),
            ("reads", CallInput::from(json!({"path": "../x"})), "permission_denied"),
            ("denied", CallInput::from(json!({"path": "a"})), "permission_denied"),
            ("denied", CallInput::from(long.clone()), "permission_denied"),
            ("writes", CallInput::from(json!({"path": "a"})), "user_denied"),
            ("writes", CallInput::from(long), "user_denied"),
        ] {
            let text = match &input {
                CallInput::Text(text) => text.clone(),
                CallInput::Value(value) => value.to_string(),
            };
            let case = format!("{mode:?} {tool} {}", text.get(..32).unwrap_or(&text));
            let (found, kept) = ended(&host, &notes, tool, input).await;
            assert_eq!(found, class, "{case}");
            assert!(kept.as_deref() == Some(&text), "{case}: {:?}", kept.map(|kept| kept.len()));
        }
        assert_eq!(*notes.starts.lock().unwrap(), 0);
        let ran = ended(&host, &notes, "reads", json!({"path": "a"})).await;
        assert_eq!(ran, ("succeeded".to_owned(), None), "its start had the input");
        let beyond = json!({"list": "x".repeat(2 << 20)});
        for tool in ["no_such_tool", "reads"] {
            assert_eq!(ended(&host, &notes, tool, beyond.clone()).await.1, None, "{tool}");
        }
    }
}

#[tokio::test]
async fn call_that_its_caller_drops_at_a_question_has_its_input() {
    let notes = Arc::new(Notes::default());
    let host = host(CallMode::InPlace, &notes);
    let call = Call::new("writes", json!({"never": true}));
    let mut asking = Box::pin(host.dispatch(host.session(), call));
    let waits = asking.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending();
    assert!(waits);
    drop(asking);
    let ended = notes.ends.lock().unwrap().pop().unwrap();
    assert_eq!(ended, ("gone".to_owned(), Some("{\"never\":true}".to_owned())));
}
