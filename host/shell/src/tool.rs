//! The `shell` tool: runs one shell command in the workspace, confined by the kernel, and kills its
//! processes when the call ends.

mod command;
mod confine;
#[cfg(target_os = "linux")]
mod helper;
mod input;
mod launch;
mod options;
mod output;
mod process;
mod report;
mod surroundings;
#[cfg(test)]
mod tests;
mod unfit;
mod watch;

#[cfg(target_os = "linux")]
pub use helper::{HelperError, hold_command};
pub use options::{Confinement, Network, ShellHelper, ShellLimits, ShellOptions};
pub use output::{EMITTED, KEPT};

use crate::execution::{BoxFuture, Factory, Tool, ToolContext, ToolOutput, ValidInput};
use crate::tool::{Definition, ErrorKind, SideEffects};
use crate::workspace::Workspace;
use input::Input;
use std::fmt;
use std::os::fd::AsFd as _;
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;
use watch::Patience;

/// Returns the Landlock ABI version that confines commands on this system.
///
/// # Errors
///
/// `permission_denied` if Landlock is missing or too old: the error that a command would get.
pub fn landlock(workspace: &Arc<Workspace>) -> Result<u32, ErrorKind> {
    let workspace = workspace.clone();
    // Removed by this thread: a confined thread may delete the content of its home directory, but
    // not the directory itself.
    let home = surroundings::home(workspace.root())?;
    let path = home.path().to_owned();
    // A separate thread, because a confinement cannot be lifted.
    let probe = move || {
        let workspace = workspace.dir().as_fd();
        let bounds =
            confine::Bounds { workspace, home: &path, network: Network::Closed, spared: &[] };
        confine::this_thread(bounds, confine::Kernel::Running)
    };
    let probe = std::thread::Builder::new().name("palisade-probe".to_owned()).spawn(probe);
    let probe = probe
        .map_err(|error| ErrorKind::internal(format!("no thread to look for Landlock: {error}")))?;
    let confined = probe
        .join()
        .map_err(|_| ErrorKind::internal("the thread that looked for Landlock ended"))?;
    let confined = confined.map_err(ErrorKind::from)?;
    Ok(confined.abi().unwrap_or_default())
}

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
struct Setup {
    options: ShellOptions,
    kernel: confine::Kernel,
    patience: Patience,
}

/// The progress of the single call of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Before,
    Running,
    Stopping,
    Over,
}

impl Shell {
    /// Returns a factory for registering the tool.
    #[must_use]
    pub fn factory(options: impl Into<ShellOptions>) -> Factory {
        Self::factory_of(Setup {
            options: options.into(),
            kernel: confine::Kernel::Running,
            patience: Patience::SHIPPED,
        })
    }

    fn factory_of(setup: Setup) -> Factory {
        let definition = definition(&setup.options);
        let setup = Arc::new(setup);
        Arc::new(move || Box::new(Self::new(definition.clone(), setup.clone())))
    }

    fn new(definition: Definition, setup: Arc<Setup>) -> Self {
        Self { definition, setup, phase: Mutex::new(Phase::Before), stop: CancellationToken::new() }
    }

    async fn run(&self, input: Input, context: &ToolContext) -> Result<ToolOutput, ErrorKind> {
        let stop = async {
            tokio::select! {
                () = context.cancelled() => watch::Why::Told,
                () = self.stop.cancelled() => watch::Why::Told,
                why = watch::own_limit(input.limit) => why,
            }
        };
        command::run(&input.command, &self.setup, context, stop).await
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
        Box::pin(async move {
            let input = Input::read(input.value())?;
            if context.is_cancelled() || self.stop.is_cancelled() {
                return Err(ErrorKind::Cancelled);
            }
            self.enter(Phase::Running);
            let _over = Over(self);
            self.run(input, context).await
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

/// Marks the call as over on drop, even if its future is dropped: there is nothing left to cancel.
struct Over<'a>(&'a Shell);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.enter(Phase::Over);
    }
}

const DESCRIPTION: &str = "Runs one command with /bin/sh in the workspace and gives back what it wrote, standard output and standard error in the order in \
    which they were written, with a last line that names the exit code unless it is 0. Of long output the middle is left out: \
    use head, tail or grep. The command gets no input, no terminal and few environment variables; HOME and TMPDIR are an empty \
    directory that is removed afterwards. Processes left in the background are killed when the command ends.";

const CONFINED: &str = " It can change files in the workspace and in TMPDIR only, and read those and the system's programs; other files and /proc are \
    denied.";

const CLOSED: &str = " There is no network: no socket can be opened.";

/// Returns the definition of the tool. Its description mentions the confinement, so that a model
/// can interpret a refusal.
fn definition(options: &ShellOptions) -> Definition {
    let more = match (options.confinement, options.network) {
        (Confinement::Landlock, Network::Closed) => [CONFINED, CLOSED].concat(),
        (Confinement::Landlock, Network::Open) => CONFINED.to_owned(),
        (Confinement::Unconfined, _) => String::new(),
    };
    Definition::new("shell", &format!("{DESCRIPTION}{more}"), SideEffects::Execute, input::schema())
        .and_then(|definition| definition.with_title("Run a command"))
        .expect("a definition made of constants, which a test checks")
}
