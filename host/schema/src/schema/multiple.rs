//! `multipleOf` in exact decimal arithmetic with constant cost.
//!
//! The validator's own keyword uses fractions of big integers for numbers far from one: 16 µs and
//! more for `1.797e308`. A JSON number has at most twenty digits and a power of ten, so modular
//! arithmetic suffices.

use jsonschema::json::Node;
use jsonschema::paths::Location;
use jsonschema::{Keyword, ValidationError};
use serde_json::{Map, Number, Value};

use super::meter::{Metered, Seen, divide};

/// The name of the keyword.
pub(super) const KEYWORD: &str = "multipleOf";

/// Creates the keyword of a subschema. The meta-schema has refused values that are not positive
/// numbers.
pub(super) fn keyword<'a>(
    _: &'a Map<String, Value>,
    divisor: &'a Value,
    _: Location,
) -> Result<Box<dyn for<'i> Keyword<'i, Metered>>, ValidationError<'a>> {
    let Value::Number(number) = divisor else {
        return Err(ValidationError::custom("has to be a number"));
    };
    let wanted = format!("want a multiple of {number}");
    Ok(Box::new(MultipleOf { divisor: Decimal::of(number), wanted }))
}

struct MultipleOf {
    divisor: Decimal,
    wanted: String,
}

impl<'i> Keyword<'i, Metered> for MultipleOf {
    fn validate(&self, instance: Seen<'i>) -> Result<(), ValidationError<'i>> {
        if self.is_valid(instance) {
            Ok(())
        } else {
            Err(ValidationError::custom(self.wanted.clone()))
        }
    }

    fn is_valid(&self, instance: Seen<'i>) -> bool {
        let Some(number) = instance.as_number() else { return true };
        divide() && Decimal::of(number).is_multiple_of(self.divisor)
    }
}

/// The magnitude of a number as a decimal: `digits * 10^exponent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Decimal {
    digits: u64,
    exponent: i32,
}

impl Decimal {
    fn of(number: &Number) -> Self {
        if let Some(whole) = number.as_u64().or_else(|| number.as_i64().map(i64::unsigned_abs)) {
            return Self { digits: whole, exponent: 0 };
        }
        // The shortest decimal that parses to this float, such as `1.797e308`, is unique.
        let text = number.as_f64().map(|float| format!("{:e}", float.abs())).unwrap_or_default();
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let value = |digits: &str| {
            digits.bytes().fold(0_u64, |sum, digit| sum * 10 + u64::from(digit - b'0'))
        };
        let shift = i32::try_from(fraction.len()).unwrap_or(0);
        let digits = value(whole) * 10_u64.pow(shift.unsigned_abs()) + value(fraction);
        Self { digits, exponent: exponent.parse::<i32>().unwrap_or(0) - shift }
    }

    fn is_multiple_of(self, divisor: Self) -> bool {
        if self.digits == 0 || divisor.digits == 0 {
            return self.digits == 0;
        }
        match self.exponent - divisor.exponent {
            // The divisor has more trailing zeros than the number has digits, so the remainder is
            // the number.
            shift if shift < -19 => false,
            shift if shift < 0 => {
                let divisor = u128::from(divisor.digits) * 10_u128.pow(shift.unsigned_abs());
                u128::from(self.digits).is_multiple_of(divisor)
            }
            shift => {
                let modulus = u128::from(divisor.digits);
                (u128::from(self.digits) % modulus * power_of_ten(shift.unsigned_abs(), modulus))
                    .is_multiple_of(modulus)
            }
        }
    }
}

/// Computes `10^exponent` modulo a number of 64 bits.
fn power_of_ten(mut exponent: u32, modulus: u128) -> u128 {
    let mut power = 1 % modulus;
    let mut square = 10 % modulus;
    while exponent > 0 {
        if exponent % 2 == 1 {
            power = power * square % modulus;
        }
        square = square * square % modulus;
        exponent /= 2;
    }
    power
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn divides(divisor: &Value, number: &Value) -> Option<bool> {
        let [divisor, number] = [divisor, number].map(|value| value.as_number().map(Decimal::of));
        Some(number?.is_multiple_of(divisor?))
    }

    #[test]
    fn number_has_its_decimal_value() {
        for (number, digits, exponent) in [
            (json!(0), 0, 0),
            (json!(-12), 12, 0),
            (json!(0.1), 1, -1),
            (json!(-12.5), 125, -1),
            (json!(1.797e308), 1797, 305),
            (json!(5e-324), 5, -324),
            (json!(1070468.14), 107046814, -2),
            (json!(u64::MAX), u64::MAX, 0),
            (json!(i64::MIN), 1 << 63, 0),
        ] {
            assert_eq!(
                number.as_number().map(Decimal::of),
                Some(Decimal { digits, exponent }),
                "{number}"
            );
        }
    }

    #[test]
    fn multiple_of_is_exact_for_any_magnitude() {
        for (divisor, number) in [
            (json!(0.5), json!(1.797e308)),
            (json!(5e-324), json!(1.797e308)),
            (json!(0.01), json!(1070468.14)),
            (json!(1e-8), json!(12391239123_u64)),
            (json!(7), json!(7e300)),
            (json!(1e300), json!(3e301)),
            (json!(1.5), json!(-4.5)),
            (json!(3), json!(0)),
            (json!(u64::MAX), json!(u64::MAX)),
            (json!(0.1), json!(10)),
        ] {
            assert_eq!(
                divides(&divisor, &number),
                Some(true),
                "{number} is a multiple of {divisor}"
            );
        }
        for (divisor, number) in [
            (json!(0.123456789), json!(1e308)),
            (json!(3), json!(1e300)),
            (json!(2), json!(5e-324)),
            (json!(1e300), json!(1)),
            (json!(0.01), json!(0.0075)),
            (json!(10), json!(0.1)),
            (json!(1e20), json!(u64::MAX)),
        ] {
            assert_eq!(
                divides(&divisor, &number),
                Some(false),
                "{number} is no multiple of {divisor}"
            );
        }
    }
}
