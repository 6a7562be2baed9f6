//! The pipes between the host and a command.

use rustix::fd::OwnedFd;
use serde::{Deserialize, Serialize};
use std::io;
use std::process::Stdio;

/// The pipes that a command reads and writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Streams {
    /// It reads nothing, and writes output and errors to one pipe, which keeps their order.
    Output,
    /// It reads one pipe, and writes output and errors to two others.
    Service,
}

/// The host's ends.
#[derive(Debug)]
pub(crate) enum HostStreams {
    /// Those of [`Streams::Output`].
    Output(OwnedFd),
    /// Those of [`Streams::Service`].
    Service {
        /// The end for writing of the pipe that the command reads.
        input: OwnedFd,
        /// The end for reading of the pipe for the output of the command.
        output: OwnedFd,
        /// The end for reading of the pipe for the errors of the command.
        errors: OwnedFd,
    },
}

/// The command's ends. They are closed in the host when the command has them: an open one would
/// prevent the end of a stream.
#[derive(Debug)]
pub(crate) enum CommandStreams {
    /// Those of [`Streams::Output`].
    Output(OwnedFd),
    /// Those of [`Streams::Service`]: input, output and errors.
    Service([OwnedFd; 3]),
}

impl Streams {
    /// Opens the pipes.
    pub(crate) fn open(self) -> io::Result<(HostStreams, CommandStreams)> {
        let (output, write_output) = io::pipe()?;
        if self == Self::Output {
            let ends = (HostStreams::Output(output.into()), write_output.into());
            return Ok((ends.0, CommandStreams::Output(ends.1)));
        }
        let (read_input, input) = io::pipe()?;
        let (errors, write_errors) = io::pipe()?;
        let (input, output, errors) = (input.into(), output.into(), errors.into());
        Ok((
            HostStreams::Service { input, output, errors },
            CommandStreams::Service([read_input.into(), write_output.into(), write_errors.into()]),
        ))
    }
}

impl CommandStreams {
    /// Returns the descriptors, in the order in which [`receive`](Self::receive) takes them.
    #[cfg(target_os = "linux")]
    pub(crate) fn descriptors(&self) -> &[OwnedFd] {
        match self {
            Self::Output(output) => std::slice::from_ref(output),
            Self::Service(all) => all,
        }
    }

    /// Takes the descriptors of a kind of streams from another process.
    #[cfg(target_os = "linux")]
    pub(crate) fn receive(
        kind: Streams,
        mut next: impl FnMut() -> io::Result<OwnedFd>,
    ) -> io::Result<Self> {
        Ok(match kind {
            Streams::Output => Self::Output(next()?),
            Streams::Service => Self::Service([next()?, next()?, next()?]),
        })
    }

    /// Returns input, output and errors for the start of the command.
    pub(crate) fn into_stdio(self) -> io::Result<[Stdio; 3]> {
        Ok(match self {
            Self::Output(both) => [Stdio::null(), both.try_clone()?.into(), both.into()],
            Self::Service(all) => all.map(Stdio::from),
        })
    }
}
