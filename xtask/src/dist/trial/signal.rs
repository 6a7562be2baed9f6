//! Ends a server through the launcher of npm by a signal, as the client of a server does.

use anyhow::{Context as _, bail, ensure};
use palisade_wasip2::command::{run, scrubbed};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// The request of a client that has just started the server.
const INITIALIZE: &str = concat!(
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","#,
    r#""capabilities":{},"clientInfo":{"name":"trial","version":"0"}}}"#
);

/// How long the server may take, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Checks that a signal to the launcher ends the server as well.
pub(super) fn ends(mut launcher: Command) -> anyhow::Result<()> {
    launcher.arg("serve").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut running = launcher.spawn().context("starting the launcher")?;
    // Open until the end: the server also ends at the end of its input.
    let mut input = running.stdin.take().context("no standard input")?;
    let output = BufReader::new(running.stdout.take().context("no standard output")?);
    let (lines, received) = mpsc::channel();
    thread::spawn(move || {
        for line in output.lines().map_while(Result::ok) {
            let _ = lines.send(line);
        }
    });
    writeln!(input, "{INITIALIZE}")?;
    let answer = received.recv_timeout(PATIENCE).context("the server does not answer")?;
    ensure!(answer.contains("serverInfo"), "the server says {answer}");
    run(scrubbed("kill").args(["-TERM", &running.id().to_string()]), "ending the launcher")?;
    // The output is open as long as one of the two processes runs.
    loop {
        match received.recv_timeout(PATIENCE) {
            Ok(_) => {}
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                running.kill()?;
                bail!("the server has outlived its launcher");
            }
        }
    }
    running.wait()?;
    Ok(())
}
