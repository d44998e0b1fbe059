//! `snoop`: a line for each finished I/O, as bcc's biosnoop and perf-tools' iosnoop print, with the waits
//! in which it spent its time. Columns have fixed widths, so that lines are aligned although each line is
//! printed as soon as its I/O finishes.

mod columns;
mod json;
mod report;
mod table;
#[cfg(test)]
mod tests;

pub use report::{Lines, SnoopReport};
