//! Observed I/O of devices, from any source: intervals, the I/O of each interval, the I/O still in flight,
//! and percentiles with their number of I/Os.
//!
//! A source (a daemon, the kernel, a simulation) fills these values in, and a report reads them. The crate
//! itself reads no clock, socket or file, and prints nothing.

mod busy;
mod class;
mod container;
mod counts;
pub mod diff;
mod dimension;
mod facts;
mod finished;
mod groups;
mod in_flight;
mod interval;
mod intervals;
mod kind;
mod layer;
mod length;
mod parts;
mod percentiles;
mod pool;
mod predicate;
mod question;
mod seen;
mod size;
mod statistic;
mod tally;
mod value;
mod who;

pub use busy::Busy;
pub use counts::Counts;
pub use dimension::{Dimension, Knows};
pub use facts::{Cell, Fact, Facts};
pub use finished::{FinishedIo, IoWaits};
pub use groups::{Group, Groups, Order};
pub use in_flight::{InFlight, Mention, Outlasting, outlasts, plural};
pub use interval::{DeviceInterval, OTHER, OpInterval, elapsed_of_all, in_flight_of_all};
pub use intervals::{Intervals, Span};
pub use kind::Kind;
pub use layer::Layer;
pub use length::{Length, stop_line};
pub use percentiles::{Percentiles, is_enough, percentile};
pub use pool::{ClassInterval, PoolInterval};
pub use predicate::{Predicate, Predicates};
pub use question::{Needs, Past, Question, Schedule, Subject, Wanted};
pub use seen::{EarlierIos, Seen, Stacked, VanishedDevice, unplaced_calls};
pub use size::{size_class, size_name};
pub use statistic::{Metric, Statistic};
pub use tally::{Alike, KEYS_MAX, Tally};
pub use value::{Unit, Value};
pub use who::{Thread, WRITE_BACK, Who};
