//! Reports turn numbers into text and JSON. They do no I/O and read no clock.
//!
//! Each report is a value. If a report is named after another tool, its `Display` equals that tool's table,
//! byte for byte, except for the differences that the report's module names. The `Serialize` of a report is
//! the output of `--json`, and each type's documentation describes the shape of its JSON. In these
//! descriptions, a word without quotes, such as `percentiles` or `in flight`, stands for a value of that
//! kind. Percentiles come with the number of zios, and are `null` if there are too few zios.
//!
//! All reports use the same JSON keys, whatever the original tool calls a figure. The keys of times end with
//! `_ns`, the keys of rates with `_per_s`, and the keys of shares with `_percent`; times are whole
//! nanoseconds. The key of the watched device is `device`. A row includes both of its ends, `from_ns` and
//! `to_ns`. `at_ns` and `start_ns` are counted from 1970; in a simulation, from its beginning.

pub mod amplification;
mod breakdown;
pub mod diff;
pub mod filtered;
pub mod heatmap;
pub mod iolatency;
pub mod iostat;
pub mod observe;
pub mod quantize;
pub mod report;
pub mod snoop;
pub mod stat;
pub mod stats;
pub mod txgs;
pub mod zpool_iostat;

use std::time::Duration;

use serde::Serializer;
use serde::ser::SerializeStruct;

/// `number` divided by a span of time, per second; 0 if the span is empty.
fn per_second(number: u64, span: Duration) -> f64 {
    if span.is_zero() {
        0.0
    } else {
        number as f64 / span.as_secs_f64()
    }
}

/// Writes the number of latencies from `from_ns` to `to_ns`, both included.
fn serialize_row<S: Serializer>(
    from_ns: u64,
    to_ns: u64,
    count: u64,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut row = serializer.serialize_struct("Row", 3)?;
    row.serialize_field("from_ns", &from_ns)?;
    row.serialize_field("to_ns", &to_ns)?;
    row.serialize_field("count", &count)?;
    row.end()
}
