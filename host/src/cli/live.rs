//! What moves on a terminal while one waits: plugins that compile, and a tool's own progress.

use crate::events::{Envelope, Event, Subscriber};
use crate::execution::Severity;
use crate::plugins::{LoadObserver, LoadStep};
use crate::tool::text::{elided, visible};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A wait shorter than this shows nothing.
const PATIENCE: Duration = Duration::from_millis(300);

/// The bar over compiling plugins.
pub(super) struct Loading;

impl Loading {
    /// Shows a bar once loading takes long enough to wonder. indicatif draws on terminals only.
    pub(super) fn observer() -> LoadObserver {
        let (bar, start) = (ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::hidden()), Instant::now());
        if let Ok(style) = ProgressStyle::with_template("compiling plugins {pos}/{len} {bar:24} {msg}") {
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
        })
    }
}

/// How much a person wants to see of a running tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Detail {
    /// Progress and emitted text.
    Usual,
    /// Its log as well.
    Verbose,
}

/// Shows a running tool.
pub(super) struct Watching {
    bar: ProgressBar,
    detail: Detail,
}

impl Watching {
    pub(super) fn new(detail: Detail) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{msg}") {
            bar.set_style(style);
        }
        Self { bar, detail }
    }

    fn line(&self, text: &str) {
        text.lines().for_each(|line| self.bar.println(visible(line)));
    }
}

impl Subscriber for Watching {
    fn receive(&self, event: &Envelope) {
        match &event.event {
            Event::OutputDelta(_, chunk) => self.line(chunk),
            Event::Progress(_, progress) => {
                let of = progress.total.map(|total| format!(" of {total}")).unwrap_or_default();
                let message = progress.message.as_deref().map(|text| elided(text, 60)).unwrap_or_default();
                self.bar.set_message(format!("{}{of} {message}", progress.done));
            }
            Event::Log(_, severity, message) if self.detail == Detail::Verbose || *severity >= Severity::Warn => {
                self.bar.suspend(|| super::output::note(&format!("{}: {message}", severity.as_str())));
            }
            // The bar would be drawn over the question.
            Event::ConfirmationRequested(..) => self.bar.set_draw_target(ProgressDrawTarget::hidden()),
            Event::ConfirmationResolved(..) => self.bar.set_draw_target(ProgressDrawTarget::stderr()),
            event if event.is_terminal() => self.bar.finish_and_clear(),
            _ => {}
        }
    }
}
