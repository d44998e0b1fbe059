//! Decimal numbers without floats: `1.5` is fifteen tenths on every machine.

/// A decimal number that is not negative: `digits` ÷ 10^`places`, without trailing zeroes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal {
    digits: u128,
    places: u32,
}

/// Why the product of a decimal number and its unit is not a 64-bit integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inexact {
    /// The product is not an integer.
    TooFine,
    /// The product exceeds the largest 64-bit integer.
    TooLarge,
}

/// The maximum number of decimal places. Values in use have fewer. If a number has this many places, and its
/// whole part fits into 64 bits, all its digits together are an integer that fits into 128 bits.
const PLACES_MAX: u32 = 18;

impl Decimal {
    /// Parses digits with at most one decimal point. Returns `None` for any other text, such as one with a
    /// sign or an exponent.
    pub fn parse(text: &str) -> Option<Decimal> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let digits_only = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !digits_only(whole) || !digits_only(fraction) {
            return None;
        }
        let fraction = fraction.trim_end_matches('0');
        let places = u32::try_from(fraction.len()).ok()?;
        if places > PLACES_MAX {
            return None;
        }
        let mut digits = whole.parse::<u64>().map(u128::from).ok()?;
        for byte in fraction.bytes() {
            digits = digits * 10 + u128::from(byte - b'0');
        }
        Some(Decimal { digits, places })
    }

    /// The number times `unit`, if that is a 64-bit integer.
    pub fn times(self, unit: u64) -> Result<u64, Inexact> {
        let product = self
            .digits
            .checked_mul(u128::from(unit))
            .ok_or(Inexact::TooLarge)?;
        let scale = 10_u128.pow(self.places);
        if !product.is_multiple_of(scale) {
            return Err(Inexact::TooFine);
        }
        u64::try_from(product / scale).map_err(|_| Inexact::TooLarge)
    }

    /// The number times `unit`, rounded down, if that fits into 64 bits.
    pub fn times_floor(self, unit: u64) -> Option<u64> {
        let product = self.digits.checked_mul(u128::from(unit))?;
        u64::try_from(product / 10_u128.pow(self.places)).ok()
    }

    /// The number as numerator and denominator, if they fit into 64 bits.
    pub fn fraction(self) -> Option<(u64, u64)> {
        Some((
            u64::try_from(self.digits).ok()?,
            10_u64.checked_pow(self.places)?,
        ))
    }
}

/// Splits `1.5ms` into the number and its unit.
pub(crate) fn split_unit(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    text.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::{Decimal, Inexact, split_unit};

    #[test]
    fn a_decimal_is_exact_or_refused() {
        let times = |text: &str, unit| Decimal::parse(text).map(|number| number.times(unit));
        assert_eq!(times("1.5", 1_000), Some(Ok(1_500)));
        assert_eq!(times("0.000001", 1_000_000), Some(Ok(1)));
        assert_eq!(times("1.500", 2), Some(Ok(3)));
        assert_eq!(times("0.3", 1), Some(Err(Inexact::TooFine)));
        assert_eq!(times("18446744073709551615", 1), Some(Ok(u64::MAX)));
        assert_eq!(
            times("18446744073709551615", 2),
            Some(Err(Inexact::TooLarge))
        );
        for text in [
            "",
            ".",
            "1.",
            ".5",
            "1.2.3",
            "-1",
            "+1",
            "1e3",
            "١",
            "18446744073709551616",
        ] {
            assert_eq!(Decimal::parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_unit_begins_where_the_number_ends() {
        assert_eq!(split_unit("1.5ms"), ("1.5", "ms"));
        assert_eq!(split_unit("10"), ("10", ""));
        assert_eq!(split_unit("-5ms"), ("", "-5ms"));
        assert_eq!(split_unit("5µs"), ("5", "µs"));
    }
}
