//! The report of doctor, which prints each check as soon as its result is known.

use crate::cli::exit::{Exit, Failure};
use crate::cli::output::{self, Cell};
use serde_json::{Value, json};

/// Column widths of the state and the name of a check, in characters. Fixed, because a line is
/// printed before the following ones are known.
const WIDTHS: [usize; 2] = [4, 15];

/// The result of one check.
pub(super) struct Check {
    pub(super) name: &'static str,
    pub(super) state: State,
    pub(super) found: String,
    pub(super) advice: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Good,
    /// Works, but with a restriction or more slowly.
    Fair,
    /// A call would fail with this exit code.
    Bad(Exit),
}

impl State {
    fn as_str(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Fair => "note",
            Self::Bad(_) => "bad",
        }
    }
}

/// The output format.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// One line per check, printed at once.
    Lines,
    /// One JSON value, printed at the end.
    Json,
}

/// The checks made so far.
pub(super) struct Report {
    form: Form,
    checks: Vec<Check>,
}

impl Report {
    pub(super) fn new(form: Form) -> Self {
        Self { form, checks: Vec::new() }
    }

    /// Adds a check, and prints it in the line format.
    pub(super) fn add(&mut self, check: Check) -> Result<(), Failure> {
        if self.form == Form::Lines {
            output::text(&output::table(&rows(&check)))?;
        }
        self.checks.push(check);
        Ok(())
    }

    /// Prints the JSON report if asked for, and returns the exit code.
    pub(super) fn finish(self) -> Result<Exit, Failure> {
        if self.form == Form::Json {
            output::json(&json!({"checks": self.checks.iter().map(as_json).collect::<Vec<_>>()}))?;
        }
        Ok(exit(&self.checks))
    }
}

/// Returns the exit code of the most basic problem, as a call would: first a machine that cannot
/// run anything, then a wrong setting, then a limit, then an invalid plugin.
fn exit(checks: &[Check]) -> Exit {
    let found: Vec<Exit> = checks.iter().filter_map(Check::exit).collect();
    let ranked = [Exit::Internal, Exit::Usage, Exit::Limit, Exit::Invalid];
    ranked.into_iter().find(|exit| found.contains(exit)).unwrap_or(Exit::Ok)
}

impl Check {
    fn exit(&self) -> Option<Exit> {
        match self.state {
            State::Bad(exit) => Some(exit),
            State::Good | State::Fair => None,
        }
    }
}

/// Returns the rows of a check: one for each line of what was found. The advice follows a single
/// line, and stands below several.
fn rows(check: &Check) -> Vec<Vec<Cell>> {
    let advice =
        if check.state == State::Good { String::new() } else { format!("→ {}", check.advice) };
    let mut lines: Vec<String> = check.found.trim_end().lines().map(str::to_owned).collect();
    match &mut lines[..] {
        [only] if !advice.is_empty() => *only = format!("{only} {advice}"),
        _ => lines.push(advice),
    }
    let [state, name] = WIDTHS;
    let row = |(index, line): (usize, String)| {
        let (is, of) = if index == 0 { (check.state.as_str(), check.name) } else { ("", "") };
        vec![format!("{is:state$}").into(), format!("{of:name$}").into(), Cell::sentence(line)]
    };
    lines.into_iter().enumerate().filter(|(_, line)| !line.is_empty()).map(row).collect()
}

fn as_json(check: &Check) -> Value {
    let advice = (check.state != State::Good).then_some(check.advice);
    json!({"name": check.name, "state": check.state.as_str(), "found": check.found, "advice": advice})
}
