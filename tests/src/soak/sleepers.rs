//! A soak test for sleeping guests, as many as one plugin has sandboxes: they use little memory,
//! and closing the session cancels all of them.

use std::time::{Duration, Instant};

use palisade::{Call, plugins::Shipped};
use serde_json::json;

use super::{MEMORY, Report};
use crate::Stage;
use crate::guest::CANCEL_SLEEP;
use crate::oracle::Resources;
use crate::stage::class;

/// The number of sleeping guests: all sandboxes of one plugin.
const WIDTH: u32 = 128;
/// The additional slots of the pooling allocator, for other plugins and for loading. Each round
/// uses an arbitrary subset of all slots, so it takes some hundred rounds until every slot was
/// used.
const SPARE: usize = 128 + 16;
/// The maximum memory of a sleeping guest, in bytes.
const EACH: usize = 3 << 19;
/// The maximum time until all guests are cancelled.
const SHUTDOWN: Duration = Duration::from_secs(1);

/// The measurements of one round.
struct Round {
    asleep: usize,
    took: Duration,
    cancelled: usize,
}

/// Runs `rounds` rounds in which 128 guests sleep and are cancelled.
///
/// # Panics
///
/// If the host cannot be built.
pub fn sleepers(rounds: usize) -> Report {
    let stage = Stage::new(&[CANCEL_SLEEP], |builder| builder.shipped(Shipped::LeftOut));
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("a runtime can be started");
    let unused = Resources::now();
    // The first round loads the code, which would count as memory of the guests.
    let _ = runtime.block_on(round(&stage));
    let base = Resources::now();
    let first = runtime.block_on(round(&stage));
    let before = Resources::now();
    let all: Vec<Round> =
        (1..rounds).map(|_| runtime.block_on(round(&stage))).chain([first]).collect();
    let asleep =
        all.iter().map(|round| round.asleep).max().unwrap_or(0).saturating_sub(base.memory);
    let took = all.iter().map(|round| round.took).max().unwrap_or_default();
    let width = WIDTH as usize;
    Report::new(&format!(
        "{} KiB each while they sleep, all cancelled within {took:?}",
        (asleep / width) >> 10
    ))
    .bound(&format!("at most {} KiB each", EACH >> 10), asleep <= width * EACH)
    .bound(&format!("all cancelled within {SHUTDOWN:?}"), took <= SHUTDOWN)
    .bound("each of them is", all.iter().all(|round| round.cancelled == width))
    .kept(before, MEMORY)
    .mapped(unused, width + SPARE)
}

async fn round(stage: &Stage) -> Round {
    stage.recorder.forget();
    let session = stage.host.new_session("s").concurrency(WIDTH).build();
    let calls: Vec<_> =
        (0..WIDTH).map(|_| stage.begin(&session, Call::new("sleep", json!({})))).collect();
    stage.started(WIDTH as usize).await;
    let asleep = Resources::now().memory;
    let start = Instant::now();
    session.close();
    let mut cancelled = 0;
    for call in calls {
        cancelled += usize::from(call.await.is_ok_and(|result| class(&result) == "cancelled"));
    }
    Round { asleep, took: start.elapsed(), cancelled }
}
