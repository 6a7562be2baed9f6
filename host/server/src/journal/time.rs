//! Points in time as the journal stores them. The only file of this crate that reads the wall
//! clock, which dates records; nothing waits by it.

mod rfc3339;

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

/// The last second of the year 9999, which is the last that its text can express.
const LAST: i64 = 253_402_300_799_999_999;

/// A point in time in whole microseconds since 1970, from that year to 9999.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// Returns the time of the wall clock.
    #[must_use]
    pub fn now() -> Self {
        SystemTime::now().into()
    }

    /// Takes microseconds since 1970. A number outside the range becomes its nearest end.
    #[must_use]
    pub fn from_micros(micros: i64) -> Self {
        Self(micros.clamp(0, LAST))
    }

    /// Returns the microseconds since 1970.
    #[must_use]
    pub fn micros(self) -> i64 {
        self.0
    }

    /// Returns the point in time that is this much earlier, but not before 1970.
    #[must_use]
    pub fn before(self, age: Duration) -> Self {
        Self::from_micros(self.0.saturating_sub(i64::try_from(age.as_micros()).unwrap_or(i64::MAX)))
    }
}

impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self::from_micros(i64::try_from(since.as_micros()).unwrap_or(LAST))
    }
}

impl From<Timestamp> for SystemTime {
    fn from(time: Timestamp) -> Self {
        Self::UNIX_EPOCH + Duration::from_micros(time.0.unsigned_abs())
    }
}

/// Writes the time as in RFC 3339, in UTC with microseconds, as the lines of events do.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&humantime::format_rfc3339_micros((*self).into()), f)
    }
}

/// A text that is no point in time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "this is not a time as in RFC 3339, such as `2026-01-31T12:00:00Z` or \
     `2026-01-31T12:00:00+01:00`"
)]
pub struct NoTimestamp;

/// Reads any time of RFC 3339. One before 1970 becomes the beginning of that year.
impl FromStr for Timestamp {
    type Err = NoTimestamp;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        rfc3339::micros(text).map(Self::from_micros).ok_or(NoTimestamp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_read_back_to_the_microsecond() {
        for micros in [0, 1, 1_700_000_000_123_456, LAST] {
            let time = Timestamp::from_micros(micros);
            assert_eq!(Timestamp::from(SystemTime::from(time)), time);
            assert_eq!(time.to_string().parse(), Ok(time), "{time}");
        }
        assert_eq!(Timestamp::from_micros(1).to_string(), "1970-01-01T00:00:00.000001Z");
    }

    #[test]
    fn time_out_of_range_is_its_nearest_end() {
        assert_eq!(Timestamp::from_micros(-1).micros(), 0);
        assert_eq!(Timestamp::from_micros(i64::MAX).to_string(), "9999-12-31T23:59:59.999999Z");
        assert_eq!(Timestamp::from_micros(5).before(Duration::MAX).micros(), 0);
        assert_eq!("yesterday".parse::<Timestamp>(), Err(NoTimestamp));
    }
}
