//! Measures calls of one plugin beside another that computes forever: it may only take its share of
//! the processor.

use crate::report::{self, Series};
use crate::road::Road;
use crate::world::World;
use palisade::{Call, CancellationToken, json, plugins::Shipped};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Timed calls, with and without a neighbour.
const CALLS: usize = 10_000;
/// The timeout for the start of a guest on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn run(world: &World) {
    let guests = [palisade_tests::guest::BENCH_CALLS, palisade_tests::guest::CANCEL_COMPUTE];
    let host = world.host().shipped(Shipped::LeftOut);
    let road = Arc::new(Road::with(
        guests.iter().fold(host, |host, guest| host.plugin_file(guest.file())),
    ));
    let runtime = crate::on_every_core();
    let time = |name| {
        let road = road.clone();
        runtime.block_on(runtime.spawn(async move { calls(&road, name).await })).expect("a caller")
    };
    drop(time("to warm up"));
    let quiet = time("nothing beside it");
    let neighbour = CancellationToken::new();
    let computing = {
        let (road, call) =
            (road.clone(), Call::new("compute", "{}").with_cancellation(neighbour.clone()));
        runtime.spawn(async move { road.host.dispatch(road.host.session(), call).await })
    };
    let begun = Instant::now();
    while road.started() == 0 {
        assert!(begun.elapsed() < PATIENCE, "the neighbour does not start");
        std::thread::yield_now();
    }
    let beside = time("beside a guest that loops");
    neighbour.cancel();
    drop(runtime.block_on(computing));
    let rise = beside.at(990).as_secs_f64() / quiet.at(990).as_secs_f64();
    report::group("echo, one caller of its own", &[quiet, beside]);
    report::row("  p99 rises by", &[format!("× {rise:.2}")]);
}

/// Times calls. Yields before each call, so that other tasks get the thread.
async fn calls(road: &Road, name: &'static str) -> Series {
    let (mut series, text) = (Series::new(name), json!({"text": "hello"}).to_string());
    for _ in 0..CALLS {
        let call = async {
            tokio::task::yield_now().await;
            road.call("echo", &text).await
        };
        series.time(true, call).await;
    }
    series
}
