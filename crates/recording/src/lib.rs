//! Recordings: finished I/Os in a directory of Parquet files that DuckDB, ClickHouse, Polars and pandas open
//! without conversion.
//!
//! This crate only writes and reads files. It knows no terminal, HTTP or command line, and prints nothing.
//! Its caller chooses the clock.

mod alike;
mod batch;
mod block;
mod buckets;
mod clock;
mod cut;
mod directory;
mod error;
mod evict;
mod gaps;
#[cfg(test)]
mod generator;
mod growing;
mod ios;
mod lasting;
mod marks;
mod named;
mod open;
mod pages;
mod query;
mod read;
mod reader;
mod recorder;
mod seal;
mod seconds;
mod selected;
#[cfg(test)]
mod server;
mod table;
#[cfg(test)]
mod tests;
mod unpack;
mod write;

pub use clock::{Clock, MachineClock, Moment};
pub use cut::Cut;
pub use error::RecordingError;
pub use ios::{Recorded, column};
pub use lasting::{CLEARED, RUNNING};
pub use marks::{Event, Mark};
pub use query::Query;
pub use reader::{Blocks, Devices, Recording, read_unverified};
pub use recorder::{Options, Recorder, SEAL_IOS, SEAL_NS, Summary};
pub use seconds::{Count, Second};
pub use selected::Selected;
