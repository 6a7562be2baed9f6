//! A soak test for calls that end near their deadline: each has one terminal event, and its result
//! lists exactly the changed files.

use std::time::Duration;

use palisade::{Call, SideEffects};
use serde_json::json;

use super::Report;
use crate::case::{Case, block_on};
use crate::guest::HOSTILE_ABUSE;
use crate::{Recorder, Stage, World};

/// The timeout of each call.
const TIME: Duration = Duration::from_millis(10);
/// The maximum distance of the end of the work from the deadline. A guest that is resumed after its
/// deadline does not continue. A timer of the runtime is up to 1 ms late, and an instance takes
/// time to start.
const AROUND: Duration = Duration::from_millis(5);
/// The file that each call writes after its wait.
const FILE: &str = "late.txt";

/// A host for calls that end near their deadline.
pub struct Deadline(Stage);

/// The result of the calls.
#[derive(Debug, Clone, Default)]
pub struct Ended {
    /// The number of calls that wrote their file in time.
    pub written: usize,
    /// The number of calls that timed out.
    pub late: usize,
    /// The violations.
    pub broken: Vec<String>,
}

impl Deadline {
    /// Uses this stage, which must provide the guest `hostile_abuse` and allow it to write.
    #[must_use]
    pub fn over(stage: Stage) -> Self {
        Self(stage)
    }

    /// Makes `calls` calls, whose work takes from slightly less to slightly more than the timeout.
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
        ended.broken.extend(stage.recorder.unended(result["call_id"].as_str()));
        stage.recorder.forget();
    }
}

/// Runs the calls as a soak test.
pub(super) fn deadlines(calls: usize) -> Report {
    let (world, recorder) = (World::new(), Recorder::default());
    let builder = Case::new(HOSTILE_ABUSE, "write_late").allow(SideEffects::Write).builder(&world);
    let host = builder
        .subscriber(std::sync::Arc::new(recorder.clone()))
        .build()
        .expect("the host can be built");
    let stage = Stage {
        world: world.into(),
        host: host.into(),
        confirmations: palisade::confirm::ConfirmationQueue::default(),
        recorder,
    };
    let ended = Deadline::over(stage).run(calls);
    let first = ended.broken.first().map_or("", String::as_str);
    Report::new(&format!("{} in time, {} late {first}", ended.written, ended.late))
        .bound("one end each, and what changed is what is listed", ended.broken.is_empty())
        .bound("both ends are met", ended.written > 0 && ended.late > 0)
}
