//! How a server is reached.

use palisade_shell::{Confinement, Network, ServiceCommand, ShellOptions};
use std::fmt;

/// A program that is a server over its standard input and output.
#[derive(Clone)]
#[non_exhaustive]
pub struct ServerCommand {
    /// The program, its arguments and its environment. `PATH` and `HOME` are those of this process
    /// only if they are among the variables.
    pub command: ServiceCommand,
    /// How it is confined, and which program supervises its processes.
    pub options: ShellOptions,
}

/// Leaves out the variables, which may hold secrets.
impl fmt::Debug for ServerCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerCommand")
            .field("program", &self.command.program)
            .field("arguments", &self.command.arguments)
            .finish_non_exhaustive()
    }
}

impl ServerCommand {
    /// Returns a program without arguments, with all rights of this process: a server of the MCP
    /// registries expects them.
    #[must_use]
    pub fn new(program: impl Into<String>) -> Self {
        Self {
            command: ServiceCommand { program: program.into(), ..ServiceCommand::default() },
            options: ShellOptions::new(Confinement::Unconfined),
        }
    }

    /// Sets the arguments.
    #[must_use]
    pub fn arguments<A: Into<String>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.command.arguments = arguments.into_iter().map(Into::into).collect();
        self
    }
}

/// How a server is reached.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Reach {
    /// By a program that the host starts.
    Command(ServerCommand),
}

impl Reach {
    /// Returns what holds the calls of a server, for a person.
    #[must_use]
    pub fn sandbox(&self) -> &'static str {
        match self {
            Self::Command(command) => match command.options.rights() {
                (Confinement::Unconfined, _) => {
                    "none: the MCP server is a program with all of your rights"
                }
                (Confinement::Landlock, Network::Closed) => {
                    "a program that the kernel confines: the workspace, read-write; no network"
                }
                (Confinement::Landlock, Network::Open) => {
                    "a program that the kernel confines: the workspace, read-write; the network"
                }
            },
        }
    }

    /// Returns the text that an approval is bound to: a server that is reached in another way is
    /// another server. Variables of the environment, which may hold secrets, are no part of it.
    #[must_use]
    pub fn identity(&self) -> String {
        match self {
            Self::Command(command) => {
                let command = &command.command;
                let words = std::iter::once(&command.program).chain(&command.arguments);
                serde_json::json!(words.collect::<Vec<_>>()).to_string()
            }
        }
    }
}
