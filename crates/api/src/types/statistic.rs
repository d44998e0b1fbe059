//! Any statistic, second by second.

use dashpot_engine::histogram::{BUCKETS, Histogram, lower_bound, upper_bound};
use dashpot_observe::Percentiles;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Wide;

/// The words that make up the name of a statistic, `LAYER.METRIC[condition]...[dimension]`.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct StatisticWords {
    /// The layers.
    pub layers: Vec<String>,
    /// The metrics.
    pub metrics: Vec<StatisticWord>,
    /// The dimensions, for conditions and breakdowns.
    pub dimensions: Vec<StatisticWord>,
    /// The memories of the past, the one with the shortest steps first. A memory with longer steps reaches
    /// further back. Statistics by facts other than device, operation and client are counted from individual
    /// I/Os.
    pub remembered: Vec<RememberedSteps>,
    /// The source remembers individual I/Os from this moment on.
    pub singles_since_ns: u64,
}

/// A memory of the past, in steps. Each step has exact sums over the I/Os that ended in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RememberedSteps {
    /// The length of a step.
    pub step_ns: u64,
    /// The maximum number of steps with I/O that the source remembers.
    pub steps_max: u64,
    /// The most memory that these steps take, in bytes.
    pub bytes_max: u64,
    /// The source remembers everything from this moment on.
    pub since_ns: u64,
}

/// A metric or a dimension.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct StatisticWord {
    /// The word.
    #[schema(example = "latency")]
    pub word: String,
    /// The meaning of the word, in a few words.
    pub meaning: String,
    /// The unit of the word's values.
    pub unit: UnitWord,
    /// The values that are known now; empty if the values are numbers.
    pub values: Vec<String>,
    /// The layers whose I/Os have this metric or dimension.
    pub layers: Vec<String>,
}

/// The unit of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum UnitWord {
    /// No unit, because the values are names.
    Name,
    /// Bytes.
    Bytes,
    /// Nanoseconds.
    Ns,
    /// A number of I/Os, or an id.
    Count,
}

/// A statistic over an interval of whole seconds in the past, in columns.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Columns {
    /// The statistic.
    #[schema(example = "disk.latency[op=write][client]")]
    pub statistic: String,
    /// The statistic in English.
    pub title: String,
    /// The unit of the values whose distribution the statistic shows; null if the statistic only counts I/Os.
    pub unit: Option<UnitWord>,
    /// The beginning of the interval.
    pub from_ns: u64,
    /// The end of the interval, which is excluded.
    pub to_ns: u64,
    /// The length of a column.
    pub step_ns: u64,
    /// From this moment until now, the daemon has forgotten no I/O that the statistic needs.
    pub since_ns: u64,
    /// The moment of this answer.
    pub now_ns: u64,
    /// The bounds of the buckets in the columns.
    pub buckets: Buckets,
    /// The columns, the oldest first, without those in which no I/O of the statistic ended.
    pub columns: Vec<Column>,
}

/// A statistic in one column.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Column {
    /// The moment at which the column begins.
    pub start_ns: u64,
    /// Number of I/Os of all devices that are missing because the collector could not keep up with the
    /// shards.
    pub dropped: u64,
    /// The I/O for each value of the breakdown, the value with the most I/Os first; without a breakdown, at
    /// most one part. A column distinguishes at most 64 values; the rest are `other`.
    pub parts: Vec<ColumnPart>,
}

/// The I/O of one value of the breakdown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ColumnPart {
    /// The value; null without a breakdown.
    #[schema(example = "uid=1000 pid=4711")]
    pub value: Option<String>,
    /// Number of I/Os.
    pub count: u64,
    /// Total bytes of the I/Os.
    pub bytes: u64,
    /// The distribution of the measured values of these I/Os; null if the statistic only counts I/Os.
    pub numbers: Option<Distribution>,
}

/// The bounds of the buckets that are not empty in at least one distribution of an answer, the lowest bucket
/// first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Buckets {
    /// The lowest value of each bucket.
    pub from: Vec<u64>,
    /// The highest value of each bucket, included; null for the last bucket of the layout.
    pub to: Vec<Option<u64>>,
}

/// The percentiles and the occupied buckets of a distribution.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Distribution {
    /// Number of values. I/Os without a value are not counted.
    pub count: u64,
    /// The least value; 0 if there is none.
    pub min: u64,
    /// The greatest value; 0 if there is none.
    pub max: u64,
    /// The sum of the values.
    pub sum: Wide,
    /// The median; null below 2 values. A percentile is null unless at least one value is expected above it.
    pub p50: Option<u64>,
    /// The 90th percentile; null below 10 values.
    pub p90: Option<u64>,
    /// The 99th percentile; null below 100 values.
    pub p99: Option<u64>,
    /// The 99.9th percentile; null below 1,000 values.
    pub p99_9: Option<u64>,
    /// The buckets that are not empty, the lowest first. Each number is an index, from 0, into the lists
    /// `from` and `to` of the answer's `buckets`.
    pub buckets: Vec<u16>,
    /// Number of values in each of these buckets.
    pub counts: Vec<u64>,
}

impl Distribution {
    /// The distribution of a histogram. Its buckets are indices into the layout; [`Buckets::of`] replaces
    /// them with indices into an answer's lists.
    pub fn of(histogram: &Histogram) -> Distribution {
        let percentiles = Percentiles::of(histogram);
        let occupied = histogram.buckets().count();
        let mut buckets = Vec::with_capacity(occupied);
        let mut counts = Vec::with_capacity(occupied);
        for (index, count) in histogram.buckets() {
            buckets.push(index as u16);
            counts.push(count);
        }
        Distribution {
            count: histogram.count(),
            min: histogram.min().unwrap_or(0),
            max: histogram.max().unwrap_or(0),
            sum: Wide(histogram.sum()),
            p50: percentiles.p50_ns,
            p90: percentiles.p90_ns,
            p99: percentiles.p99_ns,
            p99_9: percentiles.p99_9_ns,
            buckets,
            counts,
        }
    }
}

impl Buckets {
    /// The buckets of an answer's distributions. Replaces the indices in these distributions with indices
    /// into the lists of the returned buckets.
    pub fn of(mut distributions: Vec<&mut Distribution>) -> Buckets {
        let mut places = [None; BUCKETS];
        for index in distributions.iter().flat_map(|one| &one.buckets) {
            places[usize::from(*index)] = Some(0);
        }
        let mut buckets = Buckets::default();
        for (index, place) in places.iter_mut().enumerate() {
            if let Some(place) = place {
                *place = buckets.from.len() as u16;
                buckets.from.push(lower_bound(index));
                let to = Some(upper_bound(index));
                buckets.to.push(to.filter(|bound| *bound != u64::MAX));
            }
        }
        for index in distributions.iter_mut().flat_map(|one| &mut one.buckets) {
            *index = places[usize::from(*index)].unwrap_or_default();
        }
        buckets
    }

    /// The buckets of columns.
    pub fn of_columns<'a>(columns: impl IntoIterator<Item = &'a mut Column>) -> Buckets {
        let parts = columns.into_iter().flat_map(|column| &mut column.parts);
        Buckets::of(parts.filter_map(|part| part.numbers.as_mut()).collect())
    }
}

/// A request for a stream of statistics, second by second.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Watch {
    /// The statistics: at most 16.
    #[schema(example = json!(["disk.latency[op]"]))]
    pub statistics: Vec<String>,
}

/// A second that is over, as an event of the stream.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct WatchedSecond {
    /// The moment at which the second began.
    pub start_ns: u64,
    /// How many earlier seconds were left out, because the caller read too slowly.
    pub missed: u64,
    /// The bounds of the buckets in the columns.
    pub buckets: Buckets,
    /// The column of each statistic, in the order of the request.
    pub columns: Vec<Column>,
}

/// The expected effect of rules on the recent I/Os of a disk.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Expectation {
    /// The number of seconds whose I/Os the daemon ran again under the rule: the last 30, or fewer if the
    /// daemon remembers fewer.
    pub seconds: u64,
    /// The bounds of the buckets of both distributions.
    pub buckets: Buckets,
    /// The latencies that were measured at the disk, for the I/Os that were run again.
    pub measured: Distribution,
    /// The latencies at the disk that are expected for these I/Os with the rule.
    pub expected: Distribution,
    /// How many of the I/Os that were run again would still be in flight when the last of them arrives.
    pub waiting: u64,
}
