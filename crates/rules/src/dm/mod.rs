//! dm: the table lines of the device mapper's `delay` and `error` targets.
//!
//! The sources are the kernel's documents (`admin-guide/device-mapper/delay.rst`) and `dm-delay.c`.
//! If `delay` has three arguments, they apply to all I/O. With six arguments, the last three apply to writes
//! and flushes; with nine, the last three apply to flushes alone. As in dm-delay, trims and zeroes count as
//! writes, and a delay is a whole number of milliseconds. In dashpot, a table is one line, and all of its
//! parts must have the same device and the same first sector, because a disk has only one store.

mod fits;
mod line;
mod table;

pub use fits::{Extent, Word};
pub use line::parse_table;
pub use table::{Delay, Medium, Part, Table, Target};
