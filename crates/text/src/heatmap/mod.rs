//! Heat maps: latency by time, as in Brendan Gregg's "Visualizing System Latency" (2010). Time runs from left
//! to right, latency rises from bottom to top, and the shade shows the number of I/Os. The scales of latency
//! and shade are logarithmic here, because latencies of storage span six powers of ten, and a single I/O must
//! be visible next to a million I/Os.

mod columns;
mod map;
mod rows;
#[cfg(test)]
mod tests;

pub use self::columns::{Crop, HeatColumn, HeatMap};
pub use map::{Band, BandPlace, Cells, Map, Size};
#[cfg(test)]
use rows::round_of;
