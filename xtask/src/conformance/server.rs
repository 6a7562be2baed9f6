//! The server that is tried: the program, in an environment of its own.

use super::stage::Stage;
use anyhow::{Context as _, bail, ensure};
use std::env;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;

/// What the server says before its address.
const SERVING: &str = "serving MCP on ";
/// How long it may take to say so, and the program to compile its plugins: an unoptimised build on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Any port, and told when plugins come and go. Nothing is allowed beyond what is anyway: the fixture's tools are of the classes `none` and `read`.
const SERVE: [&str; 4] = ["serve", "--http", "127.0.0.1:0", "--watch"];

/// A server that runs until it is stopped or dropped.
pub(super) struct Server {
    child: Child,
    url: String,
    stage: Stage,
}

/// Compiles both plugins, so that no scenario waits for a compiler, looks that the fixture is accepted, and puts the visitor aside.
pub(super) fn warm(program: &Path, stage: &Stage) -> anyhow::Result<()> {
    let output = palisade(program, stage, &["list"]).output().context("running the program")?;
    let (listed, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let is_there = output.status.success() && listed.contains("test_simple_text");
    ensure!(is_there, "`palisade list` does not accept the fixture:\n{listed}{said}");
    stage.move_visitor()
}

/// The program with what every verb takes, and with nothing of the machine's but the way to other programs.
fn palisade(program: &Path, stage: &Stage, words: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.env_clear().envs(["PATH", "LD_LIBRARY_PATH"].iter().filter_map(|name| Some((name, env::var_os(name)?))));
    command.env("HOME", stage.home()).env("PALISADE_CACHE", stage.cache()).args(words).arg("--no-builtin");
    command.arg("--plugins").arg(stage.plugins()).arg("--workspace").arg(stage.workspace());
    command.current_dir(stage.workspace()).stdin(Stdio::null());
    command
}

impl Server {
    /// Starts it, and waits until it says where it serves.
    pub(super) fn start(program: &Path, stage: &Stage) -> anyhow::Result<Self> {
        let log = stage.log("server");
        let file = File::create(&log).with_context(|| format!("creating {}", log.display()))?;
        let mut command = palisade(program, stage, &SERVE);
        command.arg("--events").arg(stage.events()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().context("starting the server")?;
        let said = child.stderr.take().context("the server has no standard error")?;
        // From here on dropping it ends the program.
        let mut server = Self { child, url: String::new(), stage: stage.clone() };
        let (told, heard) = mpsc::channel();
        thread::spawn(move || keep(said, file, &told));
        match heard.recv_timeout(PATIENCE) {
            Ok(url) => server.url = url,
            Err(_) => bail!("the server does not say `{SERVING}…`, but:\n{}", server.words()),
        }
        Ok(server)
    }

    /// Where it serves.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Ends it, and says whether it had ended before, or panicked.
    pub(super) fn stop(mut self) -> anyhow::Result<()> {
        let ended = self.child.try_wait().context("looking after the server")?;
        ensure!(ended.is_none(), "the server ended while it was tried, having said:\n{}", self.words());
        let words = self.words();
        ensure!(!words.contains("panicked at"), "the server panicked while it was tried:\n{words}");
        Ok(())
    }

    fn words(&self) -> String {
        fs::read_to_string(self.stage.log("server")).unwrap_or_default()
    }
}

impl Drop for Server {
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
