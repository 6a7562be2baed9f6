//! Confirms calls on the controlling terminal, so that standard input and output stay free.

mod question;
mod standing_rule;
mod terminal_lock;
mod yes_or_no;

pub(super) use standing_rule::StandingRules;
pub(super) use yes_or_no::{YesNo, yes_or_no};

use palisade::confirm::{Answer, ConfirmationRequest, Confirmer, Unavailable};
use palisade::tool::text::visible;
use palisade::{BoxFuture, Host};
use palisade_server::file_changes;
use question::{LaterCalls, Offers, Reading, Reply, question, read};
use serde_json::Value;
use standing_rule::{RuleError, StandingRule};
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::future::poll_fn;
use std::io::{self, Write as _};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::task::{Poll, ready};
use std::time::Duration;
use terminal_lock::TerminalLock;
use tokio::sync::MutexGuard;
use tokio::sync::oneshot::{Sender, channel};

/// The poll interval for a withdrawn question.
const LOOK: Duration = Duration::from_millis(50);

/// The controlling terminal. Questions are asked one after the other, also those of other programs.
#[derive(Default)]
pub(super) struct Terminal {
    turn: tokio::sync::Mutex<()>,
    rules: OnceLock<StandingRules>,
    /// The host whose calls are confirmed; it owns this confirmer.
    host: OnceLock<Weak<Host>>,
    /// The number of calls of each tool that may still ask.
    expected: Mutex<HashMap<String, usize>>,
}

impl Terminal {
    /// Creates the confirmer of a run that calls these tools, each as often as it is named.
    pub(super) fn of_calls(tools: &[&str]) -> Self {
        let mut expected = HashMap::new();
        tools.iter().for_each(|tool| *expected.entry((*tool).to_owned()).or_default() += 1);
        Self { expected: Mutex::new(expected), ..Self::default() }
    }

    /// Lets the person at the terminal allow a tool for good, by a rule in their own file.
    pub(super) fn offer(&self, rules: StandingRules) {
        // Set once, before the first call.
        let _ = self.rules.set(rules);
    }

    /// Shows the changes of files with their differences, in the workspace of this host.
    pub(super) fn show_changes(&self, host: &Arc<Host>) {
        let _ = self.host.set(Arc::downgrade(host));
    }

    /// Returns the answers that have an effect besides yes and no. Called once for each question.
    fn offers(&self, request: &ConfirmationRequest) -> Offers {
        let mut expected = self.expected.lock().unwrap_or_else(PoisonError::into_inner);
        let later_calls = match expected.get_mut(&request.tool) {
            Some(calls) if *calls > 1 => {
                *calls -= 1;
                LaterCalls::Possible
            }
            // A program may make many calls.
            _ if request.called_by.is_some() => LaterCalls::Possible,
            _ => LaterCalls::None,
        };
        Offers { later_calls, rule: self.rules.get().and_then(|rules| rules.of(request)) }
    }

    /// Asks when the earlier questions are answered. Returns the turn as well, which the next
    /// question waits for.
    async fn ask_in_turn(
        &self,
        request: &ConfirmationRequest,
    ) -> Result<(Answer, MutexGuard<'_, ()>), Unavailable> {
        let (input, mut output) = open().map_err(|_| Unavailable)?;
        let turn = self.turn.lock().await;
        // The dispatcher drops this future now if the answer to an earlier question allows the
        // call.
        tokio::task::yield_now().await;
        let offers = self.offers(request);
        let columns = super::wrap::columns(&output);
        let (request, host) = (request.clone(), self.host.get().and_then(Weak::upgrade));
        let (send, receive) = channel();
        // A separate thread, because reading a terminal blocks, and so does reading files.
        let thread = std::thread::Builder::new().name("palisade-prompt".to_owned());
        let asking = thread.spawn(move || {
            stop_in_background(&input);
            let waited = TerminalLock::wait(&mut output, || send.is_closed());
            let Some(_lock) = waited else { return };
            let question = question(&request, &changes(host, &request), &offers, columns);
            let dialogue = Dialogue { input, output, offers, columns };
            let answer = dialogue.ask(&question, &send);
            let _ = send.send(answer);
        });
        asking.map_err(|_| Unavailable)?;
        let answer = receive.await.ok().and_then(Result::ok).ok_or(Unavailable)?;
        Ok((answer, turn))
    }
}

impl Confirmer for Terminal {
    fn confirm<'a>(
        &'a self,
        request: &'a ConfirmationRequest,
    ) -> BoxFuture<'a, Result<Answer, Unavailable>> {
        let mut asking = Box::pin(self.ask_in_turn(request));
        let mut kept_turn = None;
        Box::pin(poll_fn(move |cx| {
            let (answer, turn) = ready!(asking.as_mut().poll(cx))?;
            // Until this future is dropped, the dispatcher may still have to record the answer.
            drop(kept_turn.replace(turn));
            Poll::Ready(Ok(answer))
        }))
    }
}

/// Returns the files that a call would change, as the API describes them.
fn changes(host: Option<Arc<Host>>, request: &ConfirmationRequest) -> Vec<Value> {
    let Some(host) = host else { return Vec::new() };
    let files = file_changes(&host, Some(host.workspace().as_ref()), request);
    files.iter().filter_map(|file| serde_json::to_value(file).ok()).collect()
}

/// Returns true if there is a terminal for questions.
pub(super) fn can_ask() -> bool {
    open().is_ok()
}

/// Returns the width of the terminal for questions.
pub(super) fn columns() -> usize {
    open().map_or(usize::MAX, |(_, output)| super::wrap::columns(&output))
}

fn open() -> io::Result<(File, File)> {
    let terminal = OpenOptions::new().read(true).write(true).open("/dev/tty")?;
    Ok((terminal.try_clone()?, terminal))
}

/// Discards input that was typed before the question was shown.
fn forget_what_was_typed(terminal: &File) -> io::Result<()> {
    Ok(rustix::termios::tcflush(terminal, rustix::termios::QueueSelector::IFlush)?)
}

/// Stops a job in the background until it is in the foreground, as its question would, but before
/// it holds the terminal's lock. The typed answer to a question in the foreground stays.
fn stop_in_background(terminal: &File) {
    if rustix::termios::tcgetpgrp(terminal).is_ok_and(|group| group != rustix::process::getpgrp()) {
        // The signal of the kernel (SIGTTOU) stops the job.
        let _ = forget_what_was_typed(terminal);
    }
}

/// One question at the terminal, until it is answered or withdrawn.
struct Dialogue {
    input: File,
    output: File,
    offers: Offers,
    /// The width of the terminal.
    columns: usize,
}

impl Dialogue {
    /// Asks until the answer is one of the offered ones, or the input ends.
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
            match read(&mut self.input, &self.offers)? {
                Reading::Reply(reply) => return self.settle(reply),
                Reading::End => {
                    self.output.write_all(b"\n")?;
                    return Ok(Answer::None);
                }
                Reading::Unclear => text = self.offers.again(self.columns),
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
                let written = self.offers.rule.as_ref().map(StandingRule::write);
                let (told, answer) = written.map_or((String::new(), Answer::Always), said);
                self.output.write_all(format!("{}\n", visible(&told)).as_bytes())?;
                answer
            }
        })
    }
}

/// Returns the words about a rule, and the answer that stands for *always*. If another process
/// holds the file, only this call is allowed: the person can answer the next question again.
fn said(written: Result<String, RuleError>) -> (String, Answer) {
    match written {
        Ok(told) => (told, Answer::Always),
        Err(error @ RuleError::Busy { .. }) => (
            format!("the rule was not written, and only this call is allowed: {error}"),
            Answer::Allow,
        ),
        Err(error) => (
            format!("the rule was not written, and this run allows the tool: {error}"),
            Answer::Always,
        ),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_that_is_not_written_because_of_another_process_allows_one_call() {
        let (told, answer) = said(Err(RuleError::Busy { path: "/home/a/palisade.toml".into() }));
        assert_eq!(answer, Answer::Allow);
        assert!(told.contains("only this call") && told.contains("palisade.toml"), "{told}");
        let (told, answer) = said(Ok("added".to_owned()));
        assert_eq!((told.as_str(), answer), ("added", Answer::Always));
    }
}
