//! The text form of numbers.

/// The largest magnitude up to which a double represents every integer: 2^53.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Formats integers up to 2^53 without a fraction, and all other numbers as the shortest text that
/// parses to the same double.
pub(crate) fn show(value: f64) -> String {
    if value == 0.0 {
        // Floating-point zero has a sign, which would be confusing as the result of `0 * -1`.
        "0".to_owned()
    } else if value.fract() == 0.0 && value.abs() <= EXACT {
        format!("{value}")
    } else {
        format!("{value:?}")
    }
}

#[cfg(test)]
mod tests {
    use super::show;

    #[test]
    fn whole_numbers_have_no_fraction_up_to_2_to_the_53() {
        assert_eq!(show(3.0), "3");
        assert_eq!(show(-9_007_199_254_740_992.0), "-9007199254740992");
        assert_eq!(show(9_007_199_254_740_994.0), "9007199254740994.0");
        assert_eq!(show(1e300), "1e300");
    }

    #[test]
    fn other_numbers_have_the_shortest_round_trip_text() {
        assert_eq!(show(0.1 + 0.2), "0.30000000000000004");
        assert_eq!(show(0.5), "0.5");
        assert_eq!(show(1e-7), "1e-7");
    }

    #[test]
    fn zero_has_no_sign() {
        assert_eq!(show(-0.0), "0");
    }
}
