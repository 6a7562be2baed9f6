//! Validation of the embedder's times, with the same bounds as the configuration.

use super::BuildError;
use crate::dispatch::MAX_CONFIRMATION_TIMEOUT;
use crate::execution::ToolTime;
use crate::sandbox::{CompileLimits, Compiler, limits};
use std::collections::BTreeMap;
use std::time::Duration;

/// The shortest time that is accepted.
const LEAST: Duration = Duration::from_millis(1);

/// Refuses a time out of range. An unbounded time would overflow when added to a clock later.
pub(super) fn check(
    question: Option<Duration>,
    tools: &BTreeMap<String, ToolTime>,
    compiler: &Compiler,
) -> Result<(), BuildError> {
    within("confirmation_timeout", question, MAX_CONFIRMATION_TIMEOUT, "1ms to 24h are accepted")?;
    within(
        "tool_timeout",
        tools.values().map(|time| time.time()),
        limits::MAX_TIMEOUT,
        "1ms to 600s are accepted",
    )?;
    within("compile_time", [compiler.time()], CompileLimits::MAX_TIME, "1ms to 1h are accepted")
}

fn within(
    name: &'static str,
    times: impl IntoIterator<Item = Duration>,
    largest: Duration,
    accepted: &'static str,
) -> Result<(), BuildError> {
    let fits = |time: Duration| (LEAST..=largest).contains(&time);
    if times.into_iter().all(fits) { Ok(()) } else { Err(BuildError::Limit { name, accepted }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{CacheMode, Host, HostBuilder};
    use crate::plugins::Shipped;
    use crate::sandbox::ChildCompiler;

    const MOST: Duration = Duration::MAX;

    fn compiling(time: Duration) -> Compiler {
        let limits = CompileLimits { time, ..CompileLimits::default() };
        Compiler::Child(ChildCompiler::palisade("/nowhere").limits(limits))
    }

    #[test]
    fn memory_of_all_calls_has_a_minimum_and_a_maximum() {
        let build = |total_memory| {
            let limits = limits::Limits { total_memory, ..limits::Limits::default() };
            Host::builder().shipped(Shipped::LeftOut).cache(CacheMode::Off).limits(limits).build()
        };
        for accepted in [limits::MEMORY, limits::MAX_TOTAL_MEMORY] {
            assert!(build(accepted).is_ok(), "{accepted}");
        }
        for refused in [limits::MEMORY - 1, limits::MAX_TOTAL_MEMORY + 1, u64::MAX] {
            let error = build(refused).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(error.contains("at most 16TiB are accepted"), "{refused}: {error}");
        }
    }

    #[test]
    fn timeouts_have_a_minimum_and_a_maximum() {
        let host = || Host::builder().shipped(Shipped::LeftOut).cache(CacheMode::Off);
        type Set = fn(HostBuilder, Duration) -> HostBuilder;
        let cases: [(&str, Set, Duration); 3] = [
            (
                "confirmation_timeout",
                |host, time| host.confirmation_timeout(time),
                MAX_CONFIRMATION_TIMEOUT,
            ),
            ("tool_timeout", |host, time| host.tool_timeout("t", time), limits::MAX_TIMEOUT),
            ("compile_time", |host, time| host.compiler(compiling(time)), CompileLimits::MAX_TIME),
        ];
        for (limit, set, largest) in cases {
            for time in [LEAST, largest] {
                assert!(set(host(), time).build().is_ok(), "{limit}: {time:?}");
            }
            for time in [
                Duration::ZERO,
                LEAST - Duration::from_nanos(1),
                largest + Duration::from_nanos(1),
                MOST,
            ] {
                let refused = set(host(), time).build().err().map(|error| error.to_string());
                assert!(refused.is_some_and(|text| text.contains(limit)), "{limit}: {time:?}");
            }
        }
    }
}
