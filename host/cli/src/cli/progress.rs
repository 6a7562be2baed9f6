//! The live view on a terminal: compiling plugins, and the progress of a running tool.

use super::args::Common;
use super::log_output::LossyOutput;
use super::output;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use palisade::events::{Envelope, Event, Subscriber};
use palisade::execution::Severity;
use palisade::plugins::{LoadObserver, LoadStep};
use palisade::tool::text::{cut, elided, visible};
use std::collections::VecDeque;
use std::io::{self, IsTerminal as _, Stderr, Write as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A shorter wait shows nothing.
const PATIENCE: Duration = Duration::from_millis(300);
/// Maximum number of lines queued during a confirmation; further lines are dropped.
const MAX_HELD: usize = 1_000;
/// Maximum length of a shown log message, in characters.
const MAX_LINE: usize = 4_096;
/// Maximum size of the remembered text from its beginning, in bytes: as much as a tool can emit.
const MAX_EMITTED: usize = 1 << 20;
/// Maximum size of the remembered output of tools, in bytes: as much as a failure message holds.
const MAX_SEEN: usize = 32 << 10;

/// The progress bar for compiling plugins.
pub(super) struct Loading;

impl Loading {
    /// Shows a bar once loading takes longer than [`PATIENCE`]. indicatif draws on terminals only.
    pub(super) fn observer() -> LoadObserver {
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::hidden());
        let start = Instant::now();
        if let Ok(style) =
            ProgressStyle::with_template("compiling plugins {pos}/{len} {bar:24} {msg}")
        {
            bar.set_style(style);
        }
        Arc::new(move |step| match step {
            LoadStep::Start(count) => bar.set_length(count as u64),
            LoadStep::Done(name) => {
                if bar.is_hidden() && start.elapsed() > PATIENCE {
                    bar.set_draw_target(ProgressDrawTarget::stderr());
                }
                bar.set_message(elided(name, 40));
                bar.inc(1);
            }
            LoadStep::End => bar.finish_and_clear(),
            _ => {}
        })
    }
}

/// Returns true if standard error is a terminal that can show progress.
pub(super) fn shows() -> bool {
    !ProgressDrawTarget::stderr().is_hidden()
}

/// Returns true if running tools are watched: on a terminal, or with `--verbose`.
pub(super) fn watches(common: &Common) -> bool {
    common.verbose || io::stderr().is_terminal()
}

/// The level of detail shown of a running tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Detail {
    /// Progress and emitted text.
    Usual,
    /// Progress, emitted text and the log.
    Verbose,
}

/// The program that runs the tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// A program that asks at its terminal.
    Call,
    /// A server, which asks elsewhere.
    Server,
}

/// The treatment of the text that a running tool emits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Emitted {
    /// It is shown.
    Shown,
    /// It is not: the JSON that the same terminal shows afterwards has it.
    Ignored,
}

/// Shows a running tool. Text of the tool is queued during a confirmation, because it could imitate
/// the question.
pub(super) struct Watching {
    bar: ProgressBar,
    output: LossyOutput<Stderr>,
    place: Place,
    detail: Detail,
    emitted: Emitted,
    held: Mutex<Held>,
    seen: Mutex<Seen>,
}

/// The part of the tools' output that was shown.
#[derive(Default)]
struct Seen {
    /// The last lines.
    lines: VecDeque<String>,
    bytes: usize,
    /// The text from its beginning, as the tool has emitted it; at most [`MAX_EMITTED`].
    text: String,
}

impl Seen {
    fn add(&mut self, line: &str) {
        self.bytes += line.len();
        self.lines.push_back(line.to_owned());
        while self.bytes > MAX_SEEN {
            let Some(first) = self.lines.pop_front() else { return };
            self.bytes = self.bytes.saturating_sub(first.len());
        }
    }

    fn add_text(&mut self, text: &str) {
        let room = MAX_EMITTED.saturating_sub(self.text.len());
        self.text.push_str(cut(text, room));
    }
}

/// Lines queued until the last confirmation ends.
#[derive(Default)]
struct Held {
    questions: usize,
    lines: Vec<Line>,
}

/// A line for the user.
enum Line {
    /// A line of the tool's output.
    Output(String),
    /// A line of the tool's log.
    Log(String),
}

impl Watching {
    pub(super) fn new(detail: Detail, emitted: Emitted) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{msg}") {
            bar.set_style(style);
        }
        let output = LossyOutput::patient(io::stderr());
        let (held, seen) = (Mutex::default(), Mutex::default());
        Self { bar, output, place: Place::Call, detail, emitted, held, seen }
    }

    /// Shows the tools of a server: their lines, as far as standard error has room for them, and no
    /// bar, which would be drawn on the threads of calls.
    pub(super) fn served(detail: Detail) -> Self {
        let (bar, output) = (ProgressBar::hidden(), LossyOutput::new(io::stderr()));
        Self { bar, output, place: Place::Server, ..Self::new(detail, Emitted::Shown) }
    }

    /// Returns a failure message without the lines at its beginning that were shown as the tool's
    /// output. Its last line stays.
    pub(super) fn not_shown(&self, message: &str) -> String {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let lines: Vec<&str> = message.trim_end().lines().collect();
        let last = lines.len().saturating_sub(1);
        let is_new = |line: &&str| !seen.lines.iter().any(|shown| shown.as_str() == *line);
        let first = lines.iter().position(is_new).unwrap_or(last).min(last);
        lines.get(first..).unwrap_or_default().join("\n")
    }

    /// Returns an output without the whole lines at its beginning that the tool has emitted, and
    /// without those at its end, if its middle was left out. The rest is new to the terminal.
    pub(super) fn not_emitted<'o>(&self, output: &'o str) -> &'o str {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let same = common(output.bytes(), seen.text.bytes());
        let ends_line = |emitted: &str| emitted.is_empty() || emitted.starts_with(['\r', '\n']);
        if same == output.len() && seen.text.get(same..).is_some_and(ends_line) {
            return "";
        }
        let begin = output.as_bytes().get(..same).unwrap_or_default();
        match begin.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => without_end(output.get(end + 1..).unwrap_or_default(), &seen.text),
            None => output,
        }
    }

    fn say(&self, line: Line) {
        let mut held = self.held();
        if held.questions == 0 {
            self.show(line);
        } else if held.lines.len() < MAX_HELD {
            held.lines.push(line);
        }
    }

    fn show(&self, line: Line) {
        match line {
            // Without a live view the result has it.
            Line::Output(_) if !shows() => {}
            // A failed write to standard error cannot be reported anywhere else.
            Line::Output(text) | Line::Log(text) => self.bar.suspend(|| {
                let _ = self.output.clone().write_all(output::quoted(&text).as_bytes());
            }),
        }
    }

    fn asks(&self) {
        self.held().questions += 1;
        // Hide the bar, which would be drawn over the question.
        self.bar.set_draw_target(ProgressDrawTarget::hidden());
    }

    fn asks_no_more(&self) {
        let mut held = self.held();
        held.questions = held.questions.saturating_sub(1);
        if held.questions == 0 {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
            // Under the lock, so that new lines cannot overtake the queued ones.
            std::mem::take(&mut held.lines).into_iter().for_each(|line| self.show(line));
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the number of bytes at the beginning that two texts have in common.
fn common(one: impl Iterator<Item = u8>, other: impl Iterator<Item = u8>) -> usize {
    one.zip(other).take_while(|(one, other)| one == other).count()
}

/// Returns a text without the whole lines at its end with which another one ends.
fn without_end<'t>(text: &'t str, other: &str) -> &'t str {
    let same = common(text.bytes().rev(), other.bytes().rev());
    let begins_line = |of: &str| {
        let before = of.as_bytes().get(..of.len() - same).unwrap_or_default();
        before.last().is_none_or(|byte| *byte == b'\n')
    };
    let end = text.len() - same;
    if begins_line(text) && begins_line(other) {
        return text.get(..end).unwrap_or(text);
    }
    let partial = text.as_bytes().get(end..).unwrap_or_default();
    let whole = partial.iter().position(|byte| *byte == b'\n').map(|at| end + at + 1);
    whole.and_then(|end| text.get(..end)).unwrap_or(text)
}

impl Subscriber for Watching {
    fn receive(&self, event: &Envelope) {
        match &event.event {
            Event::OutputDelta(..) if self.emitted == Emitted::Ignored => {}
            Event::OutputDelta(_, chunk) => {
                self.seen.lock().unwrap_or_else(PoisonError::into_inner).add_text(chunk);
                for line in chunk.lines().map(visible) {
                    self.seen.lock().unwrap_or_else(PoisonError::into_inner).add(&line);
                    self.say(Line::Output(line));
                }
            }
            Event::Progress(_, progress) => {
                let of = progress.total.map(|total| format!(" of {total}")).unwrap_or_default();
                // A cleared bar draws nothing until it is reset, and another call may have cleared
                // it.
                if self.bar.is_finished() {
                    self.bar.reset();
                }
                let message =
                    progress.message.as_deref().map(|text| elided(text, 60)).unwrap_or_default();
                self.bar.set_message(format!("{}{of} {message}", progress.done));
            }
            Event::Log(_, severity, message)
                if self.detail == Detail::Verbose || *severity >= Severity::Warn =>
            {
                // On one line and behind its level, so that a tool's log cannot pass for the
                // program's own words.
                self.say(Line::Log(format!(
                    "{}: {}",
                    severity.as_str(),
                    elided(message, MAX_LINE)
                )));
            }
            Event::ConfirmationRequested(..) if self.place == Place::Call => self.asks(),
            Event::ConfirmationResolved(..) if self.place == Place::Call => self.asks_no_more(),
            event if event.is_terminal() => self.bar.finish_and_clear(),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_messages_wait_until_questions_end() {
        let watching = Watching::new(Detail::Usual, Emitted::Shown);
        let waiting = || watching.held().lines.len();
        watching.asks();
        watching.asks();
        (0..2 * MAX_HELD).for_each(|_| watching.say(Line::Output("Allow this call?".to_owned())));
        assert_eq!(waiting(), MAX_HELD);
        watching.asks_no_more();
        assert_eq!(waiting(), MAX_HELD, "another question still stands");
        watching.asks_no_more();
        assert_eq!(waiting(), 0);
    }

    #[test]
    fn result_repeats_nothing_that_was_emitted() {
        let watching = Watching::new(Detail::Usual, Emitted::Shown);
        let emit = |text: &str| {
            watching.seen.lock().unwrap_or_else(PoisonError::into_inner).add_text(text);
        };
        assert_eq!(watching.not_emitted("one\ntwo\n"), "one\ntwo\n");
        // A chunk may end within a line.
        ["on", "e\ntw", "o\nthree\nfour\n"].into_iter().for_each(emit);
        assert_eq!(watching.not_emitted("one\ntwo\nthree\nfour\n"), "");
        assert_eq!(watching.not_emitted("one\ntwo"), "");
        assert_eq!(watching.not_emitted("one\nt"), "t", "a part of a line is none");
        assert_eq!(watching.not_emitted("one\ntwo\nanother\n"), "another\n");
        assert_eq!(watching.not_emitted("one\n[…]\nfour\n"), "[…]\n");
        assert_eq!(watching.not_emitted("one\n[…]\nour\n"), "[…]\nour\n", "not as a line");
        assert_eq!(watching.not_emitted("one\nfive: four"), "five: four");
        assert_eq!(watching.not_emitted("two\nthree\nfour\n"), "two\nthree\nfour\n");
        assert_eq!(watching.not_emitted("né\n"), "né\n");
        emit(&"x".repeat(2 * MAX_EMITTED));
        let seen = watching.seen.lock().unwrap_or_else(PoisonError::into_inner);
        assert_eq!(seen.text.len(), MAX_EMITTED, "memory is bounded");
    }

    #[test]
    fn failure_repeats_no_line_that_was_shown() {
        let watching = Watching::new(Detail::Usual, Emitted::Shown);
        let seen = |line: &str| {
            watching.seen.lock().unwrap_or_else(PoisonError::into_inner).add(line);
        };
        assert_eq!(watching.not_shown("one\ntwo"), "one\ntwo");
        ["one", "two"].into_iter().for_each(seen);
        assert_eq!(watching.not_shown("one\ntwo\nexit code 3"), "exit code 3");
        assert_eq!(watching.not_shown("one\nnew\ntwo\n"), "new\ntwo");
        assert_eq!(watching.not_shown("one\ntwo"), "two", "a message is never empty");
        seen(&"x".repeat(MAX_SEEN));
        assert_eq!(watching.not_shown("one\ntwo\nend"), "one\ntwo\nend", "memory is bounded");
    }
}
