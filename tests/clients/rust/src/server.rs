//! Where the server is, or how it is started; and how much it computes.

use crate::{Kept, Wrong};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// The kernel's unit of processor time.
const TICK: Duration = Duration::from_millis(10);

/// What the command line says.
#[derive(Debug)]
pub(crate) struct Server {
    /// The directory that it serves.
    pub(crate) workspace: PathBuf,
    /// How it is reached.
    pub(crate) way: Way,
}

/// How a server is reached.
#[derive(Debug)]
pub(crate) enum Way {
    /// It runs already.
    Http { url: String, process: u32 },
    /// Each connection starts one.
    Lines { program: String, words: Vec<String> },
}

impl Server {
    /// Reads the command line. Fails where it does not say all that is needed.
    pub(crate) fn told() -> Kept<Self> {
        let (mut workspace, mut url, mut process) = (None, None, None);
        let mut words = std::env::args().skip(1);
        let program = loop {
            match words.next() {
                Some(option) if option == "--workspace" => workspace = words.next(),
                Some(option) if option == "--url" => url = words.next(),
                Some(option) if option == "--process" => process = words.next(),
                // From the first word on that is no option, it is the server's command.
                program => break program,
            }
        };
        let way = match (url, process, program) {
            (Some(url), Some(process), None) => Way::Http { url, process: process.parse()? },
            (None, None, Some(program)) => Way::Lines { program, words: words.collect() },
            _ => return Err(usage()),
        };
        Ok(Self { workspace: workspace.ok_or_else(usage)?.into(), way })
    }
}

fn usage() -> Wrong {
    Wrong("usage: palisade-client-in-rust --workspace DIR [--process PID --url URL | COMMAND…]".to_owned())
}

/// What a process has computed so far.
pub(crate) fn processor_time(process: u32) -> Kept<Duration> {
    let line = fs::read_to_string(format!("/proc/{process}/stat"))?;
    // After the name, which may hold anything.
    let fields = line.rsplit(')').next().unwrap_or_default();
    let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<u32>).sum::<Result<u32, _>>()?;
    Ok(TICK * ticks)
}
