//! Figures that several reports have.

use std::time::Duration;

use serde::Serializer;
use serde::ser::SerializeStruct;

/// `number` divided by a span of time, per second; 0 if the span is empty.
pub(crate) fn per_second(number: u64, span: Duration) -> f64 {
    if span.is_zero() {
        0.0
    } else {
        number as f64 / span.as_secs_f64()
    }
}

/// Writes the number of latencies from `from_ns` to `to_ns`, both included.
pub(crate) fn serialize_row<S: Serializer>(
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
