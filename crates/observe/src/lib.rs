//! What was seen of devices, whatever saw it: intervals, what was done in each, what is still in
//! flight, and percentiles that say how many I/Os they are of.
//!
//! A source (a daemon, the kernel, a simulation) fills these values in, and a report reads them. So
//! nothing here reads a clock, a socket or a file, and nothing prints.

#![warn(missing_docs)]

mod finished;
mod groups;
mod in_flight;
mod interval;
mod intervals;
mod layer;
mod length;
mod percentiles;
mod question;
mod size;

pub use finished::FinishedIo;
pub use groups::{Groups, Order};
pub use in_flight::{InFlight, Mention, Outlasting, outlasts, plural};
pub use interval::{DeviceInterval, OTHER, OpInterval, elapsed_of_all, in_flight_of_all};
pub use intervals::{Intervals, Span};
pub use layer::Layer;
pub use length::Length;
pub use percentiles::{Percentiles, is_enough, percentile};
pub use question::{By, Question};
pub use size::{class_named, size_class, size_name};
