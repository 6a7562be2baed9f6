//! Reads the times of RFC 3339: of any year, at any offset, and leap seconds.

/// The seconds of a minute, an hour and a day.
const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
/// The microseconds of a second.
const SECOND: i64 = 1_000_000;

/// Returns the microseconds from the beginning of 1970 to a time, or `None` if the text is none.
pub(super) fn micros(text: &str) -> Option<i64> {
    let mut rest = Rest(text.as_bytes());
    let year = rest.number(4)?;
    rest.one_of(b"-")?;
    let month = rest.number(2)?;
    rest.one_of(b"-")?;
    let day = rest.number(2)?;
    rest.one_of(b"Tt")?;
    let hour = rest.number(2)?;
    rest.one_of(b":")?;
    let minute = rest.number(2)?;
    rest.one_of(b":")?;
    let second = rest.number(2)?;
    let fraction = rest.fraction()?;
    let offset = rest.offset()?;
    let is_time = hour < 24 && minute < 60 && second <= 60;
    let is_date = (1..=12).contains(&month) && (1..=days_of(year, month)).contains(&day);
    if !is_time || !is_date || !rest.0.is_empty() {
        return None;
    }
    let days = days_before(year, month) + day - 1;
    let seconds = days * DAY + hour * HOUR + minute * MINUTE + second - offset;
    Some(seconds * SECOND + fraction)
}

/// The text that is left to read.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn one_of(&mut self, accepted: &[u8]) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        accepted.contains(first).then_some(())?;
        self.0 = rest;
        Some(*first)
    }

    fn number(&mut self, digits: usize) -> Option<i64> {
        (0..digits).try_fold(0, |number, _| {
            let digit = self.one_of(b"0123456789")?;
            Some(number * 10 + i64::from(digit - b'0'))
        })
    }

    /// Returns the microseconds of a fraction of a second, which may be missing.
    fn fraction(&mut self) -> Option<i64> {
        if self.one_of(b".").is_none() {
            return Some(0);
        }
        let mut unit = SECOND / 10;
        let mut micros = self.number(1)? * unit;
        while let Some(digit) = self.number(1) {
            unit /= 10;
            micros += digit * unit;
        }
        Some(micros)
    }

    /// Returns the seconds by which a clock there is ahead of UTC.
    fn offset(&mut self) -> Option<i64> {
        let sign = match self.one_of(b"Zz+-")? {
            b'+' => 1,
            b'-' => -1,
            _ => return Some(0),
        };
        let hours = self.number(2)?;
        self.one_of(b":")?;
        let minutes = self.number(2)?;
        (hours < 24 && minutes < 60).then_some(sign * (hours * HOUR + minutes * MINUTE))
    }
}

/// Returns the number of days of a month.
fn days_of(year: i64, month: i64) -> i64 {
    let next = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
    days_before(next.0, next.1) - days_before(year, month)
}

/// Returns the days from the beginning of 1970 to that of a month, in the Gregorian calendar.
fn days_before(year: i64, month: i64) -> i64 {
    // Counted from March, so that the leap day is the last of its year.
    let (year, month) = if month < 3 { (year - 1, month + 9) } else { (year, month - 3) };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let of_the_year = (153 * month + 2) / 5;
    365 * year + leap_days + of_the_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_of_any_form_is_read() {
        for (text, expected) in [
            ("1970-01-01T00:00:00Z", 0),
            ("1970-01-01T00:00:00.000001Z", 1),
            ("1970-01-01t00:00:00.1234567z", 123_456),
            ("2000-02-29T12:00:00Z", 951_825_600 * SECOND),
            ("2026-01-31T12:00:00+01:00", 1_769_857_200 * SECOND),
            ("2026-01-31T12:00:00-00:30", 1_769_862_600 * SECOND),
            ("2016-12-31T23:59:60Z", 1_483_228_800 * SECOND),
            ("1969-12-31T23:59:59Z", -SECOND),
            ("0000-01-01T00:00:00Z", -62_167_219_200 * SECOND),
            ("9999-12-31T23:59:59.999999Z", 253_402_300_799_999_999),
        ] {
            assert_eq!(micros(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn each_day_follows_the_day_before() {
        let mut day = micros("1600-01-01T00:00:00Z");
        for year in 1600..2400 {
            for month in 1..=12 {
                for of_month in 1..=days_of(year, month) {
                    let text = format!("{year}-{month:02}-{of_month:02}T00:00:00Z");
                    assert_eq!(micros(&text), day, "{text}");
                    day = day.map(|day| day + DAY * SECOND);
                }
            }
        }
    }

    #[test]
    fn text_that_is_no_time_is_refused() {
        for text in [
            "",
            "2026-01-31",
            "2026-01-31T12:00:00",
            "2026-01-31 12:00:00Z",
            "2026-01-31T12:00Z",
            "2026-01-31T12:00:00.Z",
            "2026-01-31T12:00:00Z ",
            "2026-01-31T12:00:00+0100",
            "2026-01-31T12:00:00+24:00",
            "2026-01-31T12:00:00+01:60",
            "2026-01-31T24:00:00Z",
            "2026-01-31T12:60:00Z",
            "2026-01-31T12:00:61Z",
            "2026-02-29T12:00:00Z",
            "2026-04-31T12:00:00Z",
            "2026-00-01T12:00:00Z",
            "2026-13-01T12:00:00Z",
            "2026-01-00T12:00:00Z",
            "+026-01-01T12:00:00Z",
            "12026-01-01T12:00:00Z",
            "2026-01-31T12:00:0\u{661}Z",
        ] {
            assert_eq!(micros(text), None, "{text}");
        }
    }
}
