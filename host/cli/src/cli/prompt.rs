//! Confirms calls on the controlling terminal, so that standard input and output stay free.

use palisade::BoxFuture;
use palisade::confirm::{Answer, ConfirmationRequest, Confirmer, Unavailable};
use palisade::tool::text::elided;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::time::{Duration, SystemTime};
use tokio::sync::oneshot::{Sender, channel};

/// Maximum number of listed paths, and maximum length of each, in characters.
const MAX_PATHS: usize = 10;
const MAX_PATH: usize = 160;
/// Maximum length of a plugin's name, in characters: a file name is arbitrary text.
const MAX_PLUGIN: usize = 80;
/// Maximum length of an answer, in bytes.
const MAX_ANSWER: usize = 64;
/// The poll interval for a withdrawn question.
const LOOK: Duration = Duration::from_millis(50);

/// The controlling terminal. Questions are asked one after the other.
#[derive(Default)]
pub(super) struct Terminal {
    turn: tokio::sync::Mutex<()>,
}

impl Confirmer for Terminal {
    fn confirm<'a>(
        &'a self,
        request: &'a ConfirmationRequest,
    ) -> BoxFuture<'a, Result<Answer, Unavailable>> {
        Box::pin(async move {
            let (input, output) = open().map_err(|_| Unavailable)?;
            let _turn = self.turn.lock().await;
            let question = question(request);
            let (send, receive) = channel();
            // A separate thread, because reading a terminal blocks.
            let thread = std::thread::Builder::new().name("palisade-prompt".to_owned());
            let asking = thread.spawn(move || {
                let answer = ask(input, output, &question, &send);
                let _ = send.send(answer);
            });
            asking.map_err(|_| Unavailable)?;
            receive.await.ok().and_then(Result::ok).ok_or(Unavailable)
        })
    }
}

/// Returns true if there is a terminal for questions.
pub(super) fn can_ask() -> bool {
    open().is_ok()
}

fn open() -> io::Result<(File, File)> {
    let terminal = OpenOptions::new().read(true).write(true).open("/dev/tty")?;
    Ok((terminal.try_clone()?, terminal))
}

/// Discards input that was typed before the question was shown.
fn forget_what_was_typed(terminal: &File) -> io::Result<()> {
    Ok(rustix::termios::tcflush(terminal, rustix::termios::QueueSelector::IFlush)?)
}

/// Asks the question. Any answer but a clear yes denies.
fn ask(
    mut input: File,
    mut output: File,
    question: &str,
    asked: &Sender<io::Result<Answer>>,
) -> io::Result<Answer> {
    forget_what_was_typed(&input)?;
    output.write_all(question.as_bytes())?;
    output.flush()?;
    if !wait_for_input(&input, || asked.is_closed())? {
        output.write_all(b"\n(no longer asked)\n")?;
        return Ok(Answer::Deny);
    }
    // A terminal in canonical mode returns one line per read.
    let mut line = [0; MAX_ANSWER];
    let length = input.read(&mut line)?;
    Ok(answer(line.get(..length).unwrap_or_default()))
}

/// Returns true if input arrives before the question is withdrawn.
fn wait_for_input(input: &File, is_withdrawn: impl Fn() -> bool) -> io::Result<bool> {
    use rustix::event::{PollFd, PollFlags, poll};
    let look = rustix::event::Timespec { tv_sec: 0, tv_nsec: LOOK.subsec_nanos().into() };
    while !is_withdrawn() {
        match poll(&mut [PollFd::new(input, PollFlags::IN)], Some(&look)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            ready => return Ok(ready.map(|_| !is_withdrawn())?),
        }
    }
    Ok(false)
}

/// Parses an answer. A truncated line denies.
fn answer(line: &[u8]) -> Answer {
    let text =
        std::str::from_utf8(line).ok().and_then(|line| line.strip_suffix('\n')).unwrap_or_default();
    match text.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Answer::Allow,
        "a" | "always" => Answer::Always,
        _ => Answer::Deny,
    }
}

fn question(request: &ConfirmationRequest) -> String {
    let mut text = format!(
        "\n{} wants to run (class {})\n  input: {}\n",
        request.tool, request.side_effects, request.input_summary
    );
    for path in request.projected_modifications.iter().take(MAX_PATHS) {
        // On one line and quoted: a path is text of the model and could otherwise imitate the
        // question.
        text.push_str(&format!("  would change: `{}`\n", elided(path, MAX_PATH)));
    }
    let more = request.projected_modifications.len().saturating_sub(MAX_PATHS);
    if more > 0 {
        text.push_str(&format!("  and {more} more\n"));
    }
    if let (Some(plugin), Some(digest)) = (&request.plugin, &request.digest) {
        text.push_str(&format!("  plugin: {} ({digest})\n", elided(plugin, MAX_PLUGIN)));
    }
    // The time left, because earlier questions may have used up some of it.
    let left = request.expires.duration_since(SystemTime::now()).unwrap_or_default();
    let time = humantime::format_duration(Duration::from_secs(left.as_secs().max(1)));
    text.push_str(&format!(
        "  without an answer it is refused after {time}; `a` allows this tool until palisade ends\n"
    ));
    text + "Allow this call? [y]es, [N]o, [a]lways: "
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_is_a_yes() {
        for yes in ["y\n", "Yes\n", " y \r\n"] {
            assert_eq!(answer(yes.as_bytes()), Answer::Allow, "{yes:?}");
        }
        assert_eq!(answer(b"a\n"), Answer::Always);
        assert_eq!(answer(b"ALWAYS\n"), Answer::Always);
        for no in ["\n", "", "y", "always", "n\n", "yy\n", "yes please\n", "\u{7f}y\n"] {
            assert_eq!(answer(no.as_bytes()), Answer::Deny, "{no:?}");
        }
        assert_eq!(answer(b"\xffy\n"), Answer::Deny);
    }
}
