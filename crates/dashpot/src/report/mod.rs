//! Reports: from numbers to text and to JSON, without I/O and without clocks.
//!
//! Each report is a value. Its `Display` is the table of the tool that it is named after, byte
//! for byte, and its `Serialize` is what `--json` prints; the shape is described at each type.
//! Percentiles carry the number of zios that they are of, and are `null` where those are too few.

pub(crate) mod chart;
pub(crate) mod clock;
pub(crate) mod groups;
pub(crate) mod health;
pub(crate) mod heatmap;
pub(crate) mod in_flight;
pub(crate) mod interval;
pub(crate) mod iolatency;
pub(crate) mod iostat;
pub(crate) mod layer;
pub(crate) mod nice;
pub(crate) mod observe;
pub(crate) mod percentiles;
pub(crate) mod proof;
pub(crate) mod quantize;
pub(crate) mod size;
pub(crate) mod snoop;
pub(crate) mod table;
pub(crate) mod txgs;
pub(crate) mod zpool_iostat;

use std::time::Duration;

use serde::Serializer;

/// Writes a span of time as an integer number of nanoseconds.
fn as_nanos<S: Serializer>(span: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u128(span.as_nanos())
}
