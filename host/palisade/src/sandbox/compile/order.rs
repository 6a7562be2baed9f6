//! The parameters of a compilation in a child process.

use super::compiler::CompileLimits;
use crate::sandbox::engine::{Allocation, CodeKind, CodeTier};
use std::str::FromStr;

/// The parameters that a child needs before it reads its input. They are passed as four arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) kind: CodeKind,
    /// CPU time, in seconds.
    pub(super) seconds: u64,
    /// Address space, in bytes.
    pub(super) memory: u64,
}

impl Order {
    pub(super) fn new(kind: CodeKind, limits: CompileLimits) -> Self {
        Self { kind, seconds: limits.in_whole_seconds().time.as_secs(), memory: limits.memory }
    }

    pub(super) fn arguments(self) -> [String; 4] {
        let allocation = match self.kind.allocation {
            Allocation::Pooled => "pooled",
            Allocation::OnDemand => "on-demand",
            Allocation::Scarce => "scarce",
        };
        [
            allocation.to_owned(),
            self.kind.tier.name().to_owned(),
            self.seconds.to_string(),
            self.memory.to_string(),
        ]
    }

    pub(super) fn parse(arguments: &[String]) -> Option<Self> {
        let [allocation, tier, seconds, memory] = arguments else { return None };
        let allocation = match allocation.as_str() {
            "pooled" => Allocation::Pooled,
            "on-demand" => Allocation::OnDemand,
            "scarce" => Allocation::Scarce,
            _ => return None,
        };
        Some(Self {
            kind: CodeKind { allocation, tier: CodeTier::from_name(tier)? },
            seconds: u64::from_str(seconds).ok()?,
            memory: u64::from_str(memory).ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const POOLED: CodeKind = CodeKind { allocation: Allocation::Pooled, tier: CodeTier::Optimized };

    #[test]
    fn child_has_whole_cpu_seconds_and_ten_times_the_wall_time() {
        for (millis, seconds) in [(1, 1), (999, 1), (1_000, 1), (1_001, 2), (180_000, 180)] {
            let limits =
                CompileLimits { time: Duration::from_millis(millis), ..CompileLimits::default() };
            assert_eq!(Order::new(POOLED, limits).seconds, seconds, "{millis}");
            assert_eq!(limits.wall(), Duration::from_millis(millis * 10));
            assert_eq!(
                limits.in_whole_seconds().wall(),
                Duration::from_secs(seconds * 10),
                "{millis}"
            );
        }
    }

    #[test]
    fn order_survives_the_command_line() {
        for allocation in [Allocation::Pooled, Allocation::OnDemand, Allocation::Scarce] {
            for tier in CodeTier::FASTEST_FIRST {
                let order = Order::new(CodeKind { allocation, tier }, CompileLimits::default());
                assert_eq!(Order::parse(&order.arguments()), Some(order));
            }
        }
        for wrong in [
            &["pooled", "optimized", "1"][..],
            &["pool", "optimized", "1", "1"],
            &["pooled", "fast", "1", "1"],
            &["pooled", "optimized", "-1", "1"],
            &["pooled", "optimized", "1", "1", "1"],
        ] {
            let wrong: Vec<String> = wrong.iter().map(|part| (*part).to_owned()).collect();
            assert_eq!(Order::parse(&wrong), None);
        }
    }
}
