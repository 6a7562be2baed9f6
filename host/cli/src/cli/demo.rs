//! `palisade demo escape`: runs a hostile plugin and shows that each of its attempts is held.

mod attempts;
mod stage;

use super::args::{Demo, DemoAction, Escape};
use super::exit::{Exit, Failure};
use super::output::{self, Cell};
use super::signals::Signals;
use super::style;
use attempts::{ATTEMPTS, Attempt};
use serde_json::{Value, json};
use stage::Stage;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// The outcome of one attempt.
struct Seen {
    attempt: &'static Attempt,
    /// The mechanism that held the attempt, or the attacker's gain as an error.
    verdict: Result<String, String>,
    took: Duration,
}

pub(super) fn run(args: &Demo) -> Result<Exit, Failure> {
    let DemoAction::Escape(args) = &args.action;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let signals = Signals::watch()?;
    // Registered before the scratch directory exists, so that a signal lets the demo end and remove
    // it.
    signals.work_begins(runtime.handle().clone());
    let ended = runtime.block_on(all(&signals.told));
    signals.work_is_done();
    // A host that is still being built on a blocking thread is abandoned.
    runtime.shutdown_background();
    let (seen, took) = ended?;
    if signals.told.is_cancelled() {
        return Ok(Exit::Interrupted);
    }
    show(args, &seen, took)?;
    Ok(if seen.iter().all(Seen::is_held) { Exit::Ok } else { Exit::Internal })
}

async fn all(told: &CancellationToken) -> Result<(Vec<Seen>, Duration), Failure> {
    let mut seen = Vec::new();
    let Some(stage) = Stage::new(told).await? else { return Ok((seen, Duration::ZERO)) };
    let begun = Instant::now();
    for attempt in ATTEMPTS {
        if told.is_cancelled() {
            break;
        }
        let (verdict, took) = stage.try_out(attempt, told).await;
        seen.push(Seen { attempt, verdict, took });
    }
    Ok((seen, begun.elapsed()))
}

impl Seen {
    fn is_held(&self) -> bool {
        self.verdict.is_ok()
    }

    fn said(&self) -> &str {
        self.verdict.as_ref().map_or_else(String::as_str, String::as_str)
    }

    fn row(&self) -> Vec<Cell> {
        let word = if self.is_held() { "held" } else { "OUT" };
        let took = format!("{:.1} ms", self.took.as_secs_f64() * 1e3);
        vec![format!("  {word}").into(), self.attempt.tries.into(), took.into(), self.said().into()]
    }

    fn to_json(&self) -> Value {
        json!({
            "attempt": self.attempt.name,
            "tries": self.attempt.tries,
            "held": self.is_held(),
            "saw": self.said(),
            "duration_ms": palisade::internal::millis(self.took),
        })
    }
}

fn show(args: &Escape, seen: &[Seen], took: Duration) -> Result<(), Failure> {
    let held = seen.iter().filter(|seen| seen.is_held()).count();
    if args.json {
        let attempts: Vec<Value> = seen.iter().map(Seen::to_json).collect();
        return output::json(&json!({"held": held == seen.len(), "attempts": attempts})).map(drop);
    }
    let rows: Vec<Vec<Cell>> = seen.iter().map(Seen::row).collect();
    let heading = style::heading("A hostile plugin tries to get out.");
    output::text(&format!(
        "{heading}\n\n{}\n{}",
        output::table(&rows),
        output::prose(&conclusion(held, seen.len(), took))
    ))
    .map(drop)
}

fn conclusion(held: usize, all: usize, took: Duration) -> String {
    let took = took.as_secs_f64();
    if held == all {
        return format!(
            "{held} of {all} attempts held in {took:.1} s. After each, nothing outside of the workspace had changed, and the next call of another tool worked."
        );
    }
    format!(
        "{} of {all} attempts were NOT held. Please report this as SECURITY.md says, with the lines above.",
        all - held
    )
}
