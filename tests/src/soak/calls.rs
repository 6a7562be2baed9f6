//! Many calls of every kind: mixed, seven of ten say something, the others read a file, trap, run out of time, or are cancelled; or all of one kind.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use palisade::{CacheMode, Call, CancellationToken, Host, Shipped};
use serde_json::json;

use super::Report;
use crate::guest::{CONTRACT_END, HOSTILE_ABUSE, HOSTILE_ECHO, HOSTILE_PROBE, cache};
use crate::oracle::Books;
use crate::world::World;

/// How many calls are on their way at once.
const WIDTH: usize = 8;
/// How many calls are made before anything is counted: what is made once, and the pool's places that are used first, come before that.
const WARM: usize = 5_000;
/// How many windows a tenth of a run is looked at in: the quietest tells of the host, the others of what else the machine does.
const WINDOWS: usize = 10;
/// What one call alone takes: half of them, and all but one of a hundred.
const ALONE: (Duration, Duration) = (Duration::from_micros(300), Duration::from_millis(2));
/// The time of those that run out of it.
pub const BRIEF: Duration = Duration::from_millis(20);

/// A kind of call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Says what it is told.
    Echo,
    /// Reads a file.
    Read,
    /// Traps.
    Trap,
    /// Runs out of time.
    Slow,
    /// Is cancelled.
    Cancelled,
}

/// Which kind each call is of, by its number.
pub type Choice = fn(usize) -> Kind;

/// Of each twenty calls, which is of which kind.
#[must_use]
pub fn mixed(number: usize) -> Kind {
    match number % 20 {
        0..=13 => Kind::Echo,
        14..=16 => Kind::Read,
        17 => Kind::Trap,
        18 => Kind::Slow,
        _ => Kind::Cancelled,
    }
}

/// How many of so many calls end in which class.
#[must_use]
pub fn expected(calls: usize, choice: Choice) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    (0..calls).for_each(|number| *counts.entry(choice(number).class()).or_default() += 1);
    counts
}

impl Kind {
    /// The class that it ends in; empty for a success.
    fn class(self) -> &'static str {
        match self {
            Self::Echo | Self::Read => "",
            Self::Trap => "execution_error",
            Self::Slow => "timeout",
            Self::Cancelled => "cancelled",
        }
    }

    fn call(self) -> Call {
        match self {
            Self::Echo => Call::new("echo", json!({"text": "hello"})),
            Self::Read => Call::new("probe_read", json!({"ops": ["open"], "paths": ["file.txt"]})),
            Self::Trap => Call::new("end", json!({"how": "panic"})),
            Self::Slow => Call::new("abuse", json!({"how": "poll-for-ever"})).with_timeout(BRIEF),
            Self::Cancelled => cancelled_soon(),
        }
    }
}

/// A call that is cancelled as soon as somebody else has a turn.
fn cancelled_soon() -> Call {
    let token = CancellationToken::new();
    let trigger = token.clone();
    tokio::spawn(async move {
        tokio::task::yield_now().await;
        trigger.cancel();
    });
    Call::new("abuse", json!({"how": "sleep", "amount": u64::MAX})).with_cancellation(token)
}

/// What came of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ran {
    /// How many calls ended in which class; the empty one is success.
    pub classes: BTreeMap<&'static str, usize>,
    /// How long each call took, from the shortest to the longest.
    pub times: Vec<Duration>,
}

impl Ran {
    /// The time within which so many of a thousand calls were done.
    #[must_use]
    pub fn within(&self, of_thousand: usize) -> Duration {
        let place = self.times.len().saturating_mul(of_thousand) / 1000;
        self.times.get(place.min(self.times.len().saturating_sub(1))).copied().unwrap_or_default()
    }
}

/// A host that is called again and again.
pub struct Soak {
    host: Arc<Host>,
    runtime: tokio::runtime::Runtime,
    _world: World,
}

impl Default for Soak {
    fn default() -> Self {
        Self::new()
    }
}

impl Soak {
    /// A host with what the calls need.
    ///
    /// # Panics
    ///
    /// Where it cannot be built.
    #[must_use]
    pub fn new() -> Self {
        let world = World::new();
        world.file("file.txt", "inside");
        let builder =
            Host::builder().workspace(world.root()).shipped(Shipped::LeftOut).cache(CacheMode::Directory(cache()));
        let guests = [HOSTILE_ECHO, HOSTILE_PROBE, HOSTILE_ABUSE, CONTRACT_END];
        let builder = guests.iter().fold(builder, |builder, guest| builder.plugins(guest.directory()));
        let host = Arc::new(builder.build().expect("the host can be built"));
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        Self { host, runtime: runtime.expect("a runtime can be started"), _world: world }
    }

    /// Makes so many calls, eight at once.
    ///
    /// # Panics
    ///
    /// Where one is not answered, or not as its kind must be.
    #[must_use]
    pub fn run(&self, calls: usize, choice: Choice) -> Ran {
        self.run_wide(WIDTH, calls, choice)
    }

    fn run_wide(&self, width: usize, calls: usize, choice: Choice) -> Ran {
        self.runtime.block_on(async {
            let lane = |lane| tokio::spawn(lane_of(self.host.clone(), (lane..calls).step_by(width), choice));
            let lanes: Vec<_> = (0..width).map(lane).collect();
            let mut ran = Ran::default();
            for lane in lanes {
                let one = lane.await.expect("every call is answered");
                ran.times.extend(one.times);
                one.classes.into_iter().for_each(|(class, count)| *ran.classes.entry(class).or_default() += count);
            }
            ran.times.sort_unstable();
            ran
        })
    }
}

/// Some of the calls, one after another.
async fn lane_of(host: Arc<Host>, numbers: impl Iterator<Item = usize>, choice: Choice) -> Ran {
    let mut ran = Ran::default();
    for number in numbers {
        let kind = choice(number);
        let start = Instant::now();
        let result = host.dispatch(host.session(), kind.call()).await;
        ran.times.push(start.elapsed());
        let class = result.error().map_or("", |error| error.class().as_str());
        assert_eq!(class, kind.class(), "call {number} of kind {kind:?}: {result}");
        *ran.classes.entry(class).or_default() += 1;
    }
    ran
}

/// The host of all long runs of calls, warmed up.
static WARMED: LazyLock<Soak> = LazyLock::new(|| {
    let soak = Soak::new();
    let _ = soak.run(WARM, mixed);
    soak
});

/// Says something, a million times: the last are as quick as the first.
pub(super) fn echo(calls: usize) -> Report {
    let first = quietest(calls / 10);
    let report = counted(&WARMED, calls - calls / 5, |_| Kind::Echo, None);
    let last = quietest(calls / 10);
    report
        .figure(&format!("p99 of the first tenth {first:?}, of the last {last:?}"))
        .bound("p99 of the last tenth at most 1.1 times that of the first", last <= first.mul_f64(1.1))
}

/// The 99th of a hundred in the quietest window of so many calls.
fn quietest(calls: usize) -> Duration {
    let window = || WARMED.run((calls / WINDOWS).max(100), |_| Kind::Echo).within(990);
    (0..WINDOWS).map(|_| window()).min().unwrap_or_default()
}

/// Says something, one call at a time.
pub(super) fn latency(calls: usize) -> Report {
    let ran = WARMED.run_wide(1, calls, |_| Kind::Echo);
    let (half, most) = (ran.within(500), ran.within(990));
    Report::new(&format!("p50 {half:?}, p99 {most:?}"))
        .bound(&format!("p50 at most {:?}", ALONE.0), half <= ALONE.0)
        .bound(&format!("p99 at most {:?}", ALONE.1), most <= ALONE.1)
}

/// Calls of every kind.
pub(super) fn all_kinds(calls: usize) -> Report {
    counted(&WARMED, calls, mixed, None)
}

/// Calls that run out of time.
pub(super) fn timeouts(calls: usize) -> Report {
    counted(&WARMED, calls, |_| Kind::Slow, Some(BRIEF + Duration::from_millis(150)))
}

/// Calls that are cancelled as soon as they have begun.
pub(super) fn cancellations(calls: usize) -> Report {
    counted(&WARMED, calls, |_| Kind::Cancelled, Some(Duration::from_millis(50)))
}

/// So many calls, all but one of a hundred within a time; nothing grows after the first tenth.
fn counted(soak: &Soak, calls: usize, choice: Choice, within: Option<Duration>) -> Report {
    let first = soak.run(calls / 10, choice);
    let before = Books::now();
    let rest = soak.run(calls - calls / 10, choice);
    let exact = first.classes == expected(calls / 10, choice) && rest.classes == expected(calls - calls / 10, choice);
    let figures = format!("p50 {:?}, p99 {:?}, longest {:?}", rest.within(500), rest.within(990), rest.within(1000));
    let most = rest.within(990);
    // A million times are sixteen megabytes, which are this run's and not the host's.
    drop((first, rest));
    let report = Report::new(&figures).bound("every class as often as it must", exact).held(before, super::MEMORY);
    match within {
        Some(within) => report.bound(&format!("p99 at most {within:?}"), most <= within),
        None => report,
    }
}
