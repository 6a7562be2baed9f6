//! Soak tests with many calls of one kind or of all kinds. Of the mixed calls, 70 % return a text;
//! the others read a file, trap, time out, or are cancelled.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use palisade::{CacheMode, Call, CancellationToken, Host, plugins::Shipped};
use serde_json::json;

use super::Report;
use crate::guest::{CONTRACT_END, HOSTILE_ABUSE, HOSTILE_ECHO, HOSTILE_PROBE, cache};
use crate::oracle::Resources;
use crate::world::World;

/// The number of concurrent calls.
const WIDTH: usize = 8;
/// The number of calls before the first measurement. They create the resources that are created
/// once, and use the first slots of the pooling allocator.
const WARM: usize = 5_000;
/// The number of windows in a tenth of a run. The fastest window shows the host's own time, since
/// other load on the machine slows only some of them.
const WINDOWS: usize = 10;
/// The maximum p50 and p99 of calls without concurrent calls.
const ALONE: (Duration, Duration) = (Duration::from_micros(300), Duration::from_millis(2));
/// The timeout of the calls that time out.
pub const BRIEF: Duration = Duration::from_millis(20);

/// A kind of call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A call that returns a text.
    Echo,
    /// A call that reads a file.
    Read,
    /// A call that traps.
    Trap,
    /// A call that times out.
    Slow,
    /// A call that is cancelled.
    Cancelled,
}

/// The function that selects the kind of a call by its number.
pub type Choice = fn(usize) -> Kind;

/// Selects the kind of a call in the mixed run, with a period of twenty calls.
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

/// Returns the expected number of calls in each error class.
#[must_use]
pub fn expected(calls: usize, choice: Choice) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    (0..calls).for_each(|number| *counts.entry(choice(number).class()).or_default() += 1);
    counts
}

impl Kind {
    /// Returns the expected error class, or the empty string for a success.
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

/// Returns a call that is cancelled as soon as another task runs.
fn cancelled_soon() -> Call {
    let token = CancellationToken::new();
    let trigger = token.clone();
    tokio::spawn(async move {
        tokio::task::yield_now().await;
        trigger.cancel();
    });
    Call::new("abuse", json!({"how": "sleep", "amount": u64::MAX})).with_cancellation(token)
}

/// The result of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ran {
    /// The number of calls in each error class; the empty class is success.
    pub classes: BTreeMap<&'static str, usize>,
    /// The times of all calls in ascending order.
    pub times: Vec<Duration>,
}

impl Ran {
    /// Returns the quantile of the times, in thousandths: 990 is the p99.
    #[must_use]
    pub fn within(&self, of_thousand: usize) -> Duration {
        let place = self.times.len().saturating_mul(of_thousand) / 1000;
        self.times.get(place.min(self.times.len().saturating_sub(1))).copied().unwrap_or_default()
    }
}

/// A host for many repeated calls.
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
    /// Creates a host with the guests and files of the calls.
    ///
    /// # Panics
    ///
    /// If the host cannot be built.
    #[must_use]
    pub fn new() -> Self {
        let world = World::new();
        world.file("file.txt", "inside");
        let builder = crate::host_builder()
            .workspace(world.root())
            .shipped(Shipped::LeftOut)
            .cache(CacheMode::Directory(cache()));
        let guests = [HOSTILE_ECHO, HOSTILE_PROBE, HOSTILE_ABUSE, CONTRACT_END];
        let builder =
            guests.iter().fold(builder, |builder, guest| builder.plugins(guest.directory()));
        let host = Arc::new(builder.build().expect("the host can be built"));
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        Self { host, runtime: runtime.expect("a runtime can be started"), _world: world }
    }

    /// Makes this number of calls, eight at a time.
    ///
    /// # Panics
    ///
    /// If a call ends with another class than expected, or not at all.
    #[must_use]
    pub fn run(&self, calls: usize, choice: Choice) -> Ran {
        self.run_wide(WIDTH, calls, choice)
    }

    fn run_wide(&self, width: usize, calls: usize, choice: Choice) -> Ran {
        self.runtime.block_on(async {
            let lane = |lane| {
                tokio::spawn(lane_of(self.host.clone(), (lane..calls).step_by(width), choice))
            };
            let lanes: Vec<_> = (0..width).map(lane).collect();
            let mut ran = Ran::default();
            for lane in lanes {
                let one = lane.await.expect("every call is answered");
                ran.times.extend(one.times);
                one.classes
                    .into_iter()
                    .for_each(|(class, count)| *ran.classes.entry(class).or_default() += count);
            }
            ran.times.sort_unstable();
            ran
        })
    }
}

/// Makes some of the calls, one after another.
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

/// The shared host of the soak tests with calls, after a warm-up.
static WARMED: LazyLock<Soak> = LazyLock::new(|| {
    let soak = Soak::new();
    let _ = soak.run(WARM, mixed);
    soak
});

/// Makes calls that return a text. The last ones must be as fast as the first ones.
pub(super) fn echo(calls: usize) -> Report {
    let first = quietest(calls / 10);
    let report = counted(&WARMED, calls - calls / 5, |_| Kind::Echo, None);
    let last = quietest(calls / 10);
    report.figure(&format!("p99 of the first tenth {first:?}, of the last {last:?}")).bound(
        "p99 of the last tenth at most 1.1 times that of the first",
        last <= first.mul_f64(1.1),
    )
}

/// Returns the p99 of the fastest window.
fn quietest(calls: usize) -> Duration {
    let window = || WARMED.run((calls / WINDOWS).max(100), |_| Kind::Echo).within(990);
    (0..WINDOWS).map(|_| window()).min().unwrap_or_default()
}

/// Makes calls that return a text, one at a time.
pub(super) fn latency(calls: usize) -> Report {
    let ran = WARMED.run_wide(1, calls, |_| Kind::Echo);
    let (half, most) = (ran.within(500), ran.within(990));
    Report::new(&format!("p50 {half:?}, p99 {most:?}"))
        .bound(&format!("p50 at most {:?}", ALONE.0), half <= ALONE.0)
        .bound(&format!("p99 at most {:?}", ALONE.1), most <= ALONE.1)
}

/// Makes calls of every kind.
pub(super) fn all_kinds(calls: usize) -> Report {
    counted(&WARMED, calls, mixed, None)
}

/// Makes calls that time out.
pub(super) fn timeouts(calls: usize) -> Report {
    counted(&WARMED, calls, |_| Kind::Slow, Some(BRIEF + Duration::from_millis(150)))
}

/// Makes calls that are cancelled soon after their start.
pub(super) fn cancellations(calls: usize) -> Report {
    counted(&WARMED, calls, |_| Kind::Cancelled, Some(Duration::from_millis(50)))
}

/// Makes calls, and bounds their p99 and the growth after the first tenth.
fn counted(soak: &Soak, calls: usize, choice: Choice, within: Option<Duration>) -> Report {
    let first = soak.run(calls / 10, choice);
    let before = Resources::now();
    let rest = soak.run(calls - calls / 10, choice);
    let exact = first.classes == expected(calls / 10, choice)
        && rest.classes == expected(calls - calls / 10, choice);
    let figures = format!(
        "p50 {:?}, p99 {:?}, longest {:?}",
        rest.within(500),
        rest.within(990),
        rest.within(1000)
    );
    let most = rest.within(990);
    // A million times take sixteen megabytes, which would count as growth of the host.
    drop((first, rest));
    let report = Report::new(&figures)
        .bound("every class as often as it must", exact)
        .held(before, super::MEMORY);
    match within {
        Some(within) => report.bound(&format!("p99 at most {within:?}"), most <= within),
        None => report,
    }
}
