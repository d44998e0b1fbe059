//! dm: the table lines of the device mapper's `delay` and `error` targets.
//!
//! The sources are the kernel's documents (`admin-guide/device-mapper/delay.rst`) and `dm-delay.c`.
//! Three arguments are for everything, six divide writes and flushes from reads, and nine also flushes
//! from writes. As there, a trim and zeroes are writes, and a delay is a whole number of
//! milliseconds. A table here is one line, and its parts have one device: a disk has one store.

mod line;
mod table;

pub use line::parse_table;
pub use table::{Delay, Medium, Part, Table, Target};
