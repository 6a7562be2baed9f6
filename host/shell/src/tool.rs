//! The `shell` tool, as the host registers and runs it.

mod input;
mod report;

use crate::command::{self, StopReason, Timeouts};
use crate::confine::Kernel;
use crate::{Confinement, Network, ShellOptions};
use input::Input;
use palisade::workspace::Workspace;
use palisade::{
    BoxFuture, Factory, Tool, ToolContext, ToolOutput, ValidInput,
    execution::{Report, Sink},
};
use palisade::{Definition, ErrorKind, SideEffects};
use serde_json::Value;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// The tool. One instance runs one command.
pub struct Shell {
    definition: Definition,
    setup: Arc<Setup>,
    phase: Mutex<Phase>,
    stop: CancellationToken,
}

impl fmt::Debug for Shell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shell").field("options", &self.setup.options).finish_non_exhaustive()
    }
}

/// The options of all commands.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    pub(crate) options: ShellOptions,
    pub(crate) kernel: Kernel,
    pub(crate) timeouts: Timeouts,
}

/// The parts of a call's context that a command uses.
#[derive(Clone, Copy)]
pub(crate) struct CallParts<'a> {
    pub(crate) workspace: &'a Arc<Workspace>,
    pub(crate) sink: &'a dyn Sink,
    pub(crate) cancel: &'a CancellationToken,
}

/// The progress of the single call of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Before,
    Running,
    Stopping,
    Done,
}

impl Shell {
    /// Returns a factory for registering the tool.
    #[must_use]
    pub fn factory(options: impl Into<ShellOptions>) -> Factory {
        let setup =
            Setup { options: options.into(), kernel: Kernel::Running, timeouts: Timeouts::DEFAULT };
        let definition = definition(&setup.options);
        let setup = Arc::new(setup);
        Arc::new(move || Box::new(Self::new(definition.clone(), setup.clone())))
    }

    pub(crate) fn new(definition: Definition, setup: Arc<Setup>) -> Self {
        Self { definition, setup, phase: Mutex::new(Phase::Before), stop: CancellationToken::new() }
    }

    /// Runs the single command of this instance. Returns its output and its resource usage.
    pub(crate) async fn run(
        &self,
        input: &Value,
        call: CallParts<'_>,
    ) -> Result<(ToolOutput, Report), ErrorKind> {
        let input = Input::read(input)?;
        if call.cancel.is_cancelled() || self.stop.is_cancelled() {
            return Err(ErrorKind::Cancelled);
        }
        self.enter(Phase::Running);
        let _done = DoneOnDrop(self);
        let stop = async {
            tokio::select! {
                () = call.cancel.cancelled() => StopReason::Cancelled,
                () = self.stop.cancelled() => StopReason::Cancelled,
                reason = command::input_timeout(input.timeout) => reason,
            }
        };
        let completed = command::run(&input.command, &self.setup, call, stop).await?;
        Ok((report::output(&input.command, &completed), report::usage(&completed)))
    }

    /// Sets the phase and returns the previous one.
    fn enter(&self, next: Phase) -> Phase {
        std::mem::replace(&mut *self.phase.lock().unwrap_or_else(PoisonError::into_inner), next)
    }
}

impl Tool for Shell {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn execute<'a>(
        &'a self,
        input: ValidInput,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ErrorKind>> {
        let call = CallParts {
            workspace: context.workspace(),
            sink: &**context.sink(),
            cancel: context.cancel(),
        };
        Box::pin(async move {
            let (output, report) = self.run(input.value(), call).await?;
            context.set_report(report);
            Ok(output)
        })
    }

    /// Makes [`execute`](Tool::execute) stop the whole process group: SIGTERM, then SIGKILL.
    /// Returns true for the first request while the command runs.
    fn cancel(&self) -> bool {
        let mut phase = self.phase.lock().unwrap_or_else(PoisonError::into_inner);
        self.stop.cancel();
        if *phase != Phase::Running {
            return false;
        }
        *phase = Phase::Stopping;
        true
    }
}

/// Marks the call as done on drop, even if its future is dropped: there is nothing left to cancel.
struct DoneOnDrop<'a>(&'a Shell);

impl Drop for DoneOnDrop<'_> {
    fn drop(&mut self) {
        self.0.enter(Phase::Done);
    }
}

const DESCRIPTION: &str = "Runs one command with /bin/sh in the workspace and gives back what it \
    wrote, standard output and standard error in the order in which they were written, with a last \
    line that names the exit code unless it is 0. Of long output the middle is left out: use head, \
    tail or grep. The command gets no input, no terminal and few environment variables; HOME and \
    TMPDIR are an empty directory that is removed afterwards. Processes left in the background are \
    killed when the command ends.";

const CONFINED: &str = " It can change files in the workspace and in TMPDIR only, and read those \
    and the system's programs; other files and /proc are denied.";

const CLOSED: &str = " There is no network: no socket can be opened.";

/// Returns the definition of the tool. Its description mentions the confinement, so that a model
/// can interpret a refusal.
pub(crate) fn definition(options: &ShellOptions) -> Definition {
    let more = match (options.confinement, options.network) {
        (Confinement::Landlock, Network::Closed) => [CONFINED, CLOSED].concat(),
        (Confinement::Landlock, Network::Open) => CONFINED.to_owned(),
        (Confinement::Unconfined, _) => String::new(),
    };
    Definition::new("shell", &format!("{DESCRIPTION}{more}"), SideEffects::Execute, input::schema())
        .and_then(|definition| definition.with_title("Run a command"))
        .expect("a definition made of constants, which a test checks")
}
