//! Probabilities: `10%`, `0.5%`, `1:10`. A bare number is refused, because similar tools disagree on whether
//! `1` means one percent or always.

use dashpot_engine::Ratio;

use super::ParseError;
use super::decimal::Decimal;

/// A probability of zero.
pub const NEVER: Ratio = match Ratio::new(0, 1) {
    Some(never) => never,
    None => panic!("0 of 1 is a ratio"),
};

/// Parses a probability above 0 into an exact ratio in lowest terms.
pub fn parse_probability(text: &str) -> Result<Ratio, ParseError> {
    let (hits, cases) = match (text.strip_suffix('%'), text.split_once(':')) {
        (Some(percent), _) => percent_fraction(percent).ok_or_else(|| no_probability(text))?,
        (None, Some((hits, cases))) => match (hits.parse(), cases.parse()) {
            (Ok(hits), Ok(cases)) => (hits, cases),
            _ => return Err(no_probability(text)),
        },
        (None, None) => return Err(no_unit(text)),
    };
    if hits == 0 || cases == 0 {
        return Err(ParseError::new(format!(
            "'{text}' would never inject: give a probability above 0%"
        )));
    }
    lowest_terms(hits, cases)
        .ok_or_else(|| ParseError::new(format!("'{text}' is above 100%: give at most 100% or 1:1")))
}

/// Parses a share of a whole: like [`parse_probability`], but the share may be zero.
pub fn parse_share(text: &str) -> Result<Ratio, ParseError> {
    if text == "0%" {
        return Ok(NEVER);
    }
    parse_probability(text)
}

/// The probability as a percentage if that is exact, otherwise as a ratio.
pub(crate) fn format_probability(ratio: Ratio) -> String {
    let (hits, cases) = (ratio.numerator(), ratio.denominator());
    let millionths = u128::from(hits) * 100_000_000;
    if !millionths.is_multiple_of(u128::from(cases)) {
        return format!("{hits}:{cases}");
    }
    let millionths = millionths / u128::from(cases);
    let text = format!("{}.{:06}", millionths / 1_000_000, millionths % 1_000_000);
    format!("{}%", text.trim_end_matches('0').trim_end_matches('.'))
}

fn percent_fraction(percent: &str) -> Option<(u64, u64)> {
    let (hits, cases) = Decimal::parse(percent)?.fraction()?;
    Some((hits, cases.checked_mul(100)?))
}

fn lowest_terms(hits: u64, cases: u64) -> Option<Ratio> {
    let divisor = greatest_common_divisor(hits, cases);
    Ratio::new(hits / divisor, cases / divisor)
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

fn no_probability(text: &str) -> ParseError {
    ParseError::new(format!(
        "'{text}' is not a probability: write 10%, 0.5% or 1:10"
    ))
}

fn no_unit(text: &str) -> ParseError {
    if Decimal::parse(text).is_none() {
        return no_probability(text);
    }
    ParseError::new(format!(
        "'{text}' has no unit: write {text}% for {text} in a hundred, or a ratio such as 1:10"
    ))
}

#[cfg(test)]
mod tests {
    use super::{format_probability, parse_probability};
    use dashpot_engine::Ratio;
    use proptest::prelude::*;

    #[test]
    fn percentages_and_ratios_are_exact() {
        for (text, hits, cases) in [
            ("10%", 1, 10),
            ("0.5%", 1, 200),
            ("100%", 1, 1),
            ("0.0001%", 1, 1_000_000),
            ("1:10", 1, 10),
            ("2:6", 1, 3),
        ] {
            assert_eq!(
                parse_probability(text).ok(),
                Ratio::new(hits, cases),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_refused_says_what_to_write() {
        for (text, message) in [
            (
                "10",
                "'10' has no unit: write 10% for 10 in a hundred, or a ratio such as 1:10",
            ),
            (
                "0.1",
                "'0.1' has no unit: write 0.1% for 0.1 in a hundred, or a ratio such as 1:10",
            ),
            ("101%", "'101%' is above 100%: give at most 100% or 1:1"),
            ("11:10", "'11:10' is above 100%: give at most 100% or 1:1"),
            ("0%", "'0%' would never inject: give a probability above 0%"),
            ("-1%", "'-1%' is not a probability: write 10%, 0.5% or 1:10"),
            (
                "ten%",
                "'ten%' is not a probability: write 10%, 0.5% or 1:10",
            ),
        ] {
            let error = parse_probability(text).map_err(|e| e.to_string());
            assert_eq!(error, Err(message.to_owned()), "{text}");
        }
    }

    #[test]
    fn a_percentage_is_shown_where_it_is_exact() {
        for (typed, shown) in [
            ("1:200", "0.5%"),
            ("10%", "10%"),
            ("1:3", "1:3"),
            ("1:1", "100%"),
        ] {
            assert_eq!(
                parse_probability(typed).map(format_probability),
                Ok(shown.to_owned())
            );
        }
    }

    proptest! {
        #[test]
        fn what_is_shown_parses_back(hits in 1..u64::MAX, more: u64) {
            let ratio = parse_probability(&format!("{hits}:{}", hits.saturating_add(more)));
            let again = ratio.clone().and_then(|r| parse_probability(&format_probability(r)));
            prop_assert_eq!(again, ratio);
        }
    }
}
