//! A compilation in this process costs its caller a bounded time, although it cannot be stopped.

#![allow(clippy::unwrap_used, reason = "a test that cannot make its plugin has failed")]

use super::*;
use crate::sandbox::engine::{Allocation, CodeTier};
use palisade_tests::bomb::{cheap_to_compile, seconds_to_compile};

const KIND: CodeKind = CodeKind { allocation: Allocation::OnDemand, tier: CodeTier::Optimized };

fn within(time: Duration, memory: u64) -> CompileLimits {
    CompileLimits { time, memory }
}

#[test]
fn slow_compilations_are_abandoned_up_to_a_bound() {
    let never = CancellationToken::new();
    let costly = seconds_to_compile("costly");
    let small = cheap_to_compile("small");
    let slots = CompileSlots::default();
    let compile = |bytes: &[u8], limits| compile_in(&slots, KIND, limits, bytes, &never);
    let roomy = CompileLimits::default();
    assert!(!compile(&small, roomy).unwrap().is_empty());
    let max = small.len() as u64;
    assert_eq!(compile(&small, within(roomy.time, max)), Err(CompileError::Size { max }));
    // The checks that are inserted into the code count as well.
    let compiled = Sliced::new(&small).unwrap().as_bytes().len() as u64;
    assert!(compile(&small, within(roomy.time, compiled * MEMORY_PER_BYTE)).is_ok());
    assert!(matches!(compile(b"junk", roomy), Err(CompileError::Invalid(_))));

    let short = within(Duration::from_millis(100), roomy.memory);
    for _ in 0..AT_ONCE {
        let refused = compile(&costly, short);
        assert!(
            matches!(refused, Err(CompileError::Time { .. } | CompileError::Wall { .. })),
            "{refused:?}"
        );
    }
    assert_eq!(compile(&small, roomy), Err(CompileError::Busy));
    // Abandoned compilations end by themselves, and then their slots are free again.
    while slots.abandoned_slots.load(Ordering::SeqCst) > 0 {
        std::thread::yield_now();
    }
    assert!(compile(&small, roomy).is_ok());
}

#[test]
fn cancelled_compilation_is_not_awaited() {
    let cancel = CancellationToken::new();
    cancel.cancel();
    let slot = CompileSlots::default().take(&CancellationToken::new()).unwrap();
    let costly = Work { kind: KIND, component: seconds_to_compile("costly"), memory: u64::MAX };
    let compilation = begin(slot, Arc::default(), costly).unwrap();
    assert_eq!(compilation.wait(CompileLimits::default(), &cancel), Err(CompileError::Cancelled));
}

#[test]
fn abandoned_compilations_never_exceed_their_places() {
    let never = CancellationToken::new();
    let costly = seconds_to_compile("costly");
    let slots = CompileSlots::default();
    let short = within(Duration::from_millis(50), CompileLimits::MEMORY);
    let refused: Vec<CompileError> = std::thread::scope(|scope| {
        let compile = || compile_in(&slots, KIND, short, &costly, &never).unwrap_err();
        let threads: Vec<_> = (0..3 * AT_ONCE).map(|_| scope.spawn(compile)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let begun = refused.iter().filter(|refused| **refused != CompileError::Busy).count();
    assert_eq!(begun, AT_ONCE, "{refused:?}");
}

#[test]
fn cancelled_waiter_stops_waiting() {
    let cancel = CancellationToken::new();
    let slots = CompileSlots::default();
    let _taken: Vec<_> = (0..AT_ONCE).map(|_| slots.take(&cancel).unwrap()).collect();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| slots.take(&cancel).err());
        cancel.cancel();
        assert_eq!(waiting.join().unwrap(), Some(CompileError::Cancelled));
    });
}

#[test]
fn system_memory_shortage_is_not_the_plugins_fault() {
    let io =
        |kind: std::io::ErrorKind| engine::is_out_of_memory(&std::io::Error::from(kind).into());
    assert!(io(std::io::ErrorKind::OutOfMemory) && !io(std::io::ErrorKind::PermissionDenied));
    let system = |errno: rustix::io::Errno| {
        engine::is_out_of_memory(&wasmtime::Error::from(errno).context("mapping"))
    };
    assert!(system(rustix::io::Errno::NOMEM) && !system(rustix::io::Errno::PERM));
    // The text of an error may quote the plugin.
    assert!(!engine::is_out_of_memory(&wasmtime::Error::msg(
        "unknown import `Cannot allocate (os error 12)`"
    )));
}
