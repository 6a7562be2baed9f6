//! Times the calls: one caller, then concurrent callers, then a spawned process as the baseline.

use palisade::Host;
use palisade::{Call, ToolResult};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Maximum number of calls per series if `--calls` is not given.
const CALLS: usize = 1_000;
/// Time after which a series without `--calls` stops early.
const PATIENCE: Duration = Duration::from_secs(5);
/// The warm-up has one call for every ten measured calls; warm-up calls are not counted.
const WARM_UP: usize = 10;
/// Number of processes that are spawned.
const PROCESSES: usize = 50;
/// The spawned program, which does nothing.
const PROCESS: &str = "true";

/// The call that is measured.
#[derive(Clone)]
pub(super) struct Work {
    pub(super) tool: String,
    pub(super) input: String,
    pub(super) timeout: Option<Duration>,
    pub(super) amount: Amount,
}

/// The number of calls of each series.
#[derive(Debug, Clone, Copy)]
pub(super) enum Amount {
    /// Exactly this number of calls, however long they take.
    Exactly(usize),
    /// As many calls as fit into [`PATIENCE`], up to [`CALLS`].
    InReason,
}

impl Amount {
    pub(super) fn asked(calls: Option<u32>) -> Self {
        calls.map_or(Self::InReason, |calls| {
            Self::Exactly(usize::try_from(calls).unwrap_or(usize::MAX))
        })
    }

    fn most(self) -> usize {
        match self {
            Self::Exactly(calls) => calls,
            Self::InReason => CALLS,
        }
    }

    fn is_over(self, begun: Instant) -> bool {
        matches!(self, Self::InReason) && begun.elapsed() > PATIENCE
    }
}

/// The timings of one series of calls.
pub(super) struct Series {
    pub(super) callers: usize,
    /// The duration of each call, sorted. Never empty.
    sorted: Vec<Duration>,
    /// The time from the start of the first call to the end of the last.
    whole: Duration,
}

impl Series {
    fn new(callers: usize, mut times: Vec<Duration>, whole: Duration) -> Self {
        times.sort_unstable();
        Self { callers, sorted: times, whole }
    }

    pub(super) fn len(&self) -> usize {
        self.sorted.len()
    }

    /// Returns the duration at a percentile, given in thousandths.
    pub(super) fn at(&self, permille: usize) -> Duration {
        self.sorted
            .get(self.len().saturating_sub(1) * permille / 1_000)
            .copied()
            .unwrap_or_default()
    }

    pub(super) fn per_second(&self) -> f64 {
        self.len() as f64 / self.whole.as_secs_f64().max(f64::EPSILON)
    }
}

/// The timings of both series, and the peak memory of a guest.
pub(super) struct Taken {
    pub(super) one: Series,
    pub(super) many: Series,
    pub(super) warm_up: usize,
    pub(super) peak_memory: u64,
}

/// Makes the calls. The first failed call ends the benchmark and is returned as the error.
pub(super) async fn calls(
    host: &Arc<Host>,
    work: Work,
    callers: usize,
    interrupted: CancellationToken,
) -> Result<Taken, Box<ToolResult>> {
    let calling = Calling { host: host.clone(), work: Arc::new(work), interrupted };
    let warm_up = calling.work.amount.most().div_ceil(WARM_UP);
    let begun = Instant::now();
    let mut warmed = 0;
    let mut peak_memory = 0;
    while warmed < warm_up && !calling.work.amount.is_over(begun) {
        peak_memory = calling.one().await?.usage().peak_memory_bytes.max(peak_memory);
        warmed += 1;
    }
    let (one, peak) = alone(&calling).await?;
    let (many, more) = together(&calling, callers).await?;
    Ok(Taken { one, many, warm_up: warmed, peak_memory: peak_memory.max(peak).max(more) })
}

#[derive(Clone)]
struct Calling {
    host: Arc<Host>,
    work: Arc<Work>,
    interrupted: CancellationToken,
}

impl Calling {
    async fn one(&self) -> Result<ToolResult, Box<ToolResult>> {
        let call = Call::new(&self.work.tool, self.work.input.clone())
            .with_cancellation(self.interrupted.clone());
        let call = match self.work.timeout {
            Some(timeout) => call.with_timeout(timeout),
            None => call,
        };
        let result = self.host.dispatch(self.host.session(), call).await;
        if result.is_success() { Ok(result) } else { Err(Box::new(result)) }
    }

    /// Returns the duration of one call and the peak memory of its guest.
    async fn timed(&self) -> Result<(Duration, u64), Box<ToolResult>> {
        let start = Instant::now();
        let result = self.one().await?;
        Ok((start.elapsed(), result.usage().peak_memory_bytes))
    }
}

async fn alone(calling: &Calling) -> Result<(Series, u64), Box<ToolResult>> {
    let amount = calling.work.amount;
    let begun = Instant::now();
    let mut times = Vec::new();
    let mut peak = 0;
    while times.len() < amount.most() && (times.is_empty() || !amount.is_over(begun)) {
        let (time, memory) = calling.timed().await?;
        times.push(time);
        peak = memory.max(peak);
    }
    Ok((Series::new(1, times, begun.elapsed()), peak))
}

/// Shares the calls among concurrent callers. Each caller yields before each call, so that all
/// callers make progress; the wait for a thread counts as part of the call.
async fn together(calling: &Calling, callers: usize) -> Result<(Series, u64), Box<ToolResult>> {
    let left = Arc::new(AtomicUsize::new(calling.work.amount.most()));
    let begun = Instant::now();
    let tasks: Vec<_> =
        (0..callers).map(|_| tokio::spawn(caller(calling.clone(), left.clone(), begun))).collect();
    let mut times = Vec::new();
    let mut peak = 0;
    let mut failed = None;
    for task in tasks {
        match task.await {
            Ok(Ok((some, memory))) => {
                times.extend(some);
                peak = memory.max(peak);
            }
            Ok(Err(result)) => failed = Some(result),
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        }
    }
    match failed {
        Some(result) => Err(result),
        None => Ok((Series::new(callers, times, begun.elapsed()), peak)),
    }
}

async fn caller(
    calling: Calling,
    left: Arc<AtomicUsize>,
    begun: Instant,
) -> Result<(Vec<Duration>, u64), Box<ToolResult>> {
    let mut times = Vec::new();
    let mut peak = 0;
    let take = |left: usize| left.checked_sub(1);
    while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok() {
        let start = Instant::now();
        tokio::task::yield_now().await;
        let (_, memory) =
            calling.timed().await.inspect_err(|_| left.store(0, Ordering::Relaxed))?;
        times.push(start.elapsed());
        peak = memory.max(peak);
        if calling.work.amount.is_over(begun) {
            break;
        }
    }
    Ok((times, peak))
}

/// Spawns processes that do nothing, one after the other. Returns `None` if the program is missing.
pub(super) fn processes() -> Option<(&'static str, Series)> {
    let begun = Instant::now();
    let times: Option<Vec<Duration>> = (0..PROCESSES).map(|_| process()).collect();
    Some((PROCESS, Series::new(1, times?, begun.elapsed())))
}

/// Runs in the root directory, so that the workspace cannot influence which program runs.
fn process() -> Option<Duration> {
    let mut command = Command::new(PROCESS);
    command.current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    let status = command.status().ok()?;
    status.success().then(|| start.elapsed())
}
