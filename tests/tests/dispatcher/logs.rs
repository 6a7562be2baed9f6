//! The log: details that are hidden from the caller, with the call's id on every line.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use palisade::{Call, json};
use palisade_tests::Stage;
use palisade_tests::case::block_on;
use palisade_tests::guest::CONTRACT_END;
use palisade_tests::native::Native;
use tracing_subscriber::fmt::MakeWriter;

use super::stage;

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// Runs `work` and returns what was logged meanwhile.
pub(crate) fn logged<T>(work: impl FnOnce() -> T) -> (T, String) {
    logged_from(tracing::Level::TRACE, work)
}

/// The same as [`logged`], from the level `least` up.
fn logged_from<T>(least: tracing::Level, work: impl FnOnce() -> T) -> (T, String) {
    // A global default keeps callsites enabled: tracing caches a callsite as disabled for all
    // threads if no subscriber exists when it is first reached.
    let _ = tracing::subscriber::set_global_default(tracing_subscriber::registry());
    let log = Log::default();
    let subscriber =
        tracing_subscriber::fmt().with_writer(log.clone()).with_ansi(false).with_max_level(least);
    let done = tracing::subscriber::with_default(subscriber.finish(), work);
    let bytes = log.0.lock().unwrap().clone();
    (done, String::from_utf8(bytes).unwrap())
}

#[test]
fn every_log_line_of_a_call_has_its_id() {
    let stage = stage();
    stage
        .host
        .registry()
        .register(Native::new("fails", |_, _| Err(io::Error::other("below").into())).factory())
        .unwrap();
    let calls = [
        ("unknown", "no_such_tool", json!({})),
        ("invalid", "calculate", json!({})),
        ("failing", "read_file", json!({"path": "missing"})),
        ("internal", "fails", json!({})),
    ];
    for (id, tool, input) in calls {
        let call = Call::new(tool, input).with_id(id);
        let (_, log) = logged(|| block_on(stage.host.dispatch(&stage.session(), call)));
        let own: Vec<&str> = log.lines().filter(|line| line.contains("palisade")).collect();
        assert!(!own.is_empty(), "{id}: nothing was logged");
        assert!(own.iter().all(|line| line.contains(&format!("id={id}"))), "{id}: {log}");
    }
}

#[test]
fn error_line_has_its_call_id_at_any_log_level() {
    let stage = stage();
    let registry = stage.host.registry();
    registry
        .register(Native::new("fails", |_, _| Err(io::Error::other("below").into())).factory())
        .unwrap();
    registry.register(Native::new("panics", |_, _| panic!("deep inside")).factory()).unwrap();
    for (tool, said) in [("fails", "below"), ("panics", "the call panicked: deep inside")] {
        let call = Call::new(tool, json!({})).with_id("c7");
        let (_, log) = logged_from(tracing::Level::ERROR, || {
            block_on(stage.host.dispatch(&stage.session(), call))
        });
        let own: Vec<&str> = log.lines().filter(|line| line.contains("palisade")).collect();
        assert!(
            matches!(own[..], [line] if ["id=c7", tool, said].iter().all(|part| line.contains(part))),
            "{log}"
        );
    }
}

#[test]
fn internal_error_is_logged_with_its_chain_and_redacted() {
    #[derive(Debug, thiserror::Error)]
    #[error("the connection to {0}")]
    struct Outer(&'static str, #[source] io::Error);
    let stage = stage();
    let fails = || {
        let error = Outer("10.0.0.7", io::Error::other("password hunter2 refused"));
        Err((Box::new(error) as Box<dyn std::error::Error + Send + Sync>).into())
    };
    stage.host.registry().register(Native::new("fails", move |_, _| fails()).factory()).unwrap();
    let (result, log) = logged(|| block_on(stage.host.call("fails", "{}", json!({}))));
    let error = result.error().unwrap();
    assert_eq!((error.class().as_str(), error.is_user_visible()), ("execution_error", false));
    let shown = result.to_json().to_string();
    assert!(!shown.contains("10.0.0.7") && !shown.contains("hunter2"), "{shown}");
    let line = log.lines().find(|line| line.contains("ERROR")).unwrap();
    assert!(line.contains("the connection to 10.0.0.7: password hunter2 refused"), "{line}");
    assert!(
        std::error::Error::source(error.cause_for_log().unwrap()).is_some(),
        "and for the embedder"
    );
}

#[test]
fn guest_crash_is_logged_with_frames_and_redacted() {
    let stage = Stage::new(&[CONTRACT_END], |builder| builder);
    let call = Call::new("end", json!({"how": "panic"})).with_id("c8");
    let (result, log) = logged_from(tracing::Level::ERROR, || {
        block_on(stage.host.dispatch(&stage.session(), call))
    });
    assert_eq!(result.error().map(palisade::ToolError::is_user_visible), Some(false));
    let told =
        format!("{} {} {:?}", result.to_json(), result.to_block(), stage.recorder.events_of("c8"));
    assert!(told.contains("the plugin crashed"), "{told}");
    assert!(!told.contains("last words") && !told.contains("backtrace"), "{told}");
    assert_eq!(log.matches("the plugin crashed").count(), 1, "{log}");
    let own: Vec<&str> = log.lines().collect();
    let parts = ["ERROR", "id=c8", "these are my last words", "wasm backtrace"];
    assert!(matches!(own[..], [line] if parts.iter().all(|part| line.contains(part))), "{log}");
}
