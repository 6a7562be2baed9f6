//! Calls whose work is done at their very deadline: each ends once, and what it is said to have changed is what it has changed.

use std::time::Duration;

use palisade::{Call, SideEffects};
use serde_json::json;

use super::Report;
use crate::case::{Case, block_on};
use crate::guest::HOSTILE_ABUSE;
use crate::{Recorder, Stage, World};

/// The time that each call has.
const TIME: Duration = Duration::from_millis(10);
/// How far from it the work ends at most. A guest that is resumed after its deadline runs no further, and a timer of the
/// runtime is late by up to 1 ms, beside the time that an instance takes to start.
const AROUND: Duration = Duration::from_millis(5);
/// What each call writes when it has waited.
const FILE: &str = "late.txt";

/// A host whose calls end at their deadline.
pub struct Deadline(Stage);

/// What came of it.
#[derive(Debug, Clone, Default)]
pub struct Ended {
    /// Calls that had written their file in time.
    pub written: usize,
    /// Calls that ran out of time.
    pub late: usize,
    /// What should not be.
    pub broken: Vec<String>,
}

impl Deadline {
    /// On this stage, which has the guest `hostile_abuse` and lets it write.
    #[must_use]
    pub fn over(stage: Stage) -> Self {
        Self(stage)
    }

    /// So many calls, from a little less to a little more than the time that there is.
    #[must_use]
    pub fn run(&self, calls: usize) -> Ended {
        let mut ended = Ended::default();
        let step = 2.0 * AROUND.as_secs_f64() / calls as f64;
        for number in 0..calls {
            let wait = (TIME - AROUND).as_secs_f64() + step * number as f64;
            self.call(Duration::from_secs_f64(wait), &mut ended);
        }
        ended
    }

    fn call(&self, wait: Duration, ended: &mut Ended) {
        let Self(stage) = self;
        let nanos = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
        let input = json!({"how": "", "amount": nanos, "text": FILE});
        let call = Call::new("write_late", input).with_timeout(TIME);
        let result = block_on(stage.host.dispatch(stage.host.session(), call)).to_json();
        let is_late = result["error"]["class"] == "timeout";
        ended.late += usize::from(is_late);
        ended.written += usize::from(!is_late);
        let is_there = std::fs::remove_file(stage.world.root().join(FILE)).is_ok();
        let is_listed = result["files_modified"] == json!([FILE]);
        if is_there != is_listed || (!is_late && (result["success"] != true || !is_there)) {
            ended.broken.push(format!("{wait:?}: the file is there: {is_there}; {result}"));
        }
        ended.broken.extend(stage.recorder.unended());
        stage.recorder.forget();
    }
}

/// The same as a long run.
pub(super) fn deadlines(calls: usize) -> Report {
    let (world, recorder) = (World::new(), Recorder::default());
    let builder = Case::new(HOSTILE_ABUSE, "write_late").allow(SideEffects::Write).builder(&world);
    let host = builder.subscriber(std::sync::Arc::new(recorder.clone())).build().expect("the host can be built");
    let stage = Stage { world: world.into(), host: host.into(), desk: palisade::Desk::default(), recorder };
    let ended = Deadline::over(stage).run(calls);
    let first = ended.broken.first().map_or("", String::as_str);
    Report::new(&format!("{} in time, {} late {first}", ended.written, ended.late))
        .bound("one end each, and what changed is what is listed", ended.broken.is_empty())
        .bound("both ends are met", ended.written > 0 && ended.late > 0)
}
