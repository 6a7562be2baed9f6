//! A soak test for file descriptors: many guests hold as many files as they may, and the host keeps
//! enough descriptors for itself.

use palisade::{Call, plugins::Shipped};
use rustix::process::{Resource, getrlimit};
use serde_json::json;

use super::{MEMORY, Report};
use crate::Stage;
use crate::guest::{HOSTILE_ECHO, LIMITS_HANDLES};
use crate::oracle::Resources;
use crate::stage::class;

/// The number of guests that hold files at the same time.
const WIDTH: u32 = 128;
/// The number of files that each guest opens: nearly all handles of a call.
const EACH: usize = 240;

/// Runs `rounds` rounds in which 128 guests hold files while another guest is called.
///
/// # Panics
///
/// If the host cannot be built.
pub fn descriptors(rounds: usize) -> Report {
    let stage =
        Stage::new(&[LIMITS_HANDLES, HOSTILE_ECHO], |builder| builder.shipped(Shipped::LeftOut));
    stage.world.file("file.txt", "inside");
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("a runtime can be started");
    let allowed = getrlimit(Resource::Nofile)
        .current
        .map_or(usize::MAX, |limit| usize::try_from(limit / 2).unwrap_or(usize::MAX));
    let first = runtime.block_on(round(&stage));
    let before = Resources::now();
    let all: Vec<Round> =
        (1..rounds).map(|_| runtime.block_on(round(&stage))).chain([first]).collect();
    let most = all.iter().map(|round| round.open).max().unwrap_or(0);
    let served = all.iter().all(|round| round.served);
    let wrong: Vec<&String> = all.iter().flat_map(|round| &round.wrong).collect();
    Report::new(&format!("{most} descriptors, and {allowed} are half of what there is {wrong:?}"))
        .bound("half of the descriptors are left", most <= allowed)
        .bound("another guest is served meanwhile", served)
        .bound("who gets none is told why", wrong.is_empty())
        .kept(before, MEMORY)
}

struct Round {
    open: usize,
    served: bool,
    wrong: Vec<String>,
}

async fn round(stage: &Stage) -> Round {
    stage.recorder.forget();
    let session = stage.host.new_session("s").concurrency(WIDTH).build();
    let call = || Call::new("hold_for_ever", json!({"count": EACH}));
    let calls: Vec<_> = (0..WIDTH).map(|_| stage.begin(&session, call())).collect();
    let done = |events: &[palisade::events::Event]| {
        events
            .iter()
            .filter(|event| event.is_terminal() || crate::stage::reports_start(event))
            .count()
            >= WIDTH as usize
    };
    stage.recorder.until(done).await;
    let open = Resources::now().descriptors;
    let served =
        stage.host.call("echo", json!({"text": "still here"}), json!({})).await.is_success();
    session.close();
    let mut wrong = Vec::new();
    for call in calls {
        let result = call.await.expect("it is answered");
        if !["cancelled", "resource_exhausted"].contains(&class(&result)) {
            wrong.push(result.to_string());
        }
    }
    wrong.truncate(1);
    Round { open, served, wrong }
}
