//! Repeated rounds of the same work, each measured and judged by every invariant.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use palisade::ToolResult;
use serde_json::{Value, json};

use super::canary::Canary;
use super::lateness::Lateness;
use super::ping::Pings;
use super::{Oracle, Peak, Resources, Results, SLACK};
use crate::uniform;

/// The time for threads, file descriptors and memory to return to their former level.
pub(super) const SETTLING: Duration = Duration::from_secs(1);
/// The maximum time of the next call of a benign plugin.
const BENIGN: Duration = Duration::from_millis(50);

/// The result and the measurements of one round.
pub(super) struct Timed<T> {
    pub(super) done: T,
    pub(super) took: Duration,
    pub(super) late: Duration,
    pub(super) pings: Pings,
}

impl Oracle {
    /// Returns the result of the work and the violated invariants. `prepare` runs before each
    /// repetition, so that the work always meets what it met at first.
    pub(super) fn judged<T: Results>(
        &self,
        within: Duration,
        prepare: &impl Fn(),
        work: &impl Fn() -> Timed<T>,
    ) -> (T, Vec<String>) {
        // Make a benign call first, so that resources that are created once, such as the clock's
        // thread, exist before the first count.
        let mut broken: Vec<String> = self.benign().err().into_iter().collect();
        for _ in 1..self.rounds {
            let (done, unsettled) = self.round(within, work, &mut broken);
            if unsettled.is_empty() || !broken.is_empty() {
                broken.extend(unsettled);
                return (done, broken);
            }
            drop(done);
            prepare();
        }
        let (done, unsettled) = self.round(within, work, &mut broken);
        broken.extend(unsettled);
        (done, broken)
    }

    /// Runs one round. Returns its result and the resources that have not returned to their former
    /// level.
    fn round<T: Results>(
        &self,
        within: Duration,
        work: &impl Fn() -> Timed<T>,
        broken: &mut Vec<String>,
    ) -> (T, Vec<String>) {
        self.stage.recorder.forget();
        self.panic_log.forget();
        let canary = Canary::beside(&self.stage.world);
        let books = Resources::now();
        let peak = Peak::of_this();
        let Timed { done, took, late, pings } = work();
        broken.extend(peak.beyond(self.memory));
        let allowed = within + SLACK + late * 4;
        if took > allowed {
            broken.push(format!("it took {took:?}, and {allowed:?} were allowed"));
        }
        broken.extend(done.results().into_iter().filter_map(|result| {
            let error = result.error()?.to_json();
            overdue(&error, result.duration(), late)
        }));
        broken.extend(pings.complaints(late));
        broken.extend(canary.touched(&self.stage.world));
        broken.extend(
            self.stage
                .recorder
                .unended(done.results().iter().map(|result| result.call_id().as_str())),
        );
        broken.extend(self.panic_log.complaints(self.panics));
        broken.extend(done.results().into_iter().filter_map(invalid));
        *self.events.lock().unwrap_or_else(PoisonError::into_inner) = self.stage.recorder.events();
        broken.extend(self.benign().err());
        self.stage.recorder.forget();
        let held = done.held();
        (done, Resources { memory: books.memory + held, ..books }.settled(SETTLING))
    }

    /// Measures one round of work.
    pub(super) fn timed<T>(&self, work: impl FnOnce() -> (T, Pings)) -> Timed<T> {
        let late = Lateness::watched();
        let start = Instant::now();
        let (done, pings) = work();
        Timed { done, took: start.elapsed(), late: late.worst(), pings }
    }

    /// Checks the fastest of several calls of a benign plugin: a damaged host is slow in all of
    /// them, a busy machine is not.
    fn benign(&self) -> Result<(), String> {
        let mut quickest = Duration::MAX;
        for _ in 0..5 {
            let start = Instant::now();
            let call = self.stage.host.call("echo", json!({"text": "still here"}), json!({}));
            let result = self.runtime.block_on(call);
            if result.output().as_deref() != Some("still here") {
                return Err(format!("the next call of a benign plugin fails: {result}"));
            }
            quickest = quickest.min(start.elapsed());
        }
        if quickest <= BENIGN {
            Ok(())
        } else {
            Err(format!("the next call of a benign plugin takes {quickest:?}"))
        }
    }
}

/// Returns the number of repetitions after which growth counts as a leak. glibc keeps freed memory
/// in each arena that a thread has used, and has up to eight arenas for each core. A leak grows
/// every time.
pub(crate) fn rounds() -> usize {
    4 + 8 * std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Returns a complaint if a call that timed out ended too long after its timeout, by its own
/// duration.
pub(super) fn overdue(error: &Value, took: Duration, late: Duration) -> Option<String> {
    let limit = error["detail"]["value_ms"].as_f64().filter(|_| error["class"] == "timeout")?;
    let limit = Duration::from_secs_f64(limit / 1e3);
    let allowed = limit + SLACK + late * 4;
    (took > allowed)
        .then(|| format!("a call of {limit:?} ended after {took:?}, and {allowed:?} were allowed"))
}

/// Returns a complaint if the result violates the contract.
fn invalid(result: &ToolResult) -> Option<String> {
    let json = result.to_json();
    let checked = std::panic::catch_unwind(|| uniform::check_shape(&json));
    checked.is_err().then(|| format!("a result is not valid: {json}"))
}
