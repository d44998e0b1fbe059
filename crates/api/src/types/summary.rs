//! A few numbers that summarise a histogram.

use dashpot_engine::histogram::Histogram;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A few numbers that summarise a histogram.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Summary {
    /// Number of values.
    pub count: u64,
    /// The mean; null without values.
    pub mean_ns: Option<u64>,
    /// The median; null without values.
    pub p50_ns: Option<u64>,
    /// The 99th percentile; null without values. Below 100 values it is the largest value.
    pub p99_ns: Option<u64>,
    /// The largest value; null without values.
    pub max_ns: Option<u64>,
}

impl Summary {
    /// The summary of a histogram; without a histogram, the summary of no values.
    pub fn of(histogram: Option<&Histogram>) -> Summary {
        let Some(histogram) = histogram else {
            return Summary::default();
        };
        Summary {
            count: histogram.count(),
            mean_ns: histogram.mean(),
            p50_ns: histogram.quantile(500_000),
            p99_ns: histogram.quantile(990_000),
            max_ns: histogram.max(),
        }
    }
}
