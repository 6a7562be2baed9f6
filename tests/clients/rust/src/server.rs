//! The server's address or start command, and its processor time.

use crate::{Broken, Outcome};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// The kernel's unit of processor time.
const TICK: Duration = Duration::from_millis(10);

/// The server of the command line.
#[derive(Debug)]
pub(crate) struct Server {
    /// The workspace of the server.
    pub(crate) workspace: PathBuf,
    /// The transport of the server.
    pub(crate) transport: Transport,
}

/// The transport of a server.
#[derive(Debug)]
pub(crate) enum Transport {
    /// A running server.
    Http { url: String, process: u32 },
    /// Each connection starts a server.
    Stdio { program: String, words: Vec<String> },
}

impl Server {
    /// Parses the command line. Fails if it is incomplete.
    pub(crate) fn from_arguments() -> Outcome<Self> {
        let (mut workspace, mut url, mut process) = (None, None, None);
        let mut words = std::env::args().skip(1);
        let program = loop {
            match words.next() {
                Some(option) if option == "--workspace" => workspace = words.next(),
                Some(option) if option == "--url" => url = words.next(),
                Some(option) if option == "--process" => process = words.next(),
                // The first word that is not an option starts the server's command.
                program => break program,
            }
        };
        let transport = match (url, process, program) {
            (Some(url), Some(process), None) => Transport::Http { url, process: process.parse()? },
            (None, None, Some(program)) => Transport::Stdio { program, words: words.collect() },
            _ => return Err(usage()),
        };
        Ok(Self { workspace: workspace.ok_or_else(usage)?.into(), transport })
    }
}

fn usage() -> Broken {
    Broken(
        "usage: palisade-client-in-rust --workspace DIR [--process PID --url URL | COMMAND…]"
            .to_owned(),
    )
}

/// Returns the processor time of a process so far.
pub(crate) fn processor_time(process: u32) -> Outcome<Duration> {
    let line = fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The fields after the name, which may contain any character.
    let fields = line.rsplit(')').next().unwrap_or_default();
    let ticks = fields
        .split_whitespace()
        .skip(11)
        .take(2)
        .map(str::parse::<u32>)
        .sum::<Result<u32, _>>()?;
    Ok(TICK * ticks)
}
