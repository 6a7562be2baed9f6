//! A soak test for the loader: corrupted plugins, each of which must be refused or loaded soon,
//! without a crash.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use palisade::sandbox::CompileLimits;
use palisade::sandbox::{Cache, Sandbox, Trust};

use super::Report;
use crate::Wat;
use crate::dice::Dice;
use crate::guest::HOSTILE_ECHO;
use crate::oracle::Resources;
use crate::wat::Told;

/// The maximum p50 of the load times.
const HALF: Duration = Duration::from_millis(5);
/// The tolerated growth of memory, in bytes.
const MEMORY: usize = 16 << 20;
/// The period of the corrupted plugins that are made from a compiled guest, which is larger.
const LARGE: usize = 200;

/// Loads `count` plugins with random corruptions.
///
/// # Panics
///
/// If the host panics.
pub fn components(count: usize) -> Report {
    let (small, large) = (small(), std::fs::read(HOSTILE_ECHO.file()).expect("the guest is there"));
    judged(count, |number| {
        let whole = if number % LARGE == 0 { &large } else { &small };
        spoiled(&mut Dice::new(number as u64), whole)
    })
}

/// Loads `count` plugins with one to four flipped bits.
///
/// # Panics
///
/// If the host panics.
pub(super) fn turned(count: usize) -> Report {
    let whole = small();
    judged(count, |number| {
        let (mut dice, mut bytes) = (Dice::new(number as u64), whole.clone());
        for _ in 0..=dice.roll(4) {
            let at = dice.roll(bytes.len());
            bytes[at] ^= 1 << dice.roll(8);
        }
        bytes
    })
}

fn small() -> Vec<u8> {
    Wat::new(Told::new("raw")).with_clock().build()
}

/// Returns a copy of a plugin with one to three random corruptions.
fn spoiled(dice: &mut Dice, whole: &[u8]) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    for _ in 0..=dice.roll(3) {
        let (at, to) = (dice.roll(bytes.len()), dice.roll(bytes.len()));
        let (from, end) = (at.min(to), at.max(to).min(at.min(to) + 64));
        match dice.roll(8) {
            0 => bytes[at] ^= 1 << dice.roll(8),
            1 => bytes[at] = dice.roll(256) as u8,
            2 => bytes.swap(at, to),
            3 => drop(bytes.remove(at)),
            4 => bytes.insert(at, dice.roll(256) as u8),
            5 => drop(bytes.drain(from..end)),
            6 => {
                let part = bytes[from..end].to_vec();
                bytes.splice(to..to, part);
            }
            _ => bytes.truncate(at.max(16)),
        }
        if bytes.len() < 16 {
            break;
        }
    }
    bytes
}

/// Loads each file on one of two threads, and reports the times and failures. Growth is measured
/// from the first tenth on.
fn judged(count: usize, file: impl Fn(usize) -> Vec<u8> + Sync) -> Report {
    let sandbox = Sandbox::new(Cache::off()).expect("the engine starts");
    let times = Mutex::new(Vec::new());
    let wrong = Mutex::new(Vec::new());
    let loaded = AtomicUsize::new(0);
    let work = |next: &AtomicUsize, end: usize| {
        let mut own = Vec::new();
        while let Some(number) =
            Some(next.fetch_add(1, Ordering::Relaxed)).filter(|number| *number < end)
        {
            let bytes = file(number);
            let start = Instant::now();
            let outcome =
                sandbox.prepare(&bytes, Trust::Untrusted).map_err(|refused| refused.to_string());
            own.push(start.elapsed());
            match outcome {
                Ok(_) => drop(loaded.fetch_add(1, Ordering::Relaxed)),
                Err(said) if is_reason(&said) => {}
                Err(said) => wrong.lock().expect("no thread panicked").push((number, said)),
            }
        }
        times.lock().expect("no thread panicked").extend(own);
    };
    let on_two_threads = |start: usize, end: usize| {
        let next = AtomicUsize::new(start);
        std::thread::scope(|scope| (0..2).for_each(|_| drop(scope.spawn(|| work(&next, end)))));
    };
    // The first tenth fills the engine's pool and the allocator, which keep what they have.
    on_two_threads(0, count / 10);
    let before = Resources::now();
    on_two_threads(count / 10, count);
    let (mut times, wrong) = (
        times.into_inner().expect("no thread panicked"),
        wrong.into_inner().expect("no thread panicked"),
    );
    times.sort_unstable();
    let (half, most) = (times[times.len() / 2], times[times.len() - 1]);
    // The recorded times are memory of the test, not of the host.
    let own = times.capacity() * 2 * size_of::<Duration>();
    Report::new(&format!(
        "{loaded:?} loaded, half within {half:?}, all within {most:?} {:?}",
        wrong.first()
    ))
    .bound(
        "each is loaded or refused with a reason, and no panic",
        wrong.is_empty() && times.len() == count,
    )
    .bound(&format!("half within {HALF:?}"), half <= HALF)
    .bound("all within the time of compilation", most <= CompileLimits::default().time)
    .held(before, MEMORY + own)
}

fn is_reason(said: &str) -> bool {
    // The last words of a plugin may tell of a panic of the plugin.
    let own = said.split("its last words:").next().unwrap_or_default();
    !own.is_empty() && said.len() < 4096 && !said.contains('\n') && !own.contains("panicked")
}
