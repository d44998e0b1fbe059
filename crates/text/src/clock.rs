//! Times of day, from nanoseconds since a midnight.

/// A time of day, such as `07:05:09`.
pub fn time_of_day(ns: u64) -> String {
    let seconds = ns / 1_000_000_000;
    let (hours, minutes) = (seconds / 3_600 % 24, seconds / 60 % 60);
    format!("{hours:02}:{minutes:02}:{:02}", seconds % 60)
}

/// A time of day with milliseconds, such as `07:05:09.250`.
pub fn time_of_day_ms(ns: u64) -> String {
    format!("{}.{:03}", time_of_day(ns), ns / 1_000_000 % 1_000)
}

#[cfg(test)]
mod tests {
    use super::{time_of_day, time_of_day_ms};

    #[test]
    fn days_have_24_hours() {
        let ns = ((25 * 60 + 5) * 60 + 9) * 1_000_000_000 + 250_999_999;
        assert_eq!(time_of_day(ns), "01:05:09");
        assert_eq!(time_of_day_ms(ns), "01:05:09.250");
    }
}
