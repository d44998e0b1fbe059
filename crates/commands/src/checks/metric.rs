//! The metrics of a disk or volume, of one of its operations, or of a rule.

use dashpot_api::RuleCounters;
use dashpot_rules::{Decimal, ParseError, parse_bandwidth, parse_duration};

/// A statistic of latencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Figure {
    Mean,
    Max,
    /// A quantile, in millionths: 990,000 for p99.
    Quantile(u32),
}

/// A time that a rule measures for each zio that it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Span {
    Requested,
    Achieved,
    Lateness,
}

/// A metric of a disk or volume, or of one of its operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeviceMetric {
    Latency(Figure),
    Count,
    Failed,
    Iops,
    BytesPerSecond,
    InFlight,
    /// The number of accesses to a path disk that no rule could hold.
    Unheld,
    Interrupted,
}

pub(crate) type Counter = fn(&RuleCounters) -> u64;

#[derive(Clone, Copy, Debug)]
pub(crate) enum RuleMetric {
    /// A counter, and whether its value is known even if the rule has matched nothing.
    Counter(Counter, bool),
    Latency(Span, Figure),
}

/// The unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Times, in nanoseconds.
    Time,
    Count,
    PerSecond,
    BytesPerSecond,
}

const FIGURES: [(&str, Figure); 7] = [
    ("p50", Figure::Quantile(500_000)),
    ("p90", Figure::Quantile(900_000)),
    ("p95", Figure::Quantile(950_000)),
    ("p99", Figure::Quantile(990_000)),
    ("p99.9", Figure::Quantile(999_000)),
    ("max", Figure::Max),
    ("mean", Figure::Mean),
];

const OF_DEVICES: [(&str, DeviceMetric); 7] = [
    ("count", DeviceMetric::Count),
    ("failed", DeviceMetric::Failed),
    ("iops", DeviceMetric::Iops),
    ("bytes_per_s", DeviceMetric::BytesPerSecond),
    ("in_flight", DeviceMetric::InFlight),
    ("unheld", DeviceMetric::Unheld),
    ("interrupted", DeviceMetric::Interrupted),
];

const SPANS: [(&str, Span); 3] = [
    ("requested", Span::Requested),
    ("achieved", Span::Achieved),
    ("lateness", Span::Lateness),
];

const COUNTERS: [(&str, Counter, bool); 15] = [
    ("matched", |all| all.matched, true),
    ("preempted", |all| all.preempted, true),
    ("now", |all| all.now, true),
    ("taken", |all| all.taken, false),
    ("injected", |all| all.injected, false),
    ("held", |all| all.held, false),
    ("late", |all| all.late, false),
    ("overrun", |all| all.overrun, false),
    ("failed", |all| all.failed, false),
    ("damaged", |all| all.damaged, false),
    ("spared", |all| all.spared, false),
    ("aborted", |all| all.aborted, false),
    ("beaten", |all| all.beaten, false),
    ("not_drawn", |all| all.not_drawn, false),
    ("not_counted", |all| all.not_counted, false),
];

fn figure(word: &str) -> Option<Figure> {
    let (_, figure) = FIGURES.into_iter().find(|(name, _)| *name == word)?;
    Some(figure)
}

impl DeviceMetric {
    pub(crate) fn parse(word: &str) -> Option<DeviceMetric> {
        let latency = figure(word).map(DeviceMetric::Latency);
        let named = OF_DEVICES.into_iter().find(|(name, _)| *name == word);
        latency.or(named.map(|(_, metric)| metric))
    }

    pub(crate) fn kind(self) -> Kind {
        match self {
            DeviceMetric::Latency(_) => Kind::Time,
            DeviceMetric::Count
            | DeviceMetric::Failed
            | DeviceMetric::InFlight
            | DeviceMetric::Unheld
            | DeviceMetric::Interrupted => Kind::Count,
            DeviceMetric::Iops => Kind::PerSecond,
            DeviceMetric::BytesPerSecond => Kind::BytesPerSecond,
        }
    }

    /// Whether the metric is one of a whole device, and not of one of its operations.
    pub(crate) fn is_of_whole_device(self) -> bool {
        matches!(
            self,
            DeviceMetric::InFlight | DeviceMetric::Unheld | DeviceMetric::Interrupted
        )
    }

    /// The names of all metrics.
    pub(crate) fn words() -> Vec<String> {
        let figures = FIGURES.iter().map(|(name, _)| *name);
        let named = OF_DEVICES.iter().map(|(name, _)| *name);
        figures.chain(named).map(str::to_owned).collect()
    }
}

impl RuleMetric {
    pub(crate) fn parse(word: &str) -> Option<RuleMetric> {
        if let Some((span, of)) = word.split_once('.') {
            let (_, span) = SPANS.into_iter().find(|(name, _)| *name == span)?;
            return Some(RuleMetric::Latency(span, figure(of)?));
        }
        let (_, counter, always) = COUNTERS.into_iter().find(|(name, ..)| *name == word)?;
        Some(RuleMetric::Counter(counter, always))
    }

    pub(crate) fn kind(self) -> Kind {
        match self {
            RuleMetric::Counter(..) => Kind::Count,
            RuleMetric::Latency(..) => Kind::Time,
        }
    }

    /// The names of all metrics.
    pub(crate) fn words() -> Vec<String> {
        let counters = COUNTERS.iter().map(|(name, ..)| (*name).to_owned());
        let of_span = |(span, _): &(&str, Span)| {
            let span = (*span).to_owned();
            FIGURES
                .iter()
                .map(move |(name, _)| format!("{span}.{name}"))
        };
        counters.chain(SPANS.iter().flat_map(of_span)).collect()
    }
}

impl Kind {
    /// Parses the value with which a check compares a figure. A time becomes nanoseconds, a rate bytes per
    /// second.
    pub(crate) fn parse(self, text: &str) -> Result<f64, ParseError> {
        match self {
            Kind::Time => parse_duration(text).map(|span| span.as_nanos() as f64),
            Kind::BytesPerSecond => parse_bandwidth(text).map(|rate| rate as f64),
            Kind::Count => text.parse().map(|count: u64| count as f64).map_err(|_| {
                ParseError::new(format!(
                    "'{text}' is not a count: write a whole number, without a unit"
                ))
            }),
            Kind::PerSecond => {
                let fraction = Decimal::parse(text).and_then(Decimal::fraction);
                fraction
                    .map(|(digits, of)| digits as f64 / of as f64)
                    .ok_or_else(|| {
                        ParseError::new(format!(
                            "'{text}' is not a rate: write a number, without a unit"
                        ))
                    })
            }
        }
    }
}
