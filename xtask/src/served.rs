//! A server process under test, which is killed when its handle is dropped.

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

/// The transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    Stdio,
    Http,
}

impl Transport {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http => "HTTP",
        }
    }
}

/// The text that precedes the URL in the output of `palisade serve`.
const SERVING: &str = "serving MCP on ";
/// The timeout for printing the URL, including the compilation of plugins by an unoptimised build
/// on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);
/// The poll interval.
const PAUSE: Duration = Duration::from_millis(20);

/// A server that runs until it is stopped or dropped.
pub(crate) struct Served {
    child: Child,
    url: String,
    log: PathBuf,
}

/// Returns a program with an environment that only has the search paths.
pub(crate) fn bare(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().envs(
        ["PATH", "LD_LIBRARY_PATH"].iter().filter_map(|name| Some((name, env::var_os(name)?))),
    );
    command
}

impl Served {
    /// Starts `palisade serve --http` and waits until it prints its URL. Its output goes to the
    /// log.
    pub(crate) fn start(mut command: Command, log: PathBuf) -> anyhow::Result<Self> {
        let file = File::create(&log).with_context(|| format!("creating {}", log.display()))?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().context("starting the server")?;
        let stderr = child.stderr.take().context("the server has no standard error")?;
        // From here on, dropping the value kills the process.
        let mut server = Self { child, url: String::new(), log };
        let (urls, received) = mpsc::channel();
        thread::spawn(move || copy_output(stderr, file, &urls));
        match received.recv_timeout(PATIENCE) {
            Ok(url) => server.url = url,
            Err(_) => bail!("the server did not print `{SERVING}…`, but:\n{}", server.output()),
        }
        Ok(server)
    }

    /// Starts a program with a given port and waits until it listens. Its output goes to the log.
    pub(crate) fn at(
        mut command: Command,
        address: SocketAddr,
        log: PathBuf,
    ) -> anyhow::Result<Self> {
        let file = File::create(&log).with_context(|| format!("creating {}", log.display()))?;
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        let child = command.spawn().context("starting the server")?;
        let mut server = Self { child, url: format!("http://{address}/mcp"), log };
        let begun = Instant::now();
        while TcpStream::connect(address).is_err() {
            let ended = server.child.try_wait().context("polling the server")?;
            ensure!(
                ended.is_none() && begun.elapsed() < PATIENCE,
                "the server does not listen on {address}, but printed:\n{}",
                server.output()
            );
            thread::sleep(PAUSE);
        }
        Ok(server)
    }

    /// Returns the URL.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Returns the process ID.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Stops the server. Fails if it had exited before, or panicked.
    pub(crate) fn stop(mut self) -> anyhow::Result<()> {
        let ended = self.child.try_wait().context("polling the server")?;
        let words = self.output();
        ensure!(ended.is_none(), "the server exited during the test; its output:\n{words}");
        ensure!(!words.contains("panicked at"), "the server panicked during the test:\n{words}");
        Ok(())
    }

    fn output(&self) -> String {
        let words = fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&words).into_owned()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // Fails for a process that has exited; it still has to be reaped.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Copies the server's output to its log until the end, so that the server never blocks on the
/// pipe, and sends the URL.
fn copy_output(output: impl Read, mut log: File, urls: &Sender<String>) {
    for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        // Continue reading even if the log cannot be written.
        let _ = writeln!(log, "{line}");
        if let Some(url) = line.strip_prefix(SERVING) {
            let _ = urls.send(url.trim().to_owned());
        }
    }
}

/// Waits for the end of a program. Kills it at the timeout, and then returns `None`.
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
    fn server_output_is_kept_and_its_address_read() {
        let output =
            "a plugin was refused\nserving MCP on http://127.0.0.1:4711/mcp\n\u{fffd}more\n";
        let (urls, received) = mpsc::channel();
        let directory = tempfile::tempdir().expect("a directory");
        let log = directory.path().join("log");
        copy_output(output.as_bytes(), File::create(&log).expect("a file"), &urls);
        assert_eq!(received.try_recv().expect("an address"), "http://127.0.0.1:4711/mcp");
        assert_eq!(fs::read_to_string(&log).expect("a log"), output);
    }
}
