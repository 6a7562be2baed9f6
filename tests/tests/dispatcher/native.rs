//! Native tools run in a task of their own, are told to stop, waited for, and abandoned if they do
//! not.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use palisade::{
    BoxFuture, Call, Definition, ErrorKind, SideEffects, Tool, ToolContext, ToolOutput, ValidInput,
    events::Event, execution::Outcome, json, policy::Policy,
};
use palisade_tests::Stage;
use palisade_tests::case::block_on;
use palisade_tests::native::{Native, StopSignal, Waiting, echo};
use palisade_tests::stage::class;
use tokio::time::Instant;

use super::logs::logged;
use super::{on_driven_clock, stage};

/// A tool that ignores every request to stop.
struct Deaf(Definition);

impl Tool for Deaf {
    fn definition(&self) -> &Definition {
        &self.0
    }

    fn execute<'a>(
        &'a self,
        _: ValidInput,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ErrorKind>> {
        context.sink().emit("started");
        Box::pin(std::future::pending())
    }
}

fn deaf(stage: &Stage) {
    let definition =
        Definition::new("deaf", "Never stops.", SideEffects::None, json!({"type": "object"}))
            .unwrap();
    stage.host.registry().register(Arc::new(move || Box::new(Deaf(definition.clone())))).unwrap();
}

#[test]
fn unstoppable_tool_is_abandoned_after_thirty_seconds() {
    let stage = stage();
    deaf(&stage);
    let session = stage.session();
    let ((result, took), log) = logged(|| {
        on_driven_clock(async {
            let call = stage.begin(&session, Call::new("deaf", "{}").with_id("d"));
            stage.started(1).await;
            let begun = Instant::now();
            session.cancel_all();
            (call.await.unwrap(), begun.elapsed())
        })
    });
    assert_eq!((class(&result), took), ("cancelled", Duration::from_secs(30)));
    let warned = log.lines().find(|line| line.contains("WARN") && line.contains("abandoned"));
    assert!(warned.is_some_and(|line| line.contains("id=d")), "{log}");
    stage.ended_once("d");
}

#[test]
fn timed_out_tool_is_stopped_and_its_last_output_kept() {
    let stage = stage();
    let waiting =
        Waiting::new("waits", StopSignal::ByCancel, || Ok(ToolOutput::text("half of it")));
    stage.host.registry().register(waiting.factory()).unwrap();
    let result = on_driven_clock(
        stage.host.dispatch(&stage.session(), Call::new("waits", "{}").with_id("w")),
    );
    assert_eq!((class(&result), waiting.cancellations()), ("timeout", 1));
    assert_eq!(result.to_block()["content"][1]["text"], "half of it");
    let last = stage.recorder.events_of("w").pop();
    assert!(
        matches!(last, Some(Event::Failed(_, failure)) if failure.partial_output.as_deref() == Some("half of it"))
    );
}

#[test]
fn dropped_call_ends_at_once_and_its_tool_cleans_up() {
    let cleaned = Arc::new(AtomicBool::new(false));
    let own = cleaned.clone();
    let stage = stage();
    let waiting = Waiting::new("waits", StopSignal::ByContext, move || {
        own.store(true, Ordering::SeqCst);
        Ok(ToolOutput::text("cleaned up"))
    });
    stage.host.registry().register(waiting.factory()).unwrap();
    block_on(async {
        let call = stage.begin(&stage.session(), Call::new("waits", "{}").with_id("w"));
        waiting.started().await;
        call.abort();
        assert!(call.await.unwrap_err().is_cancelled());
        stage.ended_once("w");
        while !cleaned.load(Ordering::SeqCst) {
            tokio::task::yield_now().await;
        }
    });
    assert_eq!(waiting.cancellations(), 1);
    stage.ended_once("w");
}

#[test]
fn panic_in_cancel_affects_no_other_call() {
    struct Panics(Definition);
    impl Tool for Panics {
        fn definition(&self) -> &Definition {
            &self.0
        }
        fn execute<'a>(
            &'a self,
            _: ValidInput,
            context: &'a ToolContext,
        ) -> BoxFuture<'a, Result<ToolOutput, ErrorKind>> {
            context.sink().emit("started");
            Box::pin(async {
                context.cancelled().await;
                Ok(ToolOutput::text(""))
            })
        }
        fn cancel(&self) -> bool {
            panic!("not now")
        }
    }
    let stage = stage();
    let definition =
        Definition::new("panics", "Panics.", SideEffects::None, json!({"type": "object"})).unwrap();
    stage.host.registry().register(Arc::new(move || Box::new(Panics(definition.clone())))).unwrap();
    let session = stage.session();
    let result = block_on(async {
        let call = stage.begin(&session, Call::new("panics", "{}"));
        stage.started(1).await;
        session.cancel_all();
        call.await.unwrap()
    });
    assert_eq!(class(&result), "cancelled");
}

#[test]
fn context_has_call_session_turn_workspace_and_log() {
    let stage = stage();
    let root = stage.host.workspace().root().to_owned();
    let looks = Native::new("looks", move |_, context| {
        let caller = context.caller();
        assert_eq!(context.workspace().root(), root);
        context.log(palisade::execution::Severity::Info, "looked");
        Ok(ToolOutput::text(format!(
            "{:?} {:?} {:?}",
            caller.call_id.as_str(),
            caller.session_id,
            caller.turn_id
        )))
    });
    stage.host.registry().register(looks.factory()).unwrap();
    let result = block_on(
        stage.host.dispatch(&stage.session(), Call::new("looks", "{}").with_id("c").with_turn("t")),
    );
    assert_eq!(result.output().as_deref(), Some(r#""c" Some("session-1") Some("t")"#));
    assert!(
        matches!(&stage.recorder.events_of("c")[1], Event::Log(_, _, message) if message == "looked")
    );
}

#[test]
fn context_files_are_those_of_the_workspace() {
    let stage =
        Stage::new(&[], |builder| builder.policy(Policy::default().allowing(SideEffects::Write)));
    stage.world.file("old.txt", "a b").link("out", "@/secret.txt");
    let before = stage.world.outside();
    let works = Native::new("works", |_, context| {
        let (files, inside) = (context.files(), context.workspace().root().join("old.txt"));
        assert_eq!(files.read("old.txt")?, "a b");
        assert_eq!(files.read(inside.to_str().unwrap())?, "a b", "absolute, and inside");
        assert_eq!(files.read_bytes("./x/../old.txt")?, b"a b");
        files.write("sub/new.txt", "one\n")?;
        files.write_bytes("bytes", &[0, 159])?;
        files.append("sub/new.txt", "two\n")?;
        assert!(files.exists("sub/new.txt")? && !files.exists("missing")?);
        files.patch("old.txt", "b", "c")?;
        files.delete("bytes")?;
        Ok(ToolOutput::text(files.list(".")?.join(" ")))
    });
    let leaves = Native::new("leaves", |input, context| {
        let (files, path) = (context.files(), input["path"].as_str().unwrap_or_default());
        let refused = |outcome: Result<(), palisade::workspace::FileError>| {
            assert!(
                matches!(outcome, Err(palisade::workspace::FileError::Escapes(_))),
                "{path}: {outcome:?}"
            );
        };
        refused(files.read_bytes(path).map(drop));
        refused(files.write(path, "x"));
        refused(files.append(path, "x"));
        refused(files.patch(path, "a", "b"));
        refused(files.exists(path).map(drop));
        Err(files.read(path).unwrap_err().into())
    });
    for (name, tool) in [("works", works), ("leaves", leaves)] {
        let tool = tool.defined(of_class(name, SideEffects::Write));
        stage.host.registry().register(tool.factory()).unwrap();
    }
    let result = block_on(stage.host.call("works", "{}", json!({})));
    assert!(result.is_success(), "{result}");
    assert_eq!(stage.world.read("sub/new.txt").as_deref(), Some("one\ntwo\n"));
    assert_eq!(
        (stage.world.read("old.txt").as_deref(), stage.world.read("bytes")),
        (Some("a c"), None)
    );
    for path in ["../secret.txt", "/etc/passwd", "out", "sub/../../secret.txt"] {
        let result = block_on(stage.host.call("leaves", json!({"path": path}), json!({})));
        assert_eq!(class(&result), "permission_denied", "{path}: {result}");
    }
    assert_eq!(stage.world.outside(), before);
}

fn of_class(name: &str, class: SideEffects) -> Definition {
    Definition::new(name, "Uses files.", class, json!({"type": "object"})).unwrap()
}

#[test]
fn context_files_obey_the_tools_class() {
    let all = SideEffects::ALL.into_iter();
    let stage = Stage::new(&[], |builder| {
        builder.policy(all.clone().fold(Policy::default(), Policy::allowing))
    });
    stage.world.file("old.txt", "old");
    for class in all {
        let name = format!("of_{class}");
        let tool = Native::new(&name, |input, context| match input["content"].as_str() {
            Some(content) => Ok(context
                .files()
                .write("new.txt", content)
                .map(|()| ToolOutput::text("written"))?),
            None => Ok(context.files().read("old.txt").map(ToolOutput::text)?),
        });
        let tool = tool.defined(of_class(&name, class)).factory();
        stage.host.registry().register(tool).unwrap();
        let (reads, writes) = match class {
            SideEffects::None | SideEffects::Network => (false, false),
            SideEffects::Read => (true, false),
            SideEffects::Write | SideEffects::Execute => (true, true),
        };
        for (input, allowed) in [(json!({}), reads), (json!({"content": name}), writes)] {
            let result = block_on(stage.host.call(&name, input, json!({})));
            let right = if allowed {
                result.is_success()
            } else {
                palisade_tests::stage::class(&result) == "permission_denied"
            };
            assert!(right, "{class}: {result}");
        }
        assert_eq!(stage.world.read("new.txt"), writes.then_some(name), "{class}");
        let _ = std::fs::remove_file(stage.world.root().join("new.txt"));
    }
}

#[test]
fn native_tools_come_after_shipped_and_before_plugin_files() {
    let taken = Stage::new(&[], |builder| builder.tool(echo("of_none")).tool(echo("mine")));
    let names = taken.host.registry().tool_names();
    let place = |name: &str| names.iter().position(|known| known == name).unwrap();
    assert!(place("read_file") < place("of_none") && place("of_none") < place("mine"));
    let clash =
        palisade::Host::builder().workspace(taken.world.root()).tool(echo("read_file")).build();
    assert!(clash.map(drop).unwrap_err().to_string().contains("already exists"));
    let gate = palisade_tests::guest::DISPATCHER_GATE;
    let host = palisade::Host::builder()
        .workspace(taken.world.root())
        .cache(palisade::CacheMode::Directory(palisade_tests::guest::cache()))
        .tool(echo("of_none"))
        .plugins(gate.directory())
        .build()
        .unwrap();
    assert_eq!(host.rejected().len(), 1, "the plugin whose name is taken is rejected whole");
}

#[test]
fn class_sets_the_default_time_of_a_call() {
    let all = SideEffects::ALL.into_iter();
    let stage = Stage::new(&[palisade_tests::guest::DISPATCHER_GATE], |builder| {
        builder.policy(all.clone().fold(Policy::default(), Policy::allowing))
    });
    for class in all {
        let time = Duration::from_secs(match class {
            SideEffects::None | SideEffects::Read | SideEffects::Write => 60,
            SideEffects::Execute | SideEffects::Network => 600,
        });
        let plugins = stage.host.registry().get(&super::tool_of(class)).unwrap();
        assert_eq!(stage.host.time_limit(&plugins, None), time, "{class}");
        let name = format!("waits_{class}");
        let waiting = Waiting::new(&name, StopSignal::ByContext, || Ok(ToolOutput::text("")));
        let waiting = waiting.defined(of_class(&name, class));
        stage.host.registry().register(waiting.factory()).unwrap();
        let (result, took) = on_driven_clock(async {
            let begun = Instant::now();
            let call = Call::new(name.as_str(), "{}");
            (stage.host.dispatch(&stage.session(), call).await, begun.elapsed())
        });
        assert_eq!(palisade_tests::stage::class(&result), "timeout", "{class}: {result}");
        let value = &result.to_json()["error"]["detail"]["value_ms"];
        assert_eq!(*value, json!(time.as_secs() * 1000), "{class}");
        assert!((time..time + Duration::from_millis(5)).contains(&took), "{class}: {took:?}");
    }
}

#[test]
fn report_of_a_native_tool_reaches_its_result() {
    let stage = stage();
    let report = |outcome| ToolOutput {
        outcome,
        metadata: [("stop_loop".to_owned(), json!(true))].into_iter().collect(),
        files_modified: vec!["sub/new.txt".into(), "old.txt".into()],
        command_executed: Some("make".to_owned()),
        ..ToolOutput::text("done")
    };
    for (name, outcome) in [("works", Outcome::Success), ("gives_up", Outcome::Failure)] {
        let tool = Native::new(name, move |_, _| Ok(report(outcome)));
        stage.host.registry().register(tool.factory()).unwrap();
        let result = block_on(stage.host.call(name, "{}", json!({})));
        assert_eq!(result.is_success(), outcome == Outcome::Success, "{result}");
        let files = ["sub/new.txt", "old.txt"].map(std::path::PathBuf::from);
        assert_eq!(result.files_modified(), files, "{name}");
        let told = result.to_json();
        assert_eq!(told["files_modified"], json!(["sub/new.txt", "old.txt"]), "{name}");
        assert_eq!(
            (&told["command_executed"], &told["metadata"]["stop_loop"]),
            (&json!("make"), &json!(true))
        );
    }
    let waiting =
        Waiting::new("waits", StopSignal::ByContext, move || Ok(report(Outcome::Success)));
    stage.host.registry().register(waiting.factory()).unwrap();
    let stopped = on_driven_clock(stage.host.call("waits", "{}", json!({})));
    assert_eq!(class(&stopped), "timeout");
    assert_eq!(stopped.files_modified().len(), 2, "what it had done when it was stopped");
}
