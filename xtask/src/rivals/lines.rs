//! The stdio client, with one call in flight per caller.

use super::load::{Clock, Measured, Times};
use super::wire::Tool;
use anyhow::{Context as _, bail};
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The timeout of a server beyond the measured time; a silent server is killed.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server that is a child process, killed on drop.
pub(super) struct Lines {
    child: Arc<Mutex<Child>>,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next: u64,
}

impl Lines {
    /// Starts the server. Its stderr goes to the log.
    pub(super) fn start(mut command: Command, log: &Path) -> anyhow::Result<Self> {
        let file = File::create(log).with_context(|| format!("creating {}", log.display()))?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(file);
        let mut child = command.spawn().context("starting the server")?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let child = Arc::new(Mutex::new(child));
        let input = input.context("the server has no standard input")?;
        let output = BufReader::with_capacity(
            64 << 10,
            output.context("the server has no standard output")?,
        );
        Ok(Self { child, input, output, next: 1 })
    }

    /// Sends calls for a time, with `callers` concurrent calls.
    pub(super) fn load(
        &mut self,
        tool: &Tool,
        callers: usize,
        times: Times,
    ) -> anyhow::Result<Measured> {
        let (ends, ended) = mpsc::channel::<()>();
        let child = self.child.clone();
        thread::spawn(move || {
            // Killing the server ends its output, which unblocks the reader.
            if ended.recv_timeout(times.warm + times.measured + PATIENCE)
                == Err(RecvTimeoutError::Timeout)
            {
                let _ = child.lock().unwrap_or_else(PoisonError::into_inner).kill();
            }
        });
        let measured = self.ask(tool, callers, times);
        drop(ends);
        measured
    }

    fn ask(&mut self, tool: &Tool, callers: usize, times: Times) -> anyhow::Result<Measured> {
        let clock = Clock::start(times);
        let (mut under_way, mut latencies) = (HashMap::new(), Vec::new());
        for _ in 0..callers {
            self.begin(tool, &mut under_way)?;
        }
        let mut line = String::new();
        while !under_way.is_empty() {
            line.clear();
            if self.output.read_line(&mut line).context("reading from the server")? == 0 {
                bail!("the server has ended, or said nothing for {} s", PATIENCE.as_secs());
            }
            let now = Instant::now();
            let Some(id) = tool.answered(&line)? else { continue };
            let begun =
                under_way.remove(&id).with_context(|| format!("an answer to nothing: {line}"))?;
            clock.keep(begun, now, &mut latencies);
            if clock.runs(now) {
                self.begin(tool, &mut under_way)?;
            }
        }
        Ok(clock.measured(latencies))
    }

    fn begin(&mut self, tool: &Tool, under_way: &mut HashMap<u64, Instant>) -> anyhow::Result<()> {
        let id = self.next;
        self.next += 1;
        let mut line = tool.call(id);
        line.push('\n');
        under_way.insert(id, Instant::now());
        self.input.write_all(line.as_bytes()).context("writing to the server")
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        // Fails for a process that has exited; it still has to be reaped.
        let _ = child.kill();
        let _ = child.wait();
    }
}
