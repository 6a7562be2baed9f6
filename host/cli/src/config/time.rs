//! Parses durations from a file, a variable or a flag.

use palisade::internal::MAX_CONFIRMATION_TIMEOUT;
use palisade::sandbox::{CompileLimits, limits};
use serde::de::{Deserialize, Deserializer, Error};
use std::time::Duration;

/// The shortest accepted duration: a shorter deadline would pass before any work starts.
const LEAST: Duration = Duration::from_millis(1);

/// The text of a duration in a file, not yet parsed. A bare number is refused here, where its
/// location in the file is known.
pub(super) struct Written(pub(super) String);

impl<'de> Deserialize<'de> for Written {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let like = match toml::Value::deserialize(deserializer)? {
            toml::Value::String(text) => return Ok(Self(text)),
            // Suggest seconds for a positive integer without a unit.
            toml::Value::Integer(seconds) if seconds > 0 => format!("{seconds}s"),
            _ => "30s".to_owned(),
        };
        Err(D::Error::custom(format!("a time is a text with its unit; write \"{like}\"")))
    }
}

/// Parses a duration such as `30s`, `5m` or `500ms`. Each key has a maximum: an unbounded duration
/// would overflow when added to a clock.
fn duration(key: &str, text: &str, largest: Duration, accepted: &str) -> Result<Duration, String> {
    let parsed = humantime::parse_duration(text).map_err(|error| {
        format!("`{key}` is not a duration: {error}; write it like 30s, 5m or 500ms")
    })?;
    if parsed < LEAST {
        return Err(format!("`{key}` is {text}; give at least 1ms"));
    }
    if parsed > largest { Err(format!("`{key}` is {text}; {accepted}")) } else { Ok(parsed) }
}

/// Parses the timeout of a call.
pub(crate) fn call_time(key: &str, text: &str) -> Result<Duration, String> {
    duration(
        key,
        text,
        limits::MAX_TIMEOUT,
        "at most 600s is accepted, the most that a call may take",
    )
}

/// Parses the time limit of a compilation.
pub(super) fn compile_time(text: &str) -> Result<Duration, String> {
    duration("limits.compile_time", text, CompileLimits::MAX_TIME, "at most 1h is accepted")
}

/// Parses the age at which the journal removes records.
pub(super) fn journal_age(text: &str) -> Result<Duration, String> {
    const LARGEST: Duration = Duration::from_secs(3_660 * 24 * 60 * 60);
    let age = duration("journal.max_age", text, LARGEST, "at most 10years is accepted")?;
    match age < Duration::from_secs(60) {
        true => Err(format!("`journal.max_age` is {text}; give at least 1m")),
        false => Ok(age),
    }
}

/// Parses the timeout of a confirmation.
pub(super) fn confirm_time(text: &str) -> Result<Duration, String> {
    duration("confirm.timeout", text, MAX_CONFIRMATION_TIMEOUT, "at most 24h is accepted")
}
