//! Writes figures in few characters.

use dashpot_rules::short_time;

/// A count or a rate in at most five characters: `0`, `0.25`, `12345`, `123k`, `1.23M`.
pub(super) fn count(value: f64) -> String {
    const UNITS: [(f64, &str); 4] = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    if value < 99_999.5 {
        let decimals = usize::from(value > 0.0 && value < 0.95) * 2;
        return format!("{value:.decimals$}");
    }
    let (size, letter) = UNITS
        .into_iter()
        .find(|(size, _)| value >= *size * 0.9995)
        .unwrap_or((1.0, ""));
    let scaled = value / size;
    let decimals = match scaled {
        scaled if scaled < 9.995 => 2,
        scaled if scaled < 99.95 => 1,
        _ => 0,
    };
    format!("{scaled:.decimals$}{letter}")
}

/// A rate in at most seven characters: all of its digits if they fit, or else as [`count`] writes it.
pub(super) fn whole(value: f64) -> String {
    if value < 9_999_999.5 {
        format!("{value:.0}")
    } else {
        count(value)
    }
}

/// A time, or a dash if it is not known.
pub(super) fn time(ns: Option<u64>) -> String {
    ns.map_or_else(|| "-".to_owned(), short_time)
}

/// A figure, or a dash if it is not known.
pub(super) fn known(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), count)
}

/// The smallest of 1, 2, 5, 10, 20, ... that is not below the value.
pub(super) fn round_up(value: u64) -> u64 {
    let unit = 10_u64.pow(value.max(1).ilog10());
    let mut steps = [1, 2, 5, 10]
        .map(|step| unit.saturating_mul(step))
        .into_iter();
    steps.find(|step| *step >= value).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::{count, round_up, whole};

    #[test]
    fn the_top_of_a_scale_is_round() {
        let tops = [0, 1, 3, 10, 11, 401, 999, u64::MAX].map(round_up);
        assert_eq!(tops, [1, 1, 5, 10, 20, 500, 1_000, u64::MAX]);
    }

    #[test]
    fn digits_are_kept_as_long_as_they_fit() {
        assert_eq!(whole(1_234_567.4), "1234567");
        assert_eq!(whole(12_345_678.0), "12.3M");
    }

    #[test]
    fn counts_take_five_characters() {
        for (value, text) in [
            (0.0, "0"),
            (0.25, "0.25"),
            (0.99, "1"),
            (12.4, "12"),
            (99_999.0, "99999"),
            (99_999.6, "100k"),
            (123_456.0, "123k"),
            (999_700.0, "1.00M"),
            (1_234_567.0, "1.23M"),
            (98_765_432.0, "98.8M"),
            (1.5e15, "1500T"),
        ] {
            assert_eq!(count(value), text, "{value}");
        }
    }
}
