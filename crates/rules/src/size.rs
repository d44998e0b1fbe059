//! Sizes in bytes, such as `4K`, `1.5G`; ranges of sizes, `A..B`; and bandwidths, `100M/s`.
//!
//! The units are powers of 1024, with or without `iB`. `MB` is refused, because many similar tools mean 10^6
//! bytes by it.

use super::ParseError;
use super::decimal::{Decimal, Inexact, split_unit};

const UNITS: [(&str, u64); 4] = [
    ("T", 1 << 40),
    ("G", 1 << 30),
    ("M", 1 << 20),
    ("K", 1 << 10),
];

/// Parses a number of bytes.
pub fn parse_size(text: &str) -> Result<u64, ParseError> {
    let (number, unit) = split_unit(text);
    let Some(decimal) = Decimal::parse(number) else {
        return Err(ParseError::new(format!(
            "'{text}' is not a size: write 4096, 4K, 1.5G or 1GiB"
        )));
    };
    let unit_bytes = bytes_of(unit).ok_or_else(|| {
        ParseError::new(format!(
            "'{unit}' in '{text}' is not a unit of size: those are K, M, G and T (powers of 1024)"
        ))
    })?;
    decimal.times(unit_bytes).map_err(|inexact| match inexact {
        Inexact::TooFine => ParseError::new(format!("'{text}' is not a whole number of bytes")),
        Inexact::TooLarge => ParseError::new(format!("'{text}' is too large: at most 16777215T")),
    })
}

/// Parses a range `A..B` of bytes, which must not be empty.
pub fn parse_range(text: &str) -> Result<(u64, u64), ParseError> {
    let Some((start, end)) = text.split_once("..") else {
        return Err(ParseError::new(format!(
            "'{text}' is not a range: write 0..1G"
        )));
    };
    if end.is_empty() {
        return Err(ParseError::new(format!(
            "'{text}' has no end: write both, such as 1G..2G"
        )));
    }
    let range = (parse_size(start)?, parse_size(end)?);
    if range.0 >= range.1 {
        return Err(ParseError::new(format!(
            "'{text}' holds no byte: its start must be below its end"
        )));
    }
    Ok(range)
}

/// Parses a number of bytes per second. A bare number is refused, as a bare time is: most people who write 100
/// mean 100 MB/s.
pub fn parse_bandwidth(text: &str) -> Result<u64, ParseError> {
    let amount = text.strip_suffix("/s").unwrap_or(text);
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number(amount) {
        return Err(ParseError::new(format!(
            "'{text}' has no unit: did you mean {amount}M? ({amount}B: bytes per second)"
        )));
    }
    let bytes = amount.strip_suffix('B').filter(|number| is_number(number));
    let rate = parse_size(bytes.unwrap_or(amount))?;
    if rate == 0 {
        return Err(ParseError::new(format!(
            "I/Os at '{text}' would never end: give at least 1B/s, or use --hang"
        )));
    }
    Ok(rate)
}

/// The words that [`parse_bandwidth`] takes.
pub(crate) fn format_bandwidth(rate: u64) -> String {
    let words = format_size(rate);
    let has_unit = words.ends_with(|last: char| !last.is_ascii_digit());
    words + if has_unit { "" } else { "B" }
}

/// The size in the largest unit of which it is a whole multiple: `4K`, `1536M`, `7`.
pub fn format_size(bytes: u64) -> String {
    let whole = |(_, size): &&(&str, u64)| bytes != 0 && bytes.is_multiple_of(*size);
    match UNITS.iter().find(whole) {
        Some((unit, size)) => format!("{}{unit}", bytes / size),
        None => bytes.to_string(),
    }
}

fn bytes_of(unit: &str) -> Option<u64> {
    let letter = unit.strip_suffix("iB").unwrap_or(unit).to_ascii_uppercase();
    if letter.is_empty() && unit.is_empty() {
        return Some(1);
    }
    UNITS
        .iter()
        .find(|(name, _)| *name == letter)
        .map(|(_, size)| *size)
}

#[cfg(test)]
mod tests {
    use super::{format_bandwidth, format_size, parse_bandwidth, parse_range, parse_size};
    use proptest::prelude::*;

    #[test]
    fn units_are_powers_of_1024() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4_096),
            ("4K", 4_096),
            ("4k", 4_096),
            ("4KiB", 4_096),
            ("1.5G", 3 << 29),
            ("2T", 2 << 40),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn what_is_refused_says_what_to_write() {
        for (text, message) in [
            (
                "4KB",
                "'KB' in '4KB' is not a unit of size: those are K, M, G and T (powers of 1024)",
            ),
            (
                "4iB",
                "'iB' in '4iB' is not a unit of size: those are K, M, G and T (powers of 1024)",
            ),
            ("0.3K", "'0.3K' is not a whole number of bytes"),
            ("16777216T", "'16777216T' is too large: at most 16777215T"),
            ("-1G", "'-1G' is not a size: write 4096, 4K, 1.5G or 1GiB"),
        ] {
            let error = parse_size(text).map_err(|e| e.to_string());
            assert_eq!(error, Err(message.to_owned()), "{text}");
        }
    }

    #[test]
    fn ranges_hold_a_byte() {
        assert_eq!(parse_range("4K..1M"), Ok((4_096, 1 << 20)));
        for text in ["1M..1M", "2..1", "4K", "4K..", "..4K", "4K...8K", "4K-8K"] {
            assert!(parse_range(text).is_err(), "{text}");
        }
    }

    #[test]
    fn bandwidth_is_per_second() {
        assert_eq!(parse_bandwidth("100M"), Ok(100 << 20));
        for rate in [1, 1000, 1024, 4097, 3 << 20] {
            assert_eq!(parse_bandwidth(&format_bandwidth(rate)), Ok(rate));
        }
        for bare in ["100", "100/s"] {
            let refused = parse_bandwidth(bare).unwrap_err().to_string();
            assert!(refused.contains("did you mean 100M?"), "{refused}");
        }
        assert_eq!(parse_bandwidth("100MiB/s"), Ok(100 << 20));
        for text in ["0", "100Mbit", "100M/m", "-1M"] {
            assert!(parse_bandwidth(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_shown_parses_back(bytes: u64, shift in 0..64_u32) {
            let bytes = bytes << shift;
            prop_assert_eq!(parse_size(&format_size(bytes)), Ok(bytes));
        }
    }
}
