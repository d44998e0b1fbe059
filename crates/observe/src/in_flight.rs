//! Zios that are still in flight, so that no histogram contains them yet.

use std::fmt;
use std::time::Duration;

use dashpot_engine::histogram::Histogram;
use dashpot_rules::{short_time, thousands};
use serde::Serialize;

use super::percentiles::Percentiles;

/// The zios that had no reply yet when a report was made. JSON:
/// `{"zios": 3, "oldest_ns": 12500000, "device": "c1t1d0", "wait": "held", "wait_ns": 12400000, "rule": 1}`.
/// `zios` is null if the source does not know the number. Without zios, all fields but the first are null.
/// `wait_ns` is null if it is not known, and `rule` if no rule holds the oldest zio.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InFlight {
    /// How many zios there are. `None` if the source does not know.
    pub zios: Option<u64>,
    /// The age of the oldest zio, in nanoseconds.
    pub oldest_ns: Option<u64>,
    /// The device of the oldest zio.
    pub device: Option<String>,
    /// The reason that the oldest zio waits; if `zios` is null, the reason that the number is not known.
    pub wait: Option<String>,
    /// How long the present wait of the oldest zio has lasted, in nanoseconds.
    pub wait_ns: Option<u64>,
    /// The rule that holds the oldest zio.
    pub rule: Option<u32>,
}

/// The zios in flight that the text of a report mentions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mention {
    /// The I/Os that were in flight for the whole interval. A younger I/O will be in the next interval's
    /// report at the latest. If no I/O was in flight for the whole interval, the text is exactly that of the
    /// tool that the report imitates.
    #[default]
    WholeInterval,
    /// All I/Os in flight, because no later report follows.
    All,
}

impl Default for InFlight {
    /// No zios.
    fn default() -> InFlight {
        InFlight {
            zios: Some(0),
            ..InFlight::UNKNOWN
        }
    }
}

impl InFlight {
    /// The source does not know what is in flight.
    pub const UNKNOWN: InFlight = InFlight {
        zios: None,
        oldest_ns: None,
        device: None,
        wait: None,
        wait_ns: None,
        rule: None,
    };

    /// A line for the end of the text of a report over `interval`, if there are I/Os to mention.
    pub fn line(&self, mention: Mention, interval: Duration) -> Option<String> {
        if self.zios.is_none() && self.wait.is_some() {
            return Some(self.to_string());
        }
        let oldest = Duration::from_nanos(self.oldest_ns?);
        let is_mentioned = mention == Mention::All || oldest >= interval;
        is_mentioned.then(|| self.to_string())
    }
}

impl InFlight {
    /// How long the present wait of the oldest zio has lasted, if the zio had another wait before it.
    fn part_in_wait_ns(&self) -> Option<u64> {
        let (age_ns, wait_ns) = (self.oldest_ns?, self.wait_ns?);
        (age_ns.saturating_sub(wait_ns) >= SHOWN_NS).then_some(wait_ns)
    }
}

impl InFlight {
    /// The [`line`](InFlight::line) for a report of ended zios. Unlike `line`, it also mentions a zio that is
    /// younger than the interval if that zio has already waited longer than nearly all ended zios took.
    pub fn line_beside(
        &self,
        mention: Mention,
        interval: Duration,
        ended: &Percentiles,
    ) -> Option<String> {
        match self.oldest_ns.filter(|age_ns| outlasts(*age_ns, ended)) {
            Some(_) => Some(format!(
                "{self} That is longer than nearly all I/Os that ended took, and no figure \
                 includes it."
            )),
            None => self.line(mention, interval),
        }
    }
}

/// Whether a zio in flight is so old that the latencies of ended zios mislead, because only fast zios have
/// ended. They mislead if 99.9 % of the ended zios took less time than the zio has waited. With too few ended
/// zios for this percentile, they mislead if the zio has waited more than twice the longest latency.
pub fn outlasts(age_ns: u64, ended: &Percentiles) -> bool {
    let most_ns = ended
        .p99_9_ns
        .or(ended.max_ns.map(|max| max.saturating_mul(2)));
    most_ns.is_some_and(|most_ns| age_ns > most_ns)
}

/// The text shows milliseconds, so it cannot show smaller differences.
const SHOWN_NS: u64 = 1_000_000;

impl InFlight {
    fn write_unknown(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "In flight")?;
        if let Some(device) = &self.device {
            write!(f, " on {device}")?;
        }
        write!(f, ": not known")?;
        if let Some(why) = &self.wait {
            write!(f, " ({why})")?;
        }
        write!(f, ".")
    }
}

impl fmt::Display for InFlight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(zios) = self.zios else {
            return self.write_unknown(f);
        };
        let oldest = Duration::from_nanos(self.oldest_ns.unwrap_or_default());
        let seconds = oldest.as_secs_f64();
        write!(f, "In flight: {zios}, the oldest for {seconds:.3} s")?;
        if let Some(device) = &self.device {
            write!(f, " on {device}")?;
        }
        if let Some(wait) = &self.wait {
            write!(f, " ({wait}")?;
            if let Some(ns) = self.part_in_wait_ns() {
                write!(f, " for {}", short_time(ns))?;
            }
            if let Some(rule) = self.rule {
                write!(f, ", rule {rule}")?;
            }
            write!(f, ")")?;
        }
        write!(f, ".")
    }
}

/// How many zios in flight have already waited longer than ended zios took. The latencies of ended
/// zios do not show these waits. JSON: `{"longer_than_p99_9": 310, "longer_than_all": 302}`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Outlasting {
    /// How many zios have waited longer than the 99.9th percentile of the ended zios' latencies.
    pub longer_than_p99_9: u64,
    /// How many zios have waited longer than every ended zio took.
    pub longer_than_all: u64,
}

impl Outlasting {
    /// Compares the ages of zios in flight with the latencies of ended zios.
    pub fn of(ages_ns: impl IntoIterator<Item = u64>, ended: &Histogram) -> Outlasting {
        // With fewer than a thousand values there is no 99.9th percentile, so the longest latency takes its
        // place.
        let p99_9_ns = Percentiles::of(ended).p99_9_ns.or(ended.max());
        let mut outlasting = Outlasting::default();
        for age_ns in ages_ns {
            let is_longer = |latency: Option<u64>| latency.is_none_or(|latency| age_ns > latency);
            outlasting.longer_than_p99_9 += u64::from(is_longer(p99_9_ns));
            outlasting.longer_than_all += u64::from(is_longer(ended.max()));
        }
        outlasting
    }

    /// A warning for the reader of the ended zios' latencies, if a warning is needed: `302 writes of client
    /// wait longer than any that was counted …`.
    pub fn line(&self, op: &str, whose: &str, ended: &Histogram) -> Option<String> {
        let wait = |count| match count {
            1 => format!("1 {op} of {whose} waits"),
            _ => format!("{} {} of {whose} wait", thousands(count), plural(op)),
        };
        match (self.longer_than_all, self.longer_than_p99_9) {
            (0, 0) => None,
            (0, some) => {
                let p99_9 = short_time(Percentiles::of(ended).p99_9_ns?);
                let waiting = wait(some);
                Some(format!(
                    "{waiting} longer than 99.9 % of those counted ({p99_9}).\n"
                ))
            }
            (all, _) => Some(match ended.max().map(short_time) {
                None => format!("{}, and none was counted.\n", wait(all)),
                Some(max) => format!(
                    "{} longer than any that was counted ({max}): the latencies\n\
                     above are of those that have ended.\n",
                    wait(all)
                ),
            }),
        }
    }
}

/// The plural of an operation's name.
pub fn plural(op: &str) -> String {
    match op {
        "flush" | "zero" => format!("{op}es"),
        _ => format!("{op}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hung() -> InFlight {
        InFlight {
            zios: Some(3),
            oldest_ns: Some(1_250_000_000),
            device: Some("d".to_owned()),
            wait: Some("hung".to_owned()),
            wait_ns: Some(1_249_900_000),
            rule: Some(2),
        }
    }

    #[test]
    fn between_intervals_only_what_the_interval_did_not_see_is_worth_a_line() {
        let line = |seconds| hung().line(Mention::WholeInterval, Duration::from_secs(seconds));
        let text = "In flight: 3, the oldest for 1.250 s on d (hung, rule 2).";
        assert_eq!(line(1).as_deref(), Some(text));
        assert_eq!(line(5), None);
    }

    #[test]
    fn at_the_end_everything_in_flight_is() {
        let line = |in_flight: InFlight| in_flight.line(Mention::All, Duration::from_secs(5));
        assert!(line(hung()).is_some());
        assert_eq!(line(InFlight::default()), None);
    }

    #[test]
    fn what_outlasts_the_survivors_is_mentioned_however_young() {
        let few = Percentiles::of(&Histogram::from_iter([(700_000_000, 9)]));
        let many = Percentiles::of(&Histogram::from_iter([(20_000_000, 5_000)]));
        let line = |ended| hung().line_beside(Mention::default(), Duration::from_secs(10), ended);
        assert_eq!(line(&few), None, "twice as long would be 1.4 s");
        let text = line(&many).unwrap_or_default();
        assert!(
            text.starts_with("In flight: 3, the oldest for 1.250 s on d (hung"),
            "{text}"
        );
        assert!(text.ends_with(
            ". That is longer than nearly all I/Os that ended took, and no figure includes it."
        ));
        let none = Percentiles::of(&Histogram::default());
        assert_eq!(line(&none), None);
        let whole = hung().line_beside(Mention::default(), Duration::from_secs(1), &none);
        assert_eq!(whole, Some(hung().to_string()));
    }

    #[test]
    fn a_wait_that_began_later_than_the_zio_says_since_when() {
        let queued = InFlight {
            wait_ns: Some(40_000_000),
            wait: Some("store".to_owned()),
            rule: None,
            ..hung()
        };
        let text = "In flight: 3, the oldest for 1.250 s on d (store for 40.0ms).";
        assert_eq!(queued.to_string(), text);
    }

    #[test]
    fn what_outlasts_those_that_have_ended_is_counted() {
        let ended = Histogram::from_iter([(0, 9_995), (1_000_000, 5)]);
        let ages = [0, 5_000, 1_000_000, 1_000_001, 9_000_000_000];
        // The 99.9th percentile is 0; the longest zio took a millisecond.
        let outlasting = Outlasting::of(ages, &ended);
        assert_eq!(
            outlasting,
            Outlasting {
                longer_than_p99_9: 4,
                longer_than_all: 2
            }
        );
        let line = outlasting.line("write", "client", &ended).unwrap();
        let text = "2 writes of client wait longer than any that was counted (1.00ms): ";
        assert!(line.starts_with(text), "{line}");
        let some = Outlasting {
            longer_than_all: 0,
            ..outlasting
        };
        let text = "4 writes of client wait longer than 99.9 % of those counted (0ns).\n";
        assert_eq!(some.line("write", "client", &ended).as_deref(), Some(text));
    }

    #[test]
    fn the_latencies_are_the_whole_truth_where_nothing_waits_for_long() {
        let ended = Histogram::from_iter([(5_000, 10)]);
        assert_eq!(
            Outlasting::of([5_000, 100], &ended).line("read", "c", &ended),
            None
        );
        assert_eq!(Outlasting::of([], &ended).line("read", "c", &ended), None);
        let none = Histogram::default();
        assert_eq!(Outlasting::of([], &none).line("read", "c", &none), None);
        let text = "1 read of c waits, and none was counted.\n";
        assert_eq!(
            Outlasting::of([7], &none)
                .line("read", "c", &none)
                .as_deref(),
            Some(text)
        );
    }

    #[test]
    fn what_no_rule_holds_says_where_it_waits() {
        let suspended = InFlight {
            wait: Some("suspended".to_owned()),
            rule: None,
            ..hung()
        };
        let text = suspended.to_string();
        assert!(text.ends_with(" on d (suspended)."), "{text}");
    }
}
