//! Times, as written in a file, a variable or a flag.

use crate::dispatch::MAX_CONFIRMATION_TIMEOUT;
use crate::sandbox::{CompileLimits, limits};
use serde::de::{Deserialize, Deserializer, Error};
use std::time::Duration;

/// The shortest time that anything gets: what is shorter has ended before it begins.
const LEAST: Duration = Duration::from_millis(1);

/// The text of a time in a file, not yet parsed. A bare number is refused here, where its place in the file is known.
pub(super) struct Written(pub(super) String);

impl<'de> Deserialize<'de> for Written {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let like = match toml::Value::deserialize(deserializer)? {
            toml::Value::String(text) => return Ok(Self(text)),
            // Whoever leaves the unit out most likely thinks in seconds.
            toml::Value::Integer(seconds) if seconds > 0 => format!("{seconds}s"),
            _ => "30s".to_owned(),
        };
        Err(D::Error::custom(format!("a time is a text with its unit; write \"{like}\"")))
    }
}

/// Parses a duration such as `30s`, `5m` or `500ms`. Each has a largest value, which is told as what is accepted: a time
/// without one is added to a clock somewhere, and overflows there.
fn duration(key: &str, text: &str, largest: Duration, accepted: &str) -> Result<Duration, String> {
    let parsed = humantime::parse_duration(text)
        .map_err(|error| format!("`{key}` is not a duration: {error}; write it like 30s, 5m or 500ms"))?;
    if parsed < LEAST {
        return Err(format!("`{key}` is {text}; give at least 1ms"));
    }
    if parsed > largest { Err(format!("`{key}` is {text}; {accepted}")) } else { Ok(parsed) }
}

/// Parses the time of a call.
pub(crate) fn call_time(key: &str, text: &str) -> Result<Duration, String> {
    duration(key, text, limits::MAX_TIMEOUT, "at most 600s is accepted, the most that a call may take")
}

/// Parses the time that a compilation may take.
pub(super) fn compile_time(text: &str) -> Result<Duration, String> {
    duration("limits.compile_time", text, CompileLimits::MAX_TIME, "at most 1h is accepted")
}

/// Parses the time that a question stands.
pub(super) fn confirm_time(text: &str) -> Result<Duration, String> {
    duration("confirm.timeout", text, MAX_CONFIRMATION_TIMEOUT, "at most 24h is accepted")
}
