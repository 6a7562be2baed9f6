//! A program that answers over its pipes for as long as it is held, confined and supervised like a
//! command of `shell`. Its working directory is `/`, so that it finds no code in the workspace.

use crate::ShellOptions;
use crate::confine::Kernel;
use crate::process::{
    self, CommandSpec, ExceededLimit, ExitStatus, HostStreams, RunningCommand, Streams,
};
use palisade::ErrorKind;
use palisade::workspace::Workspace;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::net::unix::pipe;
use tokio::sync::oneshot;

/// The program of a service.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServiceCommand {
    /// The program: a path, or a name that is looked up in its `PATH`.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Variables of its environment, beside the few of each command.
    pub variables: Vec<(String, String)>,
    /// Files and directories that it may read and execute if it is confined, beside the workspace
    /// and the programs of the system. Missing ones are ignored.
    pub readable: Vec<PathBuf>,
}

impl ServiceCommand {
    /// Returns the command line that replaces the shell by the program.
    fn line(&self) -> String {
        let words = std::iter::once(&self.program).chain(&self.arguments);
        let quoted = words.map(|word| format!(" '{}'", word.replace('\'', r"'\''")));
        format!("exec{}", quoted.collect::<String>())
    }
}

/// A running service. Its process ends with its [`ServiceProcess`].
#[derive(Debug)]
pub struct Service {
    /// The pipe that the program reads.
    pub input: pipe::Sender,
    /// The pipe for the output of the program.
    pub output: pipe::Receiver,
    /// The pipe for the errors of the program.
    pub errors: pipe::Receiver,
    /// The process.
    pub process: ServiceProcess,
}

/// The processes of a service, which are killed on drop: all of them with a
/// [`ShellHelper`](crate::ShellHelper), else the process group.
pub struct ServiceProcess(RunningCommand);

impl fmt::Debug for ServiceProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceProcess").finish_non_exhaustive()
    }
}

impl ServiceProcess {
    /// Waits for the end of the program, and says how it ended, such as `it ended with exit code
    /// 1`.
    pub async fn ended(&mut self) -> String {
        match (&mut self.0.exit).await.unwrap_or(ExitStatus::Unknown) {
            ExitStatus::Exited(code) => format!("it ended with exit code {code}"),
            ExitStatus::Killed(signal) => format!("it was killed by signal {signal}"),
            ExitStatus::Exceeded(ExceededLimit::Processes(limit)) => {
                format!("it was killed, since it had more than {limit} processes")
            }
            ExitStatus::Exceeded(ExceededLimit::Threads(limit)) => {
                format!("it was killed, since it had more than {limit} threads")
            }
            ExitStatus::Exceeded(ExceededLimit::Memory(limit)) => {
                format!("it was killed, since it had more than {limit} bytes of memory")
            }
            ExitStatus::Unknown => "it has ended".to_owned(),
        }
    }
}

impl Service {
    /// Starts a program in a workspace. Needs a tokio runtime with I/O.
    ///
    /// # Errors
    ///
    /// If the kernel cannot confine it as the options say, or if no process can be started. A
    /// program that does not exist is started, and ends with exit code 127.
    pub async fn start(
        command: &ServiceCommand,
        options: &ShellOptions,
        workspace: &Arc<Workspace>,
    ) -> Result<Self, ErrorKind> {
        let started = process::start(CommandSpec {
            command: command.line(),
            confinement: options.confinement,
            network: options.network,
            workspace: workspace.clone(),
            kernel: Kernel::Running,
            helper: options.helper.clone(),
            limits: options.limits,
            streams: Streams::Service,
            variables: command.variables.clone(),
            readable: command.readable.clone(),
        })?;
        let lost = |_: oneshot::error::RecvError| {
            ErrorKind::internal("the thread that starts services ended")
        };
        let mut running = started.await.map_err(lost)??;
        let HostStreams::Service { input, output, errors } = running.take_streams()? else {
            return Err(ErrorKind::internal("a service has the pipe of a command"));
        };
        Ok(Self {
            input: pipe::Sender::from_owned_fd(input)?,
            output: pipe::Receiver::from_owned_fd(output)?,
            errors: pipe::Receiver::from_owned_fd(errors)?,
            process: ServiceProcess(running),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;
    use crate::{Confinement, Network};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    fn workspace() -> (tempfile::TempDir, Arc<Workspace>) {
        let directory = tempfile::tempdir().unwrap();
        let workspace = Workspace::open(directory.path()).unwrap();
        (directory, Arc::new(workspace))
    }

    fn shell(line: &str) -> ServiceCommand {
        let arguments = vec!["-c".to_owned(), line.to_owned()];
        ServiceCommand { program: "sh".to_owned(), arguments, ..ServiceCommand::default() }
    }

    async fn all_of(mut pipe: pipe::Receiver) -> String {
        let mut text = String::new();
        pipe.read_to_string(&mut text).await.unwrap();
        text
    }

    #[tokio::test]
    async fn service_answers_over_three_pipes() {
        let (_directory, workspace) = workspace();
        let mut command = shell("read line; echo \"<$line> $WORD\"; echo trouble >&2; exit 3");
        command.variables.push(("WORD".to_owned(), "it's $HOME".to_owned()));
        let options = ShellOptions::default();
        let service = Service::start(&command, &options, &workspace).await.unwrap();
        let Service { mut input, output, errors, mut process } = service;
        input.write_all(b"one\n").await.unwrap();
        assert_eq!(all_of(output).await, "<one> it's $HOME\n");
        assert_eq!(all_of(errors).await, "trouble\n");
        assert_eq!(process.ended().await, "it ended with exit code 3");
    }

    #[tokio::test]
    async fn service_is_confined_as_a_command_is() {
        let (_directory, workspace) = workspace();
        let other = tempfile::tempdir().unwrap();
        std::fs::write(other.path().join("file"), "secret").unwrap();
        let file = other.path().join("file").display().to_string();
        let here = workspace.root().join("here").display().to_string();
        let command = shell(&format!("cat {file}; echo x > {file}; echo x > {here} && echo done"));
        let options = ShellOptions::new(Confinement::Landlock).network(Network::Closed);
        let denied = Service::start(&command, &options, &workspace).await.unwrap();
        assert_eq!(all_of(denied.output).await, "done\n");
        let readable = vec![other.path().to_owned()];
        let command = ServiceCommand { readable, ..command };
        let readable = Service::start(&command, &options, &workspace).await.unwrap();
        assert_eq!(all_of(readable.output).await, "secretdone\n");
        assert_eq!(std::fs::read(other.path().join("file")).unwrap(), b"secret");
    }

    #[tokio::test]
    async fn service_does_not_run_in_the_workspace() {
        let (_directory, workspace) = workspace();
        for confinement in [Confinement::Landlock, Confinement::Unconfined] {
            let options = ShellOptions::new(confinement);
            let service = Service::start(&shell("pwd"), &options, &workspace).await.unwrap();
            assert_eq!(all_of(service.output).await, "/\n");
        }
    }

    #[tokio::test]
    async fn service_ends_when_it_is_dropped() {
        let (directory, workspace) = workspace();
        let late = workspace.root().join("late").display().to_string();
        let command = shell(&format!("echo ready; sleep 60; echo late > {late}"));
        let options = ShellOptions::default();
        let service = Service::start(&command, &options, &workspace).await.unwrap();
        let Service { input, mut output, errors: _errors, process } = service;
        let mut ready = [0; 6];
        output.read_exact(&mut ready).await.unwrap();
        drop((input, process));
        assert_eq!(all_of(output).await, "", "its end of the pipe is closed");
        assert!(!directory.path().join("late").exists());
    }
}
