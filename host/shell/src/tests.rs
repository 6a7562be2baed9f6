//! Tests of `shell` with the real shell and the real kernel.

#![allow(clippy::unwrap_used, reason = "a test that cannot prepare its workspace has failed")]

#[cfg(target_os = "linux")]
mod confined;
mod environment;
mod output;
mod results;
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")
))]
mod syscalls;
#[cfg(target_os = "linux")]
mod termination;

use super::command::Timeouts;
use super::confine::Kernel;
use super::tool::{CallParts, Setup, definition};
use super::{Confinement, Network, Shell, ShellLimits, ShellOptions};
use palisade::workspace::Workspace;
use palisade::{Content, ErrorKind};
use palisade::{
    Tool as _, ToolOutput,
    execution::{Outcome, Progress, Report, Severity, Sink},
};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// The timeout for events that should happen at once.
const SOON: Duration = Duration::from_secs(4);

const CONFINED: Setup = setup(Confinement::Landlock, Network::Closed);
const UNCONFINED: Setup = setup(Confinement::Unconfined, Network::Closed);
const CONNECTED: Setup = setup(Confinement::Landlock, Network::Open);

/// Without a helper: suite `shipped` tests the helper through the whole host.
const fn setup(confinement: Confinement, network: Network) -> Setup {
    let limits = ShellLimits { processes: ShellLimits::PROCESSES, memory: u64::MAX };
    let options = ShellOptions { confinement, network, limits, helper: None };
    Setup { options, kernel: Kernel::Running, timeouts: Timeouts::DEFAULT }
}

/// A workspace, a file beside it that no command may touch, and a tool for one call.
struct World {
    outer: TempDir,
    workspace: Arc<Workspace>,
    /// Cancels the call.
    cancel: CancellationToken,
    sink: Arc<RecordingSink>,
    shell: Shell,
}

#[derive(Default)]
struct RecordingSink(Mutex<String>);

impl Sink for RecordingSink {
    fn log(&self, _: Severity, _: &str) {}
    fn progress(&self, _: Progress) {}
    fn emit(&self, chunk: &str) {
        self.0.lock().unwrap().push_str(chunk);
    }
}

impl RecordingSink {
    fn text(&self) -> String {
        self.0.lock().unwrap().clone()
    }

    /// Waits for a line with this prefix and returns the rest of the line.
    async fn line(&self, start: &str) -> String {
        let begun = Instant::now();
        loop {
            let text = self.text();
            let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
            if let Some(rest) = whole.lines().find_map(|line| line.strip_prefix(start)) {
                return rest.trim().to_owned();
            }
            assert!(begun.elapsed() < SOON, "no line begins with `{start}`: {text:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

impl World {
    fn new(setup: Setup) -> Self {
        let outer = tempfile::tempdir().unwrap();
        std::fs::create_dir(outer.path().join("ws")).unwrap();
        std::fs::write(outer.path().join("canary"), "sings").unwrap();
        let workspace = Workspace::open(&outer.path().join("ws")).unwrap();
        Self {
            outer,
            workspace: Arc::new(workspace),
            cancel: CancellationToken::new(),
            sink: Arc::default(),
            shell: Shell::new(definition(&setup.options), Arc::new(setup)),
        }
    }

    fn workspace(&self) -> PathBuf {
        self.workspace.root().to_owned()
    }

    fn canary(&self) -> PathBuf {
        self.outer.path().join("canary")
    }

    async fn call(&self, input: Value) -> Result<(ToolOutput, Report), ErrorKind> {
        let call =
            CallParts { workspace: &self.workspace, sink: &*self.sink, cancel: &self.cancel };
        self.shell.run(&input, call).await
    }

    async fn run(&self, command: &str) -> ToolOutput {
        let (output, _) = self
            .call(json!({"command": command}))
            .await
            .unwrap_or_else(|error| panic!("{command}: {error}"));
        output
    }
}

/// Runs one confined command in a new world.
async fn run(command: &str) -> ToolOutput {
    World::new(CONFINED).run(command).await
}

fn text(output: &ToolOutput) -> &str {
    match output.content.as_slice() {
        [Content::Text(text)] => text,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn succeeded(output: &ToolOutput) -> &str {
    assert_eq!(output.outcome, Outcome::Success, "{}", text(output));
    text(output)
}

#[track_caller]
fn failed(output: &ToolOutput) -> &str {
    assert_eq!(output.outcome, Outcome::Failure, "{}", text(output));
    text(output)
}

fn last_line(output: &ToolOutput) -> &str {
    text(output).lines().last().unwrap_or_default()
}

fn quoted(path: &Path) -> String {
    format!("'{}'", path.display())
}
