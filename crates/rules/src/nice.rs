//! Short numbers and times: with at most five characters, as OpenZFS's `zpool` prints them, or with three
//! digits.
//!
//! The forms with five characters are those of `zfs_nicenum_format`. The units of counts and sizes are powers
//! of 1024, with as many decimals as fit. The units of times are powers of 1000, and times are truncated to
//! whole units. A time of zero is a dash, because every real I/O takes some time.

const LETTERS: [&str; 7] = ["", "K", "M", "G", "T", "P", "E"];
const TIMES: [&str; 4] = ["ns", "us", "ms", "s"];

/// The width of a column.
const WIDTH: usize = 5;

/// A count or a size: `812`, `1.50K`, `10.0K`, `1023K`.
pub fn nice_number(value: u64) -> String {
    let index = value.max(1).ilog(1_024) as usize;
    let unit = 1_024_u64.pow(index as u32);
    let letter = LETTERS[index];
    if value.is_multiple_of(unit) {
        return format!("{}{letter}", value / unit);
    }
    let scaled = value as f64 / unit as f64;
    let with_decimals = |decimals: usize| format!("{scaled:.decimals$}{letter}");
    let mut attempts = [2, 1].into_iter().map(with_decimals);
    let fitting = attempts.find(|text| text.len() <= WIDTH);
    fitting.unwrap_or_else(|| with_decimals(0))
}

/// A time: `7ns`, `1us`, `511ns`, `68s`; `-` for zero.
pub fn nice_time(ns: u64) -> String {
    if ns == 0 {
        return "-".to_owned();
    }
    let index = (ns.ilog(1_000) as usize).min(TIMES.len() - 1);
    format!("{}{}", ns / 1_000_u64.pow(index as u32), TIMES[index])
}

/// A time with three digits: `10.0ms`, `3.20s`, `750ns`.
pub fn short_time(ns: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    let Some((size, unit)) = UNITS.into_iter().find(|(size, _)| ns >= *size) else {
        return format!("{ns}ns");
    };
    let value = ns as f64 / size as f64;
    let decimals = match value {
        value if value < 10.0 => 2,
        value if value < 100.0 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}{unit}")
}

/// A number with a comma after every three digits: `12,345`.
pub fn thousands(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number of CPUs, such as `0.20 CPUs`.
pub fn cpus_of(millicpus: u64) -> String {
    format!("{:.2} CPUs", millicpus as f64 / 1e3)
}

#[cfg(test)]
mod tests {
    use super::{nice_number, nice_time, short_time, thousands};

    #[test]
    fn numbers_fit_into_five_characters() {
        for (value, text) in [
            (0, "0"),
            (1_023, "1023"),
            (1_024, "1K"),
            (1_536, "1.50K"),
            (10_239, "10.0K"),
            (102_399, "100K"),
            (1_047_552, "1023K"),
            (1_048_575, "1024K"),
            (1 << 20, "1M"),
            (500 << 20, "500M"),
            (3 << 39, "1.50T"),
            (u64::MAX, "16.0E"),
        ] {
            assert_eq!(nice_number(value), text, "{value}");
        }
    }

    /// As in the C library, a number halfway between two digits must be rounded to the even digit.
    #[test]
    fn halves_go_to_the_even_digit() {
        // These are 1.125 and 1.375 times 1024, and 100.5 and 101.5 times 1024.
        for (value, text) in [
            (1_152, "1.12K"),
            (1_408, "1.38K"),
            (102_912, "100K"),
            (103_936, "102K"),
        ] {
            assert_eq!(nice_number(value), text, "{value}");
        }
    }

    /// Times must look like the labels of `zpool iostat -w`, which have no decimals.
    #[test]
    fn times_have_no_decimals() {
        let labels = "1ns 3ns 7ns 15ns 31ns 63ns 127ns 255ns 511ns 1us 2us 4us 8us 16us 32us 65us \
                      131us 262us 524us 1ms 2ms 4ms 8ms 16ms 33ms 67ms 134ms 268ms 536ms 1s 2s 4s \
                      8s 17s 34s 68s 137s";
        let rows = (0..37).map(|row| nice_time((2 << row) - 1));
        assert_eq!(rows.collect::<Vec<_>>().join(" "), labels);
        assert_eq!(nice_time(0), "-");
    }

    #[test]
    fn times_have_three_digits() {
        for (ns, text) in [
            (0, "0ns"),
            (999, "999ns"),
            (1_500, "1.50us"),
            (10_020_000, "10.0ms"),
            (432_100_000, "432ms"),
            (3_200_000_000, "3.20s"),
        ] {
            assert_eq!(short_time(ns), text);
        }
    }

    #[test]
    fn thousands_are_told_apart() {
        assert_eq!(
            [1, 1_000, 1_000_000].map(thousands),
            ["1", "1,000", "1,000,000"]
        );
    }
}
