//! How the I/Os in a rectangle of a heat map differ from all I/Os in view.

use dashpot_observe::diff::{Comparison, Finding};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The I/Os of a rectangle, compared with all I/Os in view.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Difference {
    /// The I/Os inside the rectangle.
    pub inside: DifferenceSide,
    /// All I/Os in view, including those inside.
    pub view: DifferenceSide,
    /// Whether there are too few I/Os inside for a comparison.
    pub too_few: bool,
    /// The daemon remembers individual I/Os from this moment on, and so cannot compare earlier I/Os of the
    /// view.
    pub since_ns: u64,
    /// The dimensions by which the I/Os inside differ from those in view, the most telling first.
    pub differs: Vec<DifferentDimension>,
    /// The dimensions by which the I/Os inside do not differ.
    pub alike: Vec<String>,
    /// The waits in which the I/Os inside spent their time, the longest first.
    pub spent: Vec<SpentWait>,
}

/// A set of I/Os that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DifferenceSide {
    /// Number of I/Os.
    pub count: u64,
    /// The sum of the times that the I/Os waited.
    pub time_ns: u64,
}

/// A dimension by which the I/Os inside differ from those in view.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct DifferentDimension {
    /// The dimension.
    #[schema(example = "device")]
    pub dimension: String,
    /// The difference between `inside_percent` and `view_percent` of the dimension's most telling value, in
    /// percentage points.
    pub points: f64,
    /// The dimension's most telling values.
    pub values: Vec<DifferentValue>,
}

/// A value of a dimension.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct DifferentValue {
    /// The value.
    #[schema(example = "c1t3d0")]
    pub value: String,
    /// The value's share of the time that I/Os inside waited, in percent.
    pub inside_percent: f64,
    /// The value's share of the I/Os in view, in percent.
    pub view_percent: f64,
    /// The number of I/Os inside that have this value.
    pub inside_count: u64,
}

/// A wait of the I/Os inside.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct SpentWait {
    /// The wait.
    #[schema(example = "hold")]
    pub wait: String,
    /// This wait's share of the total time that the I/Os inside waited, in percent.
    pub percent: f64,
}

impl Difference {
    /// The difference that `comparison` has found. The slow I/Os of `comparison` are the I/Os inside the
    /// rectangle.
    pub fn of(comparison: &Comparison, view_time_ns: u64, since_ns: u64) -> Difference {
        let view = comparison.here;
        let each = comparison.differs.iter().map(|one| DifferentDimension {
            dimension: one.dimension.word().to_owned(),
            points: one.points,
            values: one.values.iter().map(value).collect(),
        });
        let alike = comparison.alike.iter().map(|one| one.word().to_owned());
        let spent = comparison.spent.iter().map(|one| SpentWait {
            wait: one.wait.word().to_owned(),
            percent: one.percent,
        });
        Difference {
            inside: DifferenceSide {
                count: view.slow_count,
                time_ns: view.slow_ns,
            },
            view: DifferenceSide {
                count: view.count,
                time_ns: view_time_ns,
            },
            too_few: comparison.finding == Finding::TooFew,
            since_ns,
            differs: each.collect(),
            alike: alike.collect(),
            spent: spent.collect(),
        }
    }
}

fn value(share: &dashpot_observe::diff::ValueShare) -> DifferentValue {
    DifferentValue {
        value: share.value.clone(),
        inside_percent: share.slow_percent,
        view_percent: share.ios_percent,
        inside_count: share.slow_count,
    }
}
