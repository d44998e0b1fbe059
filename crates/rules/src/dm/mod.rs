//! dm: the table lines of the device mapper's `delay` and `error` targets.
//!
//! The sources are the kernel's documents (`admin-guide/device-mapper/delay.rst`) and `dm-delay.c`.
//! Three arguments apply to all I/O. With six arguments, writes and flushes have their own delay. With
//! nine arguments, reads, writes and flushes each have a delay. As in dm-delay, trims and zeroes count as
//! writes, and a delay is a whole number of milliseconds. In dashpot, a table is one line, and all of its
//! parts have the same device and the same first sector on this device, because a disk has one store.

mod fits;
mod line;
mod table;

pub use fits::{Extent, Word};
pub use line::parse_table;
pub use table::{Delay, Medium, Part, Table, Target};
