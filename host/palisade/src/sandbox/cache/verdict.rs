//! The record of an earlier compilation that ended without code, so that no later start spends the
//! same time again.

use crate::sandbox::compile::{CompileError, CompileLimits};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The version of the rules. Raised whenever a compiler accepts more than before, so that older
/// records count as absent.
const RULES: u32 = 2;

/// The record of one compilation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Verdict {
    rules: u32,
    host: String,
    end: Ending,
}

/// The end of a compilation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Ending {
    /// Unfinished: the compilation is in progress, its process ended, or the compiler did not
    /// complete.
    Unfinished,
    /// The engine rejects the component.
    Invalid(String),
    /// The compilation exceeded its CPU time limit, in milliseconds.
    Time(u64),
    /// The compilation exceeded its memory limit, in bytes.
    Memory(u64),
    /// The compiled code exceeded its size limit, in bytes.
    Code(u64),
}

impl Verdict {
    /// Creates the record of an unfinished compilation.
    pub(crate) fn unfinished() -> Self {
        Self::new(Ending::Unfinished)
    }

    /// Creates the record of a failed compilation. Returns `None` if the compiler did not run, or
    /// if its run was cancelled.
    pub(crate) fn from_error(error: &CompileError) -> Option<Self> {
        match error {
            CompileError::Invalid(reason) => Some(Ending::Invalid(reason.clone())),
            CompileError::Time { max } => {
                Some(Ending::Time(u64::try_from(max.as_millis()).unwrap_or(u64::MAX)))
            }
            CompileError::Memory { max } => Some(Ending::Memory(*max)),
            CompileError::Code { max } => Some(Ending::Code(*max)),
            CompileError::Wall { .. } | CompileError::Crashed(_) => Some(Ending::Unfinished),
            CompileError::Busy
            | CompileError::Cancelled
            | CompileError::Size { .. }
            | CompileError::Start(_) => None,
        }
        .map(Self::new)
    }

    /// Returns the error that another compilation within these limits would end with, if that is
    /// known.
    pub(crate) fn error_within(&self, limits: CompileLimits) -> Option<CompileError> {
        match &self.end {
            Ending::Unfinished => None,
            Ending::Invalid(reason) => Some(CompileError::Invalid(reason.clone())),
            Ending::Time(millis) => (Duration::from_millis(*millis) >= limits.time)
                .then_some(CompileError::Time { max: limits.time }),
            Ending::Memory(bytes) => {
                (*bytes >= limits.memory).then_some(CompileError::Memory { max: limits.memory })
            }
            Ending::Code(max) => Some(CompileError::Code { max: *max }),
        }
    }

    fn new(end: Ending) -> Self {
        Self { rules: RULES, host: env!("CARGO_PKG_VERSION").to_owned(), end }
    }

    /// Parses a record. Returns `None` unless this version of the host wrote it.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let verdict: Self = serde_json::from_slice(bytes).ok()?;
        (verdict.rules == RULES && verdict.host == env!("CARGO_PKG_VERSION")).then_some(verdict)
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        // Serialisation fails only for maps with keys that are not strings. There are none.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn within(seconds: u64, memory: u64) -> CompileLimits {
        CompileLimits { time: Duration::from_secs(seconds), memory }
    }

    #[test]
    fn verdict_applies_to_equal_and_stricter_limits() {
        let time = CompileError::Time { max: Duration::from_secs(5) };
        let verdict =
            Verdict::from_error(&time).and_then(|verdict| Verdict::parse(&verdict.to_bytes()));
        let held = |limits| verdict.as_ref().and_then(|verdict| verdict.error_within(limits));
        assert_eq!(held(within(5, 1)), Some(time));
        assert_eq!(held(within(2, 1)), Some(CompileError::Time { max: Duration::from_secs(2) }));
        assert_eq!(held(within(6, 1)), None);
        let memory = Verdict::from_error(&CompileError::Memory { max: 100 });
        let held = |limits| memory.as_ref().and_then(|verdict| verdict.error_within(limits));
        assert_eq!((held(within(1, 100)).is_some(), held(within(1, 101))), (true, None));
    }

    #[test]
    fn only_verdicts_about_the_component_are_stored() {
        for error in [
            CompileError::Wall { max: Duration::from_secs(1) },
            CompileError::Crashed(String::new()),
        ] {
            let kept = Verdict::from_error(&error);
            assert_eq!(kept, Some(Verdict::unfinished()), "{error:?}");
            assert_eq!(
                kept.and_then(|kept| kept.error_within(CompileLimits::default())),
                None,
                "{error:?}"
            );
        }
        for error in [
            CompileError::Busy,
            CompileError::Cancelled,
            CompileError::Size { max: 1 },
            CompileError::Start(String::new()),
        ] {
            assert_eq!(Verdict::from_error(&error), None, "{error:?}");
        }
        let other = Verdict { host: "0.0.0".to_owned(), ..Verdict::unfinished() };
        assert_eq!(
            Verdict::parse(&other.to_bytes()),
            None,
            "another version of the host may accept it"
        );
    }
}
