//! `snoop`: a line for each finished I/O, as in bcc's biosnoop and perf-tools' iosnoop, with the waits in
//! which the I/O spent its time. Columns have fixed widths, so that the lines are aligned although each is
//! printed as soon as its I/O finishes.

mod columns;
mod json;
mod report;
mod table;
#[cfg(test)]
mod tests;

pub use report::{Lines, SnoopReport};
