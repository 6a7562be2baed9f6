//! Confirms calls on the controlling terminal, so that standard input and output stay free.

mod question;
mod standing_rule;

pub(super) use standing_rule::StandingRules;

use palisade::BoxFuture;
use palisade::confirm::{Answer, ConfirmationRequest, Confirmer, Unavailable};
use palisade::tool::text::visible;
use question::{Reading, Reply, question, read};
use standing_rule::StandingRule;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::sync::OnceLock;
use std::time::Duration;
use tokio::sync::oneshot::{Sender, channel};

/// The poll interval for a withdrawn question.
const LOOK: Duration = Duration::from_millis(50);

/// The controlling terminal. Questions are asked one after the other.
#[derive(Default)]
pub(super) struct Terminal {
    turn: tokio::sync::Mutex<()>,
    rules: OnceLock<StandingRules>,
}

impl Terminal {
    /// Lets the person at the terminal allow a tool for good, by a rule in their own file.
    pub(super) fn offer(&self, rules: StandingRules) {
        // Set once, before the first call.
        let _ = self.rules.set(rules);
    }
}

impl Confirmer for Terminal {
    fn confirm<'a>(
        &'a self,
        request: &'a ConfirmationRequest,
    ) -> BoxFuture<'a, Result<Answer, Unavailable>> {
        Box::pin(async move {
            let (input, output) = open().map_err(|_| Unavailable)?;
            let _turn = self.turn.lock().await;
            let rule = self.rules.get().and_then(|rules| rules.of(request));
            let question = question(request, rule.as_ref(), super::wrap::columns(&output));
            let (send, receive) = channel();
            // A separate thread, because reading a terminal blocks.
            let thread = std::thread::Builder::new().name("palisade-prompt".to_owned());
            let asking = thread.spawn(move || {
                let dialogue = Dialogue { input, output, rule };
                let answer = dialogue.ask(&question, &send);
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

/// One question at the terminal, until it is answered or withdrawn.
struct Dialogue {
    input: File,
    output: File,
    /// The rule that the answer *always* writes, if one may be written.
    rule: Option<StandingRule>,
}

impl Dialogue {
    /// Asks until the answer is one of the offered ones. The end of the input denies.
    fn ask(mut self, question: &str, asked: &Sender<io::Result<Answer>>) -> io::Result<Answer> {
        let mut text = question.to_owned();
        loop {
            // Before each question: the rest of a mistyped or pasted answer is no answer to the
            // next one.
            forget_what_was_typed(&self.input)?;
            self.output.write_all(text.as_bytes())?;
            self.output.flush()?;
            if !wait_for_input(&self.input, || asked.is_closed())? {
                self.output.write_all(b"\n(no longer asked)\n")?;
                return Ok(Answer::Deny);
            }
            match read(&mut self.input, self.rule.is_some())? {
                Reading::Reply(reply) => return self.settle(reply),
                Reading::Unclear => text = question::again(self.rule.is_some()),
            }
        }
    }

    /// Returns the answer, and writes the rule that it asks for.
    fn settle(&mut self, reply: Reply) -> io::Result<Answer> {
        Ok(match reply {
            Reply::Yes => Answer::Allow,
            Reply::No => Answer::Deny,
            Reply::Session => Answer::Always,
            Reply::Always => {
                let told = match self.rule.as_ref().map(StandingRule::write) {
                    Some(Err(error)) => {
                        format!("the rule was not written, and this run allows the tool: {error}")
                    }
                    Some(Ok(told)) => told,
                    None => String::new(),
                };
                self.output.write_all(format!("{}\n", visible(&told)).as_bytes())?;
                Answer::Always
            }
        })
    }
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
