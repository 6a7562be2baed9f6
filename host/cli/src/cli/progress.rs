//! The live view on a terminal: compiling plugins, and the progress of a running tool.

use super::args::Common;
use super::output::{self, INDENT};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use palisade::events::{Envelope, Event, Subscriber};
use palisade::execution::Severity;
use palisade::plugins::{LoadObserver, LoadStep};
use palisade::tool::text::{elided, visible};
use std::collections::VecDeque;
use std::io::{self, IsTerminal as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A shorter wait shows nothing.
const PATIENCE: Duration = Duration::from_millis(300);
/// Maximum number of lines queued during a confirmation; further lines are dropped.
const MAX_HELD: usize = 1_000;
/// Maximum length of a shown log message, in characters.
const MAX_LINE: usize = 4_096;
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

/// Shows a running tool. Text of the tool is queued during a confirmation, because it could imitate
/// the question.
pub(super) struct Watching {
    bar: ProgressBar,
    detail: Detail,
    held: Mutex<Held>,
    seen: Mutex<Seen>,
}

/// The last lines of the tools' output that were shown.
#[derive(Default)]
struct Seen {
    lines: VecDeque<String>,
    bytes: usize,
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
    pub(super) fn new(detail: Detail) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{msg}") {
            bar.set_style(style);
        }
        Self { bar, detail, held: Mutex::default(), seen: Mutex::default() }
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
            Line::Output(text) => self.bar.println(format!("{INDENT}{text}")),
            Line::Log(text) => self.bar.suspend(|| output::quote(&text)),
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

impl Subscriber for Watching {
    fn receive(&self, event: &Envelope) {
        match &event.event {
            Event::OutputDelta(_, chunk) => {
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
            Event::ConfirmationRequested(..) => self.asks(),
            Event::ConfirmationResolved(..) => self.asks_no_more(),
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
        let watching = Watching::new(Detail::Usual);
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
    fn failure_repeats_no_line_that_was_shown() {
        let watching = Watching::new(Detail::Usual);
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
