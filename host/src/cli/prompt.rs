//! Asking on the controlling terminal, so that standard input and output stay free.

use crate::confirm::{Answer, ConfirmationRequest, Confirmer, NobodyToAsk};
use crate::execution::BoxFuture;
use crate::tool::text::elided;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Write as _};

/// How many paths a question lists, and how much of each it shows, in characters.
const MAX_PATHS: usize = 10;
const MAX_PATH: usize = 160;

/// The terminal of whoever started the program.
pub(super) struct Terminal;

impl Confirmer for Terminal {
    fn confirm<'a>(&'a self, request: &'a ConfirmationRequest) -> BoxFuture<'a, Result<Answer, NobodyToAsk>> {
        let question = question(request);
        Box::pin(async move {
            let terminal = open().map_err(|_| NobodyToAsk)?;
            let (send, receive) = tokio::sync::oneshot::channel();
            // A thread of its own: reading a terminal blocks, and nothing else may wait for it.
            std::thread::spawn(move || send.send(ask(terminal, &question)));
            receive.await.ok().and_then(Result::ok).ok_or(NobodyToAsk)
        })
    }
}

#[cfg(unix)]
fn open() -> io::Result<(File, File)> {
    let terminal = OpenOptions::new().read(true).write(true).open("/dev/tty")?;
    Ok((terminal.try_clone()?, terminal))
}

#[cfg(windows)]
fn open() -> io::Result<(File, File)> {
    Ok((OpenOptions::new().read(true).open("CONIN$")?, OpenOptions::new().write(true).open("CONOUT$")?))
}

/// Anything but a clear yes is a no.
fn ask((input, mut output): (File, File), question: &str) -> io::Result<Answer> {
    output.write_all(question.as_bytes())?;
    output.flush()?;
    let mut line = String::new();
    BufReader::new(io::Read::take(input, 64)).read_line(&mut line)?;
    // An answer that was cut off is not an answer.
    let yes = line.ends_with('\n') && matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes");
    Ok(if yes { Answer::Allow } else { Answer::Deny })
}

fn question(request: &ConfirmationRequest) -> String {
    let mut text = format!(
        "\n{} wants to run (class {})\n  input: {}\n",
        request.tool, request.side_effects, request.input_summary
    );
    for path in request.projected_modifications.iter().take(MAX_PATHS) {
        // On one line and quoted: a path is the model's text, and could otherwise speak in the name of the question.
        text.push_str(&format!("  would change: `{}`\n", elided(path, MAX_PATH)));
    }
    let more = request.projected_modifications.len().saturating_sub(MAX_PATHS);
    if more > 0 {
        text.push_str(&format!("  and {more} more\n"));
    }
    if let Some(digest) = &request.digest {
        text.push_str(&format!("  plugin: {digest}\n"));
    }
    text + "Allow this call? [y/N] "
}
