//! Reports: from numbers to text and to JSON, without I/O and without clocks.
//!
//! Each report is a value. Its `Display` is the table of the tool that it is named after, byte
//! for byte, and its `Serialize` is what `--json` prints; the shape is described at each type.
//! Percentiles carry the number of zios that they are of, and are `null` where those are too few.
//!
//! Keys are alike in all of them, whatever the text's tool calls a figure: times are whole
//! nanoseconds in `_ns`, rates end with `_per_s`, shares with `_percent`, and a watched device is
//! `device`, whosever it is. Both ends of a row, `from_ns` and `to_ns`, are in it. `at_ns` and
//! `start_ns` are since 1970, in simulations since their beginning.

#![warn(missing_docs)]

pub mod chart;
pub mod clock;
pub mod crash;
pub mod health;
pub mod heatmap;
pub mod iolatency;
pub mod iostat;
pub mod modes;
pub mod observe;
pub mod percentiles;
pub mod proof;
pub mod quantize;
pub mod snoop;
pub mod table;
pub mod txgs;
pub mod zpool_iostat;

use std::time::Duration;

use serde::Serializer;
use serde::ser::SerializeStruct;

/// Writes a span of time as an integer number of nanoseconds.
fn as_nanos<S: Serializer>(span: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u128(span.as_nanos())
}

/// So many in a span of time, per second; none in no time.
fn per_second(number: u64, span: Duration) -> f64 {
    match span.is_zero() {
        true => 0.0,
        false => number as f64 / span.as_secs_f64(),
    }
}

/// Writes how many latencies there were from one to another.
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
