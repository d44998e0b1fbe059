//! Lines for the kernel's disks.

use dashpot_observe::FinishedIo;
use dashpot_rules::{nice_number, short_time};

use super::{
    Column, LATENCY_WIDTH, OFFSET_WIDTH, SIZE_WIDTH, Shape, TIME_WIDTH, disk_width, header, line,
    width,
};
use crate::clock::time_of_day_ms;

/// The letters of an operation.
const TYPE_WIDTH: usize = 4;
/// Thread ids on today's largest machines.
const PID_WIDTH: usize = 7;
/// The kernel's bound on a thread's name.
const COMM_WIDTH: usize = 15;

/// A table of I/Os, with a line for each.
pub struct IoTable {
    columns: Vec<Column>,
    shape: Shape,
    zone_ns: i64,
}

impl IoTable {
    /// A table for I/Os that are still to come, on disks with these names.
    pub fn of_disks<'a>(
        names: impl Iterator<Item = &'a str>,
        shape: Shape,
        zone_ns: i64,
    ) -> IoTable {
        let mut columns = vec![
            Column::left("TIME", TIME_WIDTH),
            Column::left("TYPE", TYPE_WIDTH),
            Column::right("SIZE", SIZE_WIDTH),
            Column::right("TOTAL", LATENCY_WIDTH),
            Column::right("QUEUE", LATENCY_WIDTH),
            Column::right("PID", PID_WIDTH),
            Column::left("PROCESS", COMM_WIDTH),
            Column::left("ERROR", 0),
        ];
        if shape.wide {
            columns.insert(2, Column::right("SECTOR", OFFSET_WIDTH));
            columns.insert(6, Column::right("DEVICE", LATENCY_WIDTH));
        }
        let disk = disk_width(names, &columns, shape.room);
        columns.insert(1, Column::left("DISK", disk));
        IoTable {
            columns,
            shape,
            zone_ns,
        }
    }

    /// The line of titles.
    pub fn header(&self) -> String {
        header(&self.columns)
    }

    /// The line of an I/O that was complete at `at_ns`.
    pub fn line(&self, at_ns: u64, io: &FinishedIo) -> String {
        let or_dash = |word: Option<String>| word.unwrap_or_else(|| "-".to_owned());
        let wide = |word: String| self.shape.wide.then_some(word);
        let others = width(&self.columns) - self.columns[1].width;
        let words = [
            Some(time_of_day_ms(at_ns.saturating_add_signed(self.zone_ns))),
            Some(self.shape.room.name_beside(others, &io.disk)),
            Some(io.rwbs.clone()),
            wide(io.sector.to_string()),
            Some(nice_number(io.bytes)),
            Some(short_time(io.total_ns)),
            Some(or_dash(io.queue_ns.map(short_time))),
            wide(short_time(io.device_ns)),
            Some(or_dash(io.pid.map(|pid| pid.to_string()))),
            Some(or_dash(io.comm.clone())),
            Some(io.error.clone().unwrap_or_default()),
        ];
        line(&self.columns, words.iter().flatten().map(String::as_str))
    }
}

/// The name of an errno of the kernel's block layer, or its number.
pub fn errno_name(errno: i32) -> String {
    const NAMES: [(i32, &str); 15] = [
        (5, "EIO"),
        (6, "ENXIO"),
        (11, "EAGAIN"),
        (12, "ENOMEM"),
        (16, "EBUSY"),
        (22, "EINVAL"),
        (28, "ENOSPC"),
        (52, "EBADE"),
        (61, "ENODATA"),
        (62, "ETIME"),
        (67, "ENOLINK"),
        (84, "EILSEQ"),
        (95, "EOPNOTSUPP"),
        (110, "ETIMEDOUT"),
        (121, "EREMOTEIO"),
    ];
    // The kernel's functions return errors as negative numbers.
    let number = errno.unsigned_abs();
    let known = NAMES
        .iter()
        .find(|(known, _)| known.unsigned_abs() == number);
    known.map_or_else(|| format!("errno {number}"), |(_, name)| (*name).to_owned())
}
