//! A program that serves while it is tried, and ends with whoever has started it.

use anyhow::{Context as _, bail, ensure};
use std::env;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::{Duration, Instant};

/// How a server is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Lines,
    Http,
}

impl Way {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Lines => "stdio",
            Self::Http => "HTTP",
        }
    }
}

/// What `palisade serve` says before its address.
const SERVING: &str = "serving MCP on ";
/// How long it may take to say so, and the program to compile its plugins: an unoptimised build on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);
/// How often something is looked at that says nothing by itself.
const PAUSE: Duration = Duration::from_millis(20);

/// A server that runs until it is stopped or dropped.
pub(crate) struct Served {
    child: Child,
    url: String,
    log: PathBuf,
}

/// A program with nothing of the machine's but the way to other programs.
pub(crate) fn bare(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().envs(["PATH", "LD_LIBRARY_PATH"].iter().filter_map(|name| Some((name, env::var_os(name)?))));
    command
}

impl Served {
    /// Starts `palisade serve --http`, and waits until it says where it serves. What it says goes to the log.
    pub(crate) fn start(mut command: Command, log: PathBuf) -> anyhow::Result<Self> {
        let file = File::create(&log).with_context(|| format!("creating {}", log.display()))?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().context("starting the server")?;
        let said = child.stderr.take().context("the server has no standard error")?;
        // From here on dropping it ends the program.
        let mut server = Self { child, url: String::new(), log };
        let (told, heard) = mpsc::channel();
        thread::spawn(move || keep(said, file, &told));
        match heard.recv_timeout(PATIENCE) {
            Ok(url) => server.url = url,
            Err(_) => bail!("the server does not say `{SERVING}…`, but:\n{}", server.words()),
        }
        Ok(server)
    }

    /// Starts a program that was told its port, and waits until it listens there. What it says goes to the log.
    pub(crate) fn at(mut command: Command, address: SocketAddr, log: PathBuf) -> anyhow::Result<Self> {
        let file = File::create(&log).with_context(|| format!("creating {}", log.display()))?;
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        let child = command.spawn().context("starting the server")?;
        let mut server = Self { child, url: format!("http://{address}/mcp"), log };
        let begun = Instant::now();
        while TcpStream::connect(address).is_err() {
            let ended = server.child.try_wait().context("looking after the server")?;
            ensure!(
                ended.is_none() && begun.elapsed() < PATIENCE,
                "the server does not listen on {address}, but says:\n{}",
                server.words()
            );
            thread::sleep(PAUSE);
        }
        Ok(server)
    }

    /// Where it serves.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The id of its process.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Ends it, and says whether it had ended before, or panicked.
    pub(crate) fn stop(mut self) -> anyhow::Result<()> {
        let ended = self.child.try_wait().context("looking after the server")?;
        let words = self.words();
        ensure!(ended.is_none(), "the server ended while it was tried, having said:\n{words}");
        ensure!(!words.contains("panicked at"), "the server panicked while it was tried:\n{words}");
        Ok(())
    }

    fn words(&self) -> String {
        let words = fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&words).into_owned()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // One that has ended already cannot be ended; it is waited for all the same.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Writes what the server says to its log, to the end, so that it never waits for a reader; the address is told as well.
fn keep(said: impl Read, mut log: File, told: &Sender<String>) {
    for line in BufReader::new(said).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        // A log that cannot be written to is no reason to stop reading.
        let _ = writeln!(log, "{line}");
        if let Some(url) = line.strip_prefix(SERVING) {
            let _ = told.send(url.trim().to_owned());
        }
    }
}

/// Waits for the end of a program, and ends one that takes longer than this; `None` then.
pub(crate) fn finish(child: &mut Child, patience: Duration) -> anyhow::Result<Option<ExitStatus>> {
    let begun = Instant::now();
    while begun.elapsed() < patience {
        if let Some(ended) = child.try_wait().context("waiting for a program")? {
            return Ok(Some(ended));
        }
        thread::sleep(PAUSE);
    }
    child.kill().and_then(|()| child.wait()).context("ending a program")?;
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_server_says_is_kept_and_its_address_is_told() {
        let said = "a plugin was refused\nserving MCP on http://127.0.0.1:4711/mcp\n\u{fffd}more\n";
        let (told, heard) = mpsc::channel();
        let directory = tempfile::tempdir().expect("a directory");
        let log = directory.path().join("log");
        keep(said.as_bytes(), File::create(&log).expect("a file"), &told);
        assert_eq!(heard.try_recv().expect("an address"), "http://127.0.0.1:4711/mcp");
        assert_eq!(fs::read_to_string(&log).expect("a log"), said);
    }
}
