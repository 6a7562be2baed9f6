//! A WASI context without real time or randomness.

use std::time::Duration;
use wasmtime_wasi::random::Deterministic;
use wasmtime_wasi::{HostMonotonicClock, HostWallClock, WasiCtx, WasiCtxBuilder};

/// Returns a WASI context without real time or randomness, so that a description cannot depend on
/// either.
pub(super) fn frozen() -> WasiCtxBuilder {
    let mut wasi = WasiCtx::builder();
    wasi.wall_clock(Frozen)
        .monotonic_clock(Frozen)
        .secure_random(Deterministic::new(vec![0x5a]))
        .insecure_random(Deterministic::new(vec![0x5a]))
        .insecure_random_seed(0x5a);
    wasi
}

struct Frozen;

impl HostWallClock for Frozen {
    fn resolution(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn now(&self) -> Duration {
        Duration::ZERO
    }
}

impl HostMonotonicClock for Frozen {
    fn resolution(&self) -> u64 {
        1
    }

    fn now(&self) -> u64 {
        0
    }
}
